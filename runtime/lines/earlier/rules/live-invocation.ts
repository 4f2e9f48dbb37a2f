/** Earlier line: what the live system starts, by the kernel command line and the disks that there are. */
import { KERNEL_ARGS } from '../../../../appliance/contract.ts'
import { parseKernelArgs } from '../../../core/boot/kernel-args.ts'
import type { DiskOffer } from '../../../core/flash/disk-offer.ts'
import { renderDevice } from '../../../core/flash/flash-text.ts'
import { printable } from '../../../core/foundation/printable.ts'
import { accept, refuse, type Result } from '../../../core/foundation/result.ts'
import { parseMac, type Mac } from '../../../core/machine/mac.ts'
import { parseServerAddress } from '../../../core/net/server-address.ts'
import { PROVISIONING_MODES } from './commands.ts'
import type { ProvisionFile } from './provisioning.ts'

/** What a server of this line says to a live system, as it stands there. */
export interface LiveOrder {
  readonly server: string | null
  readonly mac: string | null
  readonly imageUrl: string | null
  readonly provisioning: string
  /** A person is asked. */
  readonly isInteractive: boolean
  /** For the files of the provisioning; null: none was given. */
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

/** A file that is fetched before anything is written, and the flag of `flasher flash` that takes it. */
interface Fetched {
  readonly file: ProvisionFile
  readonly url: string
  readonly isRequired: boolean
}

type LiveInvocation =
  /** `flasher-tui`; `reason`: why a person is asked, null where that was ordered. */
  | { readonly kind: 'tui'; readonly argv: readonly string[]; readonly reason: string | null }
  /** `flasher`, with the flags of the files that were fetched; then the done signal, then a restart. */
  | {
      readonly kind: 'flash'
      readonly argv: readonly string[]
      readonly fetched: readonly Fetched[]
      readonly server: string
      readonly mac: Mac
    }

type ClientMode = (typeof PROVISIONING_MODES)[number]

const FILES: Readonly<Record<ClientMode, readonly (readonly [ProvisionFile, boolean])[]>> = {
  none: [],
  'cloud-init': [
    ['user-data', true],
    ['meta-data', false],
  ],
  cijoe: [
    ['cijoe-workflow', true],
    ['cijoe-config', false],
  ],
}

/**
 * A flash that nobody has to watch where everything is known and exactly one disk is suitable;
 * otherwise a person is asked, and sees why.
 */
export function decideInvocation(order: LiveOrder, disks: readonly DiskOffer[]): LiveInvocation {
  if (order.isInteractive) return { kind: 'tui', argv: tuiArgs(order), reason: null }
  const flash = planFlash(order, disks)
  if (flash.ok) return flash.value
  const isWhole = order.provisioning === 'none'
  const reason = isWhole ? flash.refusal : `${flash.refusal} ${NOT_REPORTED}`
  // A machine that is flashed but not provisioned must not report that it is done.
  return { kind: 'tui', argv: tuiArgs(isWhole ? order : { ...order, mac: null }), reason }
}

const NOT_REPORTED = 'A flash from here is not provisioned, so the server is not notified of it.'

/** What cannot be read is left out: the person is asked anyway. */
function tuiArgs({ server, mac }: Pick<LiveOrder, 'server' | 'mac'>): readonly string[] {
  if (server === null || !parseServerAddress(server).ok) return []
  const card = mac === null ? null : parseMac(mac)
  return ['--server', server, ...(card?.ok === true ? ['--mac', card.value] : [])]
}

type Flash = Extract<LiveInvocation, { kind: 'flash' }>

function planFlash(order: LiveOrder, disks: readonly DiskOffer[]): Result<Flash, string> {
  const { imageUrl } = order
  const mac = parseMac(order.mac ?? '')
  const bases = parseServerAddress(order.server ?? '')
  const mode = PROVISIONING_MODES.find((name) => name === order.provisioning)
  if (!bases.ok) return refuse(`${KERNEL_ARGS.server} names no server.`)
  if (!mac.ok) return refuse(`${KERNEL_ARGS.mac} names no MAC address.`)
  if (imageUrl === null) return refuse(`${KERNEL_ARGS.imageUrl} names no image.`)
  if (mode === undefined) {
    return refuse(`${KERNEL_ARGS.provisioning}=${printable(order.provisioning)} is unknown.`)
  }
  const target = findTarget(disks)
  if (!target.ok) return target
  const base = bases.value[0] ?? ''
  const argv = [
    'flash',
    '--image',
    imageUrl,
    '--target',
    target.value,
    '--provision',
    mode,
    '--yes',
  ]
  const fetched = FILES[mode].map(([file, isRequired]) => ({
    file,
    url: `${base}/pxe/${mac.value}/provision/${file}`,
    isRequired,
  }))
  return accept({ kind: 'flash', argv, fetched, server: base, mac: mac.value })
}

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
