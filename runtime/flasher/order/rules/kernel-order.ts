/** Earlier line: parses what a server orders in the kernel's arguments, and decides what the live system starts for it. */
import { KERNEL_ARGS } from '#appliance/contract.ts'
import { parseKernelArgs } from '#fleet/boot/rules/boot-decision.ts'
import type { DiskOffer } from '#flasher/text/rules/disk-offer.ts'
import { renderDevice } from '#flasher/text/rules/flash-text.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { decodePart } from '#kit/net/rules/image-location.ts'
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'
import { parseServerAddress } from '#kit/net/rules/host-header.ts'
import type { Provisioning } from '#engine/flash/rules/provisioning.ts'
import {
  CLIENT_PROVISIONING,
  listFetched,
  MACHINE_PROVISIONING,
  type ProvisionFile,
} from '#fleet/workflow/rules/online-workflow.ts'
import { chooseOrdered, type FlashChoice } from './flash-choice.ts'
import type { OrderedFlash, OrderedWizard, ProvisioningMode } from './plan.ts'

export interface KernelOrder {
  /** As written; null: missing. */
  readonly server: string | null
  readonly mac: string | null
  /** For the files of the provisioning. */
  readonly token: string | null
  /** No provisioning: a flash by a person does all of it. */
  readonly isImageOnly: boolean
  /** The refusal is a sentence. */
  readonly ordered: Result<OrderedFlash | OrderedWizard, string>
}

/** `kernelArguments`: all of /proc/cmdline. Null: no server of this line booted the machine. */
export function parseKernelOrder(kernelArguments: string): KernelOrder | null {
  const args = parseKernelArgs(kernelArguments)
  const valueOf = (name: string) => args.get(name)?.trim() || null
  const [server, mac] = [valueOf(KERNEL_ARGS.server), valueOf(KERNEL_ARGS.mac)]
  const isInteractive = valueOf(KERNEL_ARGS.mode) === 'interactive'
  const image = valueOf(KERNEL_ARGS.imageUrl)
  if (!isInteractive && image === null) return null
  const provisioning = valueOf(KERNEL_ARGS.provisioning) ?? 'none'
  const ordered = isInteractive
    ? accept({ mode: 'interactive', catalog: null, reason: null } as const)
    : readFlash({ server, mac, image, provisioning })
  const isImageOnly = findMode(provisioning) === 'none'
  return { server, mac, token: valueOf(KERNEL_ARGS.token), isImageOnly, ordered }
}

function readFlash({
  server,
  mac,
  image,
  provisioning,
}: Pick<KernelOrder, 'server' | 'mac'> & {
  readonly image: string | null
  readonly provisioning: string
}): Result<OrderedFlash, string> {
  if (!parseServerAddress(server ?? '').ok) {
    return refuse(`${KERNEL_ARGS.server} names no server.`)
  }
  if (!parseMac(mac ?? '').ok) return refuse(`${KERNEL_ARGS.mac} names no MAC address.`)
  if (image === null || !isHttp(image)) {
    return refuse(`${KERNEL_ARGS.imageUrl} names no image of a server.`)
  }
  const mode = findMode(provisioning)
  if (mode === null) {
    return refuse(`${KERNEL_ARGS.provisioning}=${printable(provisioning)} is unknown.`)
  }
  return accept({ ...ONLY_AN_IMAGE, image, name: nameOf(image), provisioning: mode })
}

/** Not in the kernel's arguments. */
const ONLY_AN_IMAGE = {
  mode: 'flash',
  disk: null,
  format: null,
  sha256: null,
  registerUefiBoot: false,
  grow: false,
  delta: false,
  indexSha256: null,
  firstBoot: null,
} as const

/** Decoded, as the server encodes it for its address. */
function nameOf(url: string): string {
  const last = url.split(/[?#]/, 1)[0]?.split('/').at(-1) ?? ''
  return decodePart(last) ?? last
}

/** Deployed servers order `cijoe-online` by its own name. Null: unknown mode. */
function findMode(provisioning: string): ProvisioningMode | null {
  const named = MACHINE_PROVISIONING.find((name) => name === provisioning)
  return named === undefined ? null : CLIENT_PROVISIONING[named]
}

/** A path would be one of the live system's own files. */
const isHttp = (url: string): boolean => /^https?:\/\//i.test(url)

export const isForPerson = ({ ordered }: KernelOrder): boolean =>
  ordered.ok && ordered.value.mode === 'interactive'

interface FetchedFile {
  readonly file: ProvisionFile
  readonly url: string
  readonly isRequired: boolean
}

interface LiveMachine {
  readonly disks: readonly DiskOffer[]
  /** This live system has the program of the mode `cijoe`. */
  readonly hasCijoe: boolean
}

interface TuiInvocation {
  readonly kind: 'tui'
  readonly argv: readonly string[]
  /** As the person sees it; null: asking was ordered. */
  readonly reason: string | null
  /** As the server learns it. */
  readonly refusal: string | null
}

export type LiveInvocation =
  | TuiInvocation
  | {
      readonly kind: 'flash'
      readonly choice: FlashChoice
      readonly provisioning: ProvisioningMode
      readonly fetched: readonly FetchedFile[]
    }

/** Unattended only where everything is known and exactly one disk is suitable. */
export function decideInvocation(order: KernelOrder, machine: LiveMachine): LiveInvocation {
  const { ordered } = order
  if (!ordered.ok) return askPerson(order, ordered.refusal)
  if (ordered.value.mode === 'interactive') {
    return { kind: 'tui', argv: renderTuiArgs(order), reason: null, refusal: null }
  }
  const flash = planFlash(order, ordered.value, machine)
  return flash.ok ? flash.value : askPerson(order, flash.refusal)
}

/** A machine that is flashed but not provisioned must not report that it is done. */
export function askPerson(order: KernelOrder, refusal: string): TuiInvocation {
  const { isImageOnly } = order
  const reason = isImageOnly ? refusal : `${refusal} ${NOT_REPORTED}`
  const argv = renderTuiArgs(isImageOnly ? order : { ...order, mac: null })
  return { kind: 'tui', argv, reason, refusal }
}

const NOT_REPORTED = 'Flashes from here are not provisioned, and the server is not notified.'

/** What this person flashes is not what the server waits for. */
export const renderGuestArgs = (order: KernelOrder): readonly string[] =>
  renderTuiArgs(isForPerson(order) ? order : { ...order, mac: null })

/** Skips what is invalid: the person is asked anyway. */
export function renderTuiArgs({
  server,
  mac,
}: Pick<KernelOrder, 'server' | 'mac'>): readonly string[] {
  if (server === null || !parseServerAddress(server).ok) return []
  const card = mac === null ? null : parseMac(mac)
  return ['--server', server, ...(card?.ok === true ? ['--mac', card.value] : [])]
}

/** Null: no server, or no MAC address. */
export function findReporting(
  order: KernelOrder,
): { readonly bases: readonly string[]; readonly mac: Mac } | null {
  const mac = parseMac(order.mac ?? '')
  const bases = parseServerAddress(order.server ?? '')
  return mac.ok && bases.ok ? { bases: bases.value, mac: mac.value } : null
}

const NO_CIJOE =
  'This live system has no cijoe. Boot one that has it, or use the mode cijoe-online, which runs cijoe on the server.'

function planFlash(
  order: KernelOrder,
  flash: OrderedFlash,
  { disks, hasCijoe }: LiveMachine,
): Result<Extract<LiveInvocation, { kind: 'flash' }>, string> {
  const { provisioning = 'none' } = flash
  if (provisioning === 'cijoe' && !hasCijoe) return refuse(NO_CIJOE)
  const target = findTarget(disks)
  if (!target.ok) return target
  const link = findReporting(order)
  const at = `${link?.bases[0] ?? ''}/pxe/${link?.mac ?? ''}/provision`
  return accept({
    kind: 'flash',
    choice: chooseOrdered(flash, { path: target.value }),
    provisioning,
    fetched: listFetched(provisioning).map((file, index) => ({
      file,
      url: `${at}/${file}`,
      isRequired: index === 0,
    })),
  })
}

export function provisioningFor(
  mode: ProvisioningMode,
  paths: ReadonlyMap<string, string>,
): Provisioning {
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

/** The only disk that can be written and is not removable. */
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
      ? `${suitable.length} disks can be flashed. Choose one: ${listed}.`
      : `No disk can be flashed automatically: ${listed}.`,
  )
}
