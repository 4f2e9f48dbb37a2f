/** What a machine boots, as a value for iPXE and GRUB; `rules/boot.ts` of each line in `server/` decides it. */
import type { BootArch, PerArch } from './boot-set.ts'
import { segment } from './ipxe.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { KERNEL_ARGS } from '#appliance/contract.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { Fault } from '#kit/foundation/fault.ts'

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

/** Something else than the order, once: a kernel, or an EFI program. */
export interface ToEntry {
  readonly kind: 'to-entry'
  readonly base: string
  /** Its name. */
  readonly entry: string
  /** Its files are below it and the ticket. */
  readonly path: string
  /** Part of the addresses; null: shown without. */
  readonly ticket: string | null
  readonly starts: 'kernel' | 'program'
  readonly hasInitrd: boolean
  /** Words that were checked. `answers`: the address that stands among them. */
  args(answers: string): readonly string[]
  readonly firmware: 'any' | 'bios' | 'uefi'
  readonly processor: BootArch
  readonly otherwise: ToDisk
}

export type BootDecision = ToDisk | ToWait | ToLiveSystem | ToEntry

/** Where its files are, with a slash at its end. */
export const filesOf = (entry: ToEntry): string => `${entry.path}${ticketOf(entry)}/`

/** A script that finds that its machine is another asks again by it, which ends the order. */
export const ticketOf = ({ ticket }: ToEntry): string => ticket ?? 'hidden'

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

// Boot tokens, by which a live system proves that this server booted it: `[pxe] tokens`.

/** The address that the token comes to names the machine. */
export interface BootToken {
  /** ISO time: when the cycle of the offered boot began. */
  readonly cycle: string
  readonly expiresAt: string
}

export type TokenDefect = 'malformed' | 'foreign' | 'expired'

const SHAPE = /^([0-9a-z]{1,11})\.([0-9a-z]{1,11})\.([\w-]{43})$/
const RADIX = 36

/** `<expiry>.<cycle>.<signature>`, safe on kernel command lines and in HTTP headers. */
export function renderBootToken(
  mac: Mac,
  { cycle, expiresAt }: BootToken,
  sign: (text: string) => string,
): string {
  const claims = `${renderTime(expiresAt)}.${renderTime(cycle)}`
  return `${claims}.${sign(textOf(mac, claims))}`
}

/**
 * `verify` compares in constant time. A forged token and another machine's both give `foreign`.
 * While a run is open (`isOpen`) the token does not expire: the clock may have been set since.
 */
export function parseBootToken(
  text: string,
  { mac, now, isOpen }: { readonly mac: Mac; readonly now: string; readonly isOpen: boolean },
  verify: (text: string, signature: string) => boolean,
): Result<BootToken, TokenDefect> {
  const [, expiry = '', cycle = '', signature = ''] = SHAPE.exec(text) ?? []
  if (signature === '') return refuse('malformed')
  if (!verify(textOf(mac, `${expiry}.${cycle}`), signature)) return refuse('foreign')
  const end = Number.parseInt(expiry, RADIX)
  if (!isOpen && end <= Temporal.Instant.from(now).epochMilliseconds) return refuse('expired')
  return accept({ cycle: parseTime(cycle), expiresAt: parseTime(expiry) })
}

/** For texts that people read: the kernel's log begins with its command line. */
export const hideBootTokens = (text: string): string =>
  text.replaceAll(HIDDEN, `${KERNEL_ARGS.token}=hidden`)

const HIDDEN = new RegExp(`${KERNEL_ARGS.token.replaceAll('.', '\\.')}=\\S+`, 'g')

const textOf = (mac: Mac, claims: string) => `boot:${mac}:${claims}`

const renderTime = (at: string) => Temporal.Instant.from(at).epochMilliseconds.toString(RADIX)

const parseTime = (digits: string) =>
  Temporal.Instant.fromEpochMilliseconds(Number.parseInt(digits, RADIX)).toString({
    fractionalSecondDigits: 3,
  })

/** Null: a flag (`gpt`). */
export type KernelArg = readonly [name: string, value: string | null]

/** The limit of x86 and arm64 kernels. */
const MAX_CHARACTERS = 2047

/** Nothing that ends a word, or is expanded, for the kernel or iPXE. */
const VALUE = /^[\w.~:/?=&%@,+[\]-]+$/
const NAME = /^[a-z][\w.-]*$/i

/** Values are made or checked before; throws a Fault for one that could be misread. */
export function renderKernelArgs(args: readonly KernelArg[]): string {
  const line = args.map(renderArg).join(' ')
  if (line.length > MAX_CHARACTERS) {
    throw new Fault('misuse', `a kernel command line of ${line.length} characters is too long`)
  }
  return line
}

/** The last argument of a name wins; flags are empty. Quotes work as for the kernel. */
export function parseKernelArgs(line: string): ReadonlyMap<string, string> {
  const args = new Map<string, string>()
  for (const [word] of line.trim().matchAll(/(?:"[^"]*"?|[^\s"])+/g)) {
    const text = word.startsWith('"') ? word.replaceAll('"', '') : word
    const [name = '', ...value] = text.split('=')
    if (name !== '') args.set(name, value.join('=').replaceAll('"', ''))
  }
  return args
}

function renderArg([name, value]: KernelArg): string {
  if (!NAME.test(name) || (value !== null && !VALUE.test(value))) {
    throw new Fault('misuse', `${JSON.stringify([name, value])} cannot be a kernel argument`)
  }
  return value === null ? name : `${name}=${value}`
}

// The other servers of a site, to which a machine goes that gets no answer from the first.

const NO_SERVERS: readonly string[] = []

/** Addresses are checked, no trailing slash; those besides the one at `base`. */
export const createOthers =
  (list: () => readonly string[]) =>
  (base: string): readonly string[] => {
    const servers = list()
    return servers.length === 0 ? NO_SERVERS : servers.filter((server) => !isSame(server, base))
  }

/** The scheme's default port may be written or not. */
const isSame = (one: string, two: string) => URL.parse(one)?.href === URL.parse(two)?.href
