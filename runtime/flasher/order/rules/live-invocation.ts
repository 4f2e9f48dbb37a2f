/** Earlier line: what the live system starts, by the kernel command line and the disks that there are. */
import { KERNEL_ARGS } from '../../../../appliance/contract.ts'
import { parseKernelArgs } from '../../../fleet/boot/rules/kernel-args.ts'
import type { DiskOffer } from '../../text/rules/disk-offer.ts'
import { renderDevice } from '../../text/rules/flash-text.ts'
import { printable } from '../../../kit/foundation/printable.ts'
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'
import { parseMac, type Mac } from '../../../kit/net/rules/mac.ts'
import { parseServerAddress } from '../../../kit/net/rules/server-address.ts'
import { WHOLE_DISK, type FlashOrder } from '../../../engine/flash/rules/flash.ts'
import type { Provisioning } from '../../../engine/flash/rules/provisioning.ts'
import {
  CLIENT_PROVISIONING,
  MACHINE_PROVISIONING,
  listFetched,
  type ProvisionFile,
} from '../../../fleet/machine/rules/provisioning.ts'

/** What a server of this line says to a live system, as it stands there. */
export interface LiveOrder {
  readonly server: string | null
  readonly mac: string | null
  readonly imageUrl: string | null
  readonly provisioning: string
  /** A person is asked. */
  readonly isInteractive: boolean
  /** The token for the files of the provisioning; null: none was given. */
  readonly token: string | null
}

/** `line`: all of /proc/cmdline. Null: no server of this line booted the machine. */
export function parseLiveOrder(line: string): LiveOrder | null {
  const args = parseKernelArgs(line)
  const valueOf = (name: string) => args.get(name)?.trim() || null
  const order = {
    server: valueOf(KERNEL_ARGS.server),
    mac: valueOf(KERNEL_ARGS.mac),
    imageUrl: valueOf(KERNEL_ARGS.imageUrl),
    provisioning: valueOf(KERNEL_ARGS.provisioning) ?? 'none',
    isInteractive: valueOf(KERNEL_ARGS.mode) === 'interactive',
    token: valueOf(KERNEL_ARGS.token),
  }
  return order.isInteractive || order.imageUrl !== null ? order : null
}

type ProvisioningMode = Provisioning['mode']

/** A file that is fetched before anything is written. */
interface FetchedFile {
  readonly file: ProvisionFile
  readonly url: string
  readonly isRequired: boolean
}

/** What the live system found out about itself. */
interface LiveMachine {
  readonly disks: readonly DiskOffer[]
  /** Whether this live system has the program of the mode `cijoe`. */
  readonly hasCijoe: boolean
}

interface TuiInvocation {
  readonly kind: 'tui'
  readonly argv: readonly string[]
  /** Why a person is asked, as that person sees it; null where that was ordered. */
  readonly reason: string | null
  /** Why the order is not carried out, as the server learns it. */
  readonly refusal: string | null
}

export type LiveInvocation =
  /** `flasher-tui`. */
  | TuiInvocation
  /** A flash, with the files that were fetched for its provisioning; then the done signal, then a restart. */
  | {
      readonly kind: 'flash'
      readonly image: string
      /** The path of the disk. */
      readonly target: string
      readonly mode: ProvisioningMode
      readonly fetched: readonly FetchedFile[]
    }

/**
 * A flash that nobody has to watch where everything is known and exactly one disk is suitable;
 * otherwise a person is asked, and sees why.
 */
export function decideInvocation(order: LiveOrder, machine: LiveMachine): LiveInvocation {
  if (order.isInteractive) {
    return { kind: 'tui', argv: renderTuiArgs(order), reason: null, refusal: null }
  }
  const flash = planFlash(order, machine)
  return flash.ok ? flash.value : askPerson(order, flash.refusal)
}

/**
 * What happens when the flash that was ordered is impossible or has failed. A machine that is flashed
 * but not provisioned must not report that it is done.
 */
export function askPerson(order: LiveOrder, refusal: string): TuiInvocation {
  const isWhole = findMode(order) === 'none'
  const reason = isWhole ? refusal : `${refusal} ${NOT_REPORTED}`
  const argv = renderTuiArgs(isWhole ? order : { ...order, mac: null })
  return { kind: 'tui', argv, reason, refusal }
}

const NOT_REPORTED = 'A flash from here is not provisioned, so the server is not notified of it.'

/**
 * For a person at a console while another one carries out the order, or has tried to: what that
 * person flashes is not what the server waits for.
 */
export const renderGuestArgs = (order: LiveOrder): readonly string[] =>
  renderTuiArgs(order.isInteractive ? order : { ...order, mac: null })

/** What cannot be read is left out: the person is asked anyway. */
export function renderTuiArgs({
  server,
  mac,
}: Pick<LiveOrder, 'server' | 'mac'>): readonly string[] {
  if (server === null || !parseServerAddress(server).ok) return []
  const card = mac === null ? null : parseMac(mac)
  return ['--server', server, ...(card?.ok === true ? ['--mac', card.value] : [])]
}

/** Where a live system reports to; null: it is not told of a server, or not which machine it is. */
export function findReporting(
  order: LiveOrder,
): { readonly bases: readonly string[]; readonly mac: Mac } | null {
  const mac = parseMac(order.mac ?? '')
  const bases = parseServerAddress(order.server ?? '')
  return mac.ok && bases.ok ? { bases: bases.value, mac: mac.value } : null
}

type Flash = Extract<LiveInvocation, { kind: 'flash' }>

/** Deployed servers order `cijoe-online` by its own name; null: no mode that there is. */
function findMode({ provisioning }: LiveOrder): ProvisioningMode | null {
  const named = MACHINE_PROVISIONING.find((name) => name === provisioning)
  return named === undefined ? null : CLIENT_PROVISIONING[named]
}

const NO_CIJOE =
  'This live system has no cijoe: boot one that has it, or use the mode cijoe-online, for which the server needs it.'

interface WholeOrder {
  readonly base: string
  readonly mac: Mac
  readonly image: string
  readonly mode: ProvisioningMode
}

/** The refusal says what the command line lacks. */
function checkOrder(order: LiveOrder): Result<WholeOrder, string> {
  const { imageUrl: image } = order
  const mac = parseMac(order.mac ?? '')
  const bases = parseServerAddress(order.server ?? '')
  const mode = findMode(order)
  if (!bases.ok) return refuse(`${KERNEL_ARGS.server} names no server.`)
  if (!mac.ok) return refuse(`${KERNEL_ARGS.mac} names no MAC address.`)
  if (image === null || !isHttp(image)) {
    return refuse(`${KERNEL_ARGS.imageUrl} names no image of a server.`)
  }
  if (mode === null) {
    return refuse(`${KERNEL_ARGS.provisioning}=${printable(order.provisioning)} is unknown.`)
  }
  return accept({ base: bases.value[0] ?? '', mac: mac.value, image, mode })
}

function planFlash(order: LiveOrder, { disks, hasCijoe }: LiveMachine): Result<Flash, string> {
  const checked = checkOrder(order)
  if (!checked.ok) return checked
  const { base, mac, image, mode } = checked.value
  if (mode === 'cijoe' && !hasCijoe) return refuse(NO_CIJOE)
  const target = findTarget(disks)
  if (!target.ok) return target
  return accept({
    kind: 'flash',
    image,
    target: target.value,
    mode,
    fetched: listFetched(mode).map((file, index) => ({
      file,
      url: `${base}/pxe/${mac}/provision/${file}`,
      isRequired: index === 0,
    })),
  })
}

/**
 * Makes the order that `flasher flash` takes. `paths` holds those of the files that were fetched,
 * by their names.
 */
export const orderFor = (
  { image, target, mode }: Flash,
  paths: ReadonlyMap<string, string>,
): FlashOrder & { readonly provisioning: Provisioning } => ({
  image,
  format: null,
  targets: [{ path: target }],
  options: WHOLE_DISK,
  provisioning: provisioningFor(mode, paths),
})

function provisioningFor(mode: ProvisioningMode, paths: ReadonlyMap<string, string>): Provisioning {
  switch (mode) {
    case 'none':
      return { mode }
    case 'cloud-init':
      return {
        mode,
        userData: paths.get('user-data') ?? '',
        metaData: paths.get('meta-data') ?? null,
      }
    case 'cijoe':
      return {
        mode,
        workflow: paths.get('cijoe-workflow') ?? '',
        config: paths.get('cijoe-config') ?? null,
      }
  }
}

/** Nothing else may be read: a path would be one of the live system's own files. */
const isHttp = (url: string): boolean => /^https?:\/\//i.test(url)

/** The only suitable disk: it can be written, and is none that a person plugged in. */
export function findTarget(disks: readonly DiskOffer[]): Result<string, string> {
  const judged = disks.map(({ disk, refusal }) => ({
    disk,
    refusal: refusal ?? (disk.removable ? 'removable' : null),
  }))
  const suitable = judged.filter(({ refusal }) => refusal === null)
  const [only] = suitable
  if (only !== undefined && suitable.length === 1) return accept(only.disk.path)
  const listed = (suitable.length > 1 ? suitable : judged)
    .map(({ disk, refusal }) => printable(`${disk.path} (${refusal ?? renderDevice(disk.device)})`))
    .join('; ')
  if (judged.length === 0) return refuse('This machine has no disk.')
  return refuse(
    suitable.length > 1
      ? `${suitable.length} disks can be flashed, choose one: ${listed}.`
      : `No disk can be flashed without being asked for: ${listed}.`,
  )
}
