/** What a machine boots, as a value for iPXE and GRUB; `rules/boot.ts` of each line in `server/` decides it. */
import type { BootArch, PerArch } from './boot-set.ts'
import { segment } from './ipxe.ts'
import type { KernelArg } from './kernel-args.ts'
import type { Mac } from '../../../kit/net/rules/mac.ts'

export interface LiveSet {
  readonly vmlinuz: string
  readonly initrd: string
  readonly squashfs: string
  /** 64 hexadecimal digits; null: the initrd's own manifest decides. */
  readonly squashfsSha256: string | null
}

export type LiveSets = PerArch<LiveSet | null>

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
  /** The words that are shown on the machine's screen. */
  readonly saying: string
  /** The other servers, as in `ToLiveSystem`. */
  readonly others?: readonly string[]
}

export interface ToLiveSystem {
  readonly kind: 'to-live'
  /** Checked address of this server, no trailing slash. */
  readonly base: string
  /** The other servers of the site, like `base`, for a machine that gets no answer; absent: none. */
  readonly others?: readonly string[]
  readonly sets: LiveSets
  readonly console: SerialConsole
  /** Proves to this server that it sent the boot; null: none is needed. */
  readonly token: string | null
  /** What else the live system learns on its command line. */
  readonly args?: readonly KernelArg[]
  /** What to do when the live system is still unavailable after all attempts. */
  readonly otherwise: ToDisk | ToWait
}

export type BootDecision = ToDisk | ToWait | ToLiveSystem

/** Who asked, and why it gets this: the comment that heads a script. */
export interface BootHeader {
  readonly mac: Mac
  readonly mode: string
  readonly rule: string
  readonly reason: string
}

export const DEFAULT_DRIVE = '0x80'

/** Processors of which boot loaders exist and live systems do not, as iPXE and GRUB call them. */
const OTHERS = /^(?:riscv|arm(?:32)?$|loong)/

/**
 * Decides whose live system a machine starts, by what its boot loader says: many say nothing, or a
 * word of their own, and are PCs. For `other` there is none; such a machine boots its disk.
 */
export function decideArch(said: string | null): BootArch | 'other' {
  if (said === 'arm64') return 'arm64'
  return said !== null && OTHERS.test(said) ? 'other' : 'x86_64'
}

/** Names that are longer in a URL would make a script that iPXE may not take. */
const MAX_NAME = 72

/** The sets that were asked about: each contact asks, and the sets stay for weeks. */
const bootable = new WeakMap<LiveSet, boolean>()

/** Tells whether scripts can name the set. */
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
