/** Renders what a machine boots as an iPXE script ("GET /pxe/{mac}"). */
import { KERNEL_ARGS } from '../../../appliance/contract.ts'
import { LIVE_QUIRKS } from '../../../appliance/live-boot.ts'
import { backOff, comment, prose, renderScript, segment, START_PAUSE, word } from './ipxe.ts'
import { renderKernelArgs, type KernelArg } from './kernel-args.ts'
import { renderHyphens, type Mac } from '../machine/mac.ts'

/** The files of one live system; names as in the boot directory. */
export interface LiveSet {
  readonly vmlinuz: string
  readonly initrd: string
  readonly squashfs: string
  /** 64 hexadecimal digits; null: the initrd's own manifest decides. */
  readonly squashfsSha256: string | null
}

export interface LiveSets {
  readonly x86_64: LiveSet | null
  readonly arm64: LiveSet | null
}

export const SERIAL_CONSOLES = ['ttyS0', 'ttyS1'] as const
export type SerialConsole = (typeof SERIAL_CONSOLES)[number]

/** The firmware's boot order on UEFI, that drive on a BIOS. */
export interface ToDisk {
  readonly kind: 'to-disk'
  /** `0x80`; anything that is no drive number is taken for that. */
  readonly drive: string
}

/** Nothing is booted: the machine asks again, for as long as it takes. */
export interface ToWait {
  readonly kind: 'to-wait'
  readonly base: string
  readonly seconds: number
  /** Shown on the machine's screen. */
  readonly saying: string
}

interface ToLive {
  readonly kind: 'to-live'
  /** Checked address of this server, no trailing slash. */
  readonly base: string
  readonly sets: LiveSets
  readonly console: SerialConsole
  /** Proves to this server that it sent the boot; null: none is needed. */
  readonly token: string | null
  /** What else the live system learns on its command line. */
  readonly args?: readonly KernelArg[]
  /** What to do when the live system is still unavailable after all attempts. */
  readonly otherwise: ToDisk | ToWait
}

export type BootDecision = ToDisk | ToWait | ToLive

/** Who asked, and why it gets this: the comment that heads a script. */
export interface BootHeader {
  readonly mac: Mac
  readonly mode: string
  readonly rule: string
  readonly reason: string
}

export const DEFAULT_DRIVE = '0x80'
const DRIVE = /^0x[0-9a-f]{1,2}$/i

/** Names that are longer in a URL would make a script that iPXE may not take. */
const MAX_NAME = 72

/** Of sets that were asked about: each contact asks, and the sets stay for weeks. */
const bootable = new WeakMap<LiveSet, boolean>()

/** Whether scripts can name the set. */
export function isBootable(set: LiveSet): boolean {
  const known = bootable.get(set) ?? canBeNamed(set)
  bootable.set(set, known)
  return known
}

const canBeNamed = (set: LiveSet): boolean =>
  [set.vmlinuz, set.initrd, set.squashfs].every(
    (name) => name !== '' && segment(name).length <= MAX_NAME,
  ) &&
  (set.squashfsSha256 === null || /^[0-9a-f]{64}$/.test(set.squashfsSha256))

/** Under 4 KB, whatever is in it. */
export const renderBoot = (decision: BootDecision, header: BootHeader): string =>
  renderScript([...renderHeader(header), ...renderDecision(decision, header)])

const renderHeader = ({ mac, mode, rule, reason }: BootHeader): readonly string[] => [
  comment(`flasher: ${mac}, mode ${mode}`),
  comment(`${rule}: ${reason}`),
]

function renderDecision(decision: BootDecision, header: BootHeader): readonly string[] {
  switch (decision.kind) {
    case 'to-disk':
      return renderToDisk(decision, header)
    case 'to-wait':
      return renderToWait(decision, header)
    case 'to-live':
      return renderToLive(decision, header)
  }
}

const renderToDisk = ({ drive }: ToDisk, { mac, rule }: BootHeader): readonly string[] => [
  `echo flasher: ${mac} boots its own disk (${prose(rule)})`,
  ...renderDisk(drive),
]

/** `exit` ends the script; what was before the last `||` has failed by then. */
const renderDisk = (drive: string): readonly string[] => [
  'iseq ${platform} efi && exit ||',
  `sanboot --no-describe --drive ${DRIVE.test(drive) ? drive : DEFAULT_DRIVE} || exit`,
]

/** For a machine of which nothing is known, or for which nothing could be decided. */
export const EXIT_SCRIPT = renderScript([
  comment('flasher: nothing is known or decided about this machine'),
  ...renderDisk(DEFAULT_DRIVE),
])

const renderToWait = (
  { base, seconds, saying }: ToWait,
  { mac }: BootHeader,
): readonly string[] => [
  ':wait',
  `echo flasher: ${mac} waits: ${prose(saying)}`,
  `sleep ${Math.max(1, Math.trunc(seconds))} ||`,
  `chain --replace --autofree ${word(`${base}/pxe/${renderHyphens(mac)}`)} || goto wait`,
]

/** `imgfree` first: an image left over would be handed to the kernel as part of its initrd. */
function renderToLive(decision: ToLive, header: BootHeader): readonly string[] {
  const { x86_64, arm64 } = decision.sets
  const hasBoth = x86_64 !== null && arm64 !== null
  return [
    'imgfree',
    `echo flasher: ${header.mac} starts the live system (${prose(header.rule)})`,
    START_PAUSE,
    ':try',
    ...(hasBoth ? ['iseq ${buildarch} arm64 && goto arm64 ||'] : []),
    ...(x86_64 === null ? [] : renderSet(decision, x86_64, decision.console, header.mac)),
    ...(hasBoth ? [':arm64'] : []),
    ...(arm64 === null ? [] : renderSet(decision, arm64, 'ttyAMA0', header.mac)),
    ':again',
    'imgfree',
    ...backOff('the live system is unavailable', 'try', 'otherwise'),
    ':otherwise',
    ...renderDecision(decision.otherwise, header),
  ]
}

/**
 * Debian's shim, which trusts Debian's kernel where firmware with Secure Boot does not. It is not in a
 * release; iPXE asks for it only if the kernel cannot be started without, and boots on if it is not there.
 */
const SHIM = 'shimx64.efi'

/** The initrd has a name of its own, whatever its URL: the EFI stub asks for it by that. */
function renderSet(
  { base, token, args: more = [] }: ToLive,
  set: LiveSet,
  console: SerialConsole | 'ttyAMA0',
  mac: Mac,
): readonly string[] {
  const url = (name: string) => word(`${base}/boot/${segment(name)}`)
  const args = renderKernelArgs([
    ['initrd', 'initrd'],
    ...consoleArgs(console),
    ...LIVE_QUIRKS,
    [KERNEL_ARGS.server, base],
    [KERNEL_ARGS.mac, mac],
    ...more,
    ...(token === null ? [] : [[KERNEL_ARGS.token, token] as const]),
    [KERNEL_ARGS.squashfs, url(set.squashfs)],
    ...(set.squashfsSha256 === null ? [] : [[KERNEL_ARGS.sha256, set.squashfsSha256] as const]),
  ])
  return [
    `kernel ${url(set.vmlinuz)}?mac=${mac} ${args} || goto again`,
    ...(console === 'ttyAMA0' ? [] : [`iseq \${platform} efi && shim ${url(SHIM)} ||`]),
    `initrd --name initrd ${url(set.initrd)}?mac=${mac} || goto again`,
    'boot || goto again',
  ]
}

/** One serial console only: today's kernels take one per driver and leave the others silent. */
function consoleArgs(console: SerialConsole | 'ttyAMA0'): readonly KernelArg[] {
  if (console === 'ttyAMA0') {
    return [
      ['console', 'tty0'],
      ['console', 'ttyAMA0'],
    ]
  }
  const uart = `${console},115200`
  return [
    ['console', 'tty0'],
    ['console', uart],
    ['earlyprintk', uart],
  ]
}
