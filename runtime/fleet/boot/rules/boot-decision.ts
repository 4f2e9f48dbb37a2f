/** What a machine boots, as a value for iPXE and GRUB; `rules/boot.ts` of each line in `server/` decides it. */
import type { BootArch, PerArch } from './boot-set.ts'
import { segment } from './ipxe.ts'
import type { KernelArg } from './kernel-args.ts'
import type { Mac } from '#kit/net/rules/mac.ts'

export interface LiveSet {
  readonly vmlinuz: string
  readonly initrd: string
  readonly squashfs: string
  /** 64 hexadecimal digits; null: the initrd's manifest decides. */
  readonly squashfsSha256: string | null
}

export type LiveSets = PerArch<LiveSet | null>

export const SERIAL_CONSOLES = ['ttyS0', 'ttyS1'] as const
export type SerialConsole = (typeof SERIAL_CONSOLES)[number]

/** The firmware's boot order on UEFI, this drive on a BIOS. */
export interface ToDisk {
  readonly kind: 'to-disk'
  /** `0x80`, also used for anything that is no drive number. */
  readonly drive: string
}

/** Boots nothing: the machine asks again without end. */
export interface ToWait {
  readonly kind: 'to-wait'
  readonly base: string
  readonly seconds: number
  readonly saying: string
  readonly others?: readonly string[]
}

export interface ToLiveSystem {
  readonly kind: 'to-live'
  /** Checked address of this server, no trailing slash. */
  readonly base: string
  /** The site's other servers, like `base`, for a machine without an answer. */
  readonly others?: readonly string[]
  readonly sets: LiveSets
  readonly console: SerialConsole
  /** Proves that this server sent the boot; null: not needed. */
  readonly token: string | null
  readonly args?: readonly KernelArg[]
  readonly otherwise: ToDisk | ToWait
}

export type BootDecision = ToDisk | ToWait | ToLiveSystem

export interface BootHeader {
  readonly mac: Mac
  readonly mode: string
  readonly rule: string
  readonly reason: string
}

export const DEFAULT_DRIVE = '0x80'

/** Processors with boot loaders but no live systems, in the words of iPXE and GRUB. */
const OTHERS = /^(?:riscv|arm(?:32)?$|loong)/

/** Many PCs say nothing, or a word of their own. `other` has no live system: it boots its disk. */
export function decideArch(said: string | null): BootArch | 'other' {
  if (said === 'arm64') return 'arm64'
  return said !== null && OTHERS.test(said) ? 'other' : 'x86_64'
}

/** Longer names in a URL could exceed what iPXE takes. */
const MAX_NAME = 72

/** Every contact asks, and sets stay for weeks. */
const bootable = new WeakMap<LiveSet, boolean>()

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
