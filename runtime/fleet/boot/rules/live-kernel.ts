/** The kernel of a live boot: its files on this server and its arguments, the same for every boot loader. */
import { KERNEL_ARGS } from '#appliance/contract.ts'
import { LIVE_QUIRKS } from '#appliance/live-boot.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { BootArch } from './boot-set.ts'
import type { LiveSet, SerialConsole, ToLiveSystem, KernelArg } from './boot-decision.ts'
import { segment, word } from './ipxe.ts'

interface LiveKernel {
  /** Paths on this server name the machine: so the server knows that it is on its way. */
  readonly vmlinuz: string
  readonly initrd: string
  readonly args: readonly KernelArg[]
}

export function planKernel(
  { base, others = [], console, token, args: more = [] }: ToLiveSystem,
  arch: BootArch,
  set: LiveSet,
  mac: Mac,
): LiveKernel {
  return {
    vmlinuz: `${path(set.vmlinuz)}?mac=${mac}`,
    initrd: `${path(set.initrd)}?mac=${mac}`,
    args: [
      ...consoleArgs(arch === 'arm64' ? 'ttyAMA0' : console),
      ...LIVE_QUIRKS,
      [KERNEL_ARGS.server, base],
      ...(others.length === 0 ? [] : [[KERNEL_ARGS.servers, others.join(',')] as const]),
      [KERNEL_ARGS.mac, mac],
      ...more,
      ...(token === null ? [] : [[KERNEL_ARGS.token, token] as const]),
      [KERNEL_ARGS.squashfs, word(`${base}${path(set.squashfs)}`)],
      ...(set.squashfsSha256 === null ? [] : [[KERNEL_ARGS.sha256, set.squashfsSha256] as const]),
    ],
  }
}

const path = (name: string) => `/boot/${segment(name)}`

/** One serial console only: kernels take one per driver and leave the others silent. */
function consoleArgs(console: SerialConsole | 'ttyAMA0'): readonly KernelArg[] {
  const isPc = console !== 'ttyAMA0'
  const uart = isPc ? `${console},115200` : console
  const early: readonly KernelArg[] = isPc ? [['earlyprintk', uart]] : []
  return [['console', 'tty0'], ['console', uart], ...early]
}
