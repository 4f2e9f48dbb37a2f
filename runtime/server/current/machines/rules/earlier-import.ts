/** Current line: what of a server of the earlier line becomes of a machine here, and what does not come along. */
import { DISCOVERED_MODE } from './boot-mode.ts'
import { z } from 'zod'
import { LIVE_SUMS, LIVE_TRIO } from '#appliance/assets.ts'
import { printable } from '#kit/foundation/printable.ts'
import { MacSchema } from '#kit/net/rules/mac.ts'
import { decodePart } from '#kit/net/rules/image-location.ts'
import { NameSchema, createMachine, type Machine } from './machine.ts'

const time = z.iso.datetime({ offset: true }).nullable().catch(null)
const text = z.string().nullable().catch(null)

/** All but the MAC may be missing or damaged. */
const EarlierSchema = z.object({
  mac: MacSchema,
  boot_policy: text,
  image: text,
  provisioning_mode: text,
  hostname: text,
  cijoe_workflow_ref: text,
  discovered_at: time,
  last_seen_at: time,
  last_seen_ip: text,
  last_flashed_at: time,
  created_at: time,
})

export type EarlierMachine = Readonly<z.infer<typeof EarlierSchema>>

interface KnownImage {
  readonly ref: string
  readonly name: string
  readonly src: string
}

/** `kept`: the machine was here already. */
interface Import {
  readonly action: 'added' | 'kept'
  readonly machine: Machine
  readonly left: readonly string[]
  /** The earlier server would have flashed it at its next network boot. */
  readonly isDisarmed: boolean
}

interface SetAside {
  readonly what: string
  readonly reason: string
}

export const parseEarlier = (record: unknown): EarlierMachine | null =>
  EarlierSchema.safeParse(record).data ?? null

/** Never armed: the mode becomes `flasher-inventory`. A known machine only may get its name. */
export function planImport(
  earlier: EarlierMachine,
  before: Machine | null,
  { images, now }: { readonly images: readonly KnownImage[]; readonly now: string },
): Import {
  const name = parseName(earlier.hostname)
  if (before !== null) {
    const isNamed = before.name !== null || name === null
    const machine = isNamed ? before : { ...before, name, updated_at: now }
    return { action: 'kept', machine, left: [], isDisarmed: false }
  }
  const matches = findImages(earlier.image, images)
  const [image] = matches
  const { mac, discovered_at, last_seen_at, last_seen_ip, last_flashed_at, created_at } = earlier
  const machine: Machine = {
    ...createMachine(mac, DISCOVERED_MODE, now),
    name,
    bty_image_ref: matches.length === 1 && image !== undefined ? image.ref : null,
    discovered_at,
    last_seen_at,
    last_seen_ip,
    last_flashed_at,
    created_at: created_at ?? now,
  }
  const isDisarmed = earlier.boot_policy === 'flash' && earlier.image !== null
  return { action: 'added', machine, left: listLeft(earlier, name, matches.length), isDisarmed }
}

const parseName = (hostname: string | null): string | null => {
  const parsed = NameSchema.safeParse(hostname)
  return parsed.success ? parsed.data || null : null
}

/** By file name, as the catalog names them or as their sources end. */
function findImages(name: string | null, images: readonly KnownImage[]): readonly KnownImage[] {
  if (name === null) return []
  const named = images.filter((image) => image.name === name)
  return named.length > 0 ? named : images.filter(({ src }) => baseNameOf(src) === name)
}

function baseNameOf(src: string): string {
  const last = /[^/]*$/.exec(src.replace(/[?#].*$/, ''))?.[0] ?? ''
  return decodePart(last) ?? last
}

const POLICIES: Readonly<Record<string, string>> = {
  flash:
    'The boot policy flash: the machine reports its disks, and is flashed once you set its mode.',
  tui: 'The boot policy tui: set the mode flasher-tui to have it ask again.',
  local: 'The boot policy local: set the mode ipxe-exit to have it boot its own disk.',
}

const listLeft = (
  { boot_policy, hostname, image, provisioning_mode, cijoe_workflow_ref }: EarlierMachine,
  name: string | null,
  matches: number,
): readonly string[] =>
  [
    boot_policy === null ? null : (POLICIES[boot_policy] ?? null),
    name === null && hostname
      ? `The host name ${printable(hostname)}: it cannot be a name here.`
      : null,
    image ? describeImage(printable(image), matches) : null,
    provisioning_mode === null || provisioning_mode === 'none'
      ? null
      : `The provisioning mode ${printable(provisioning_mode)} with its files.`,
    cijoe_workflow_ref ? `The workflow ${printable(cijoe_workflow_ref)}.` : null,
  ].filter((sentence) => sentence !== null)

function describeImage(name: string, matches: number): string | null {
  if (matches === 1) return null
  return matches === 0
    ? `The image ${name}: no image of that file name is in the catalog.`
    : `The image ${name}: ${matches} images of the catalog have that file name.`
}

const NETBOOT_NAMES: readonly string[] = [...Object.values(LIVE_TRIO), LIVE_SUMS]

const FOLDERS: Readonly<Record<string, string>> = {
  images: 'images are served by the image cache: copy them into its folder',
  provision: 'provisioning files have no counterpart here',
  workflows: 'the output of workflow runs has no counterpart here',
  keys: 'this server makes no SSH connections',
}

export const listSetAside = (
  entries: readonly string[],
  bootFiles: readonly string[],
): readonly SetAside[] => [
  ...bootFiles
    .filter((name) => NETBOOT_NAMES.includes(name))
    .map((name) => ({
      what: `boot/${name}`,
      reason: 'its name holds no version, so it looks like any other release: fetch a release',
    })),
  ...entries.flatMap((what) => {
    const reason = FOLDERS[what]
    return reason === undefined ? [] : [{ what, reason }]
  }),
]
