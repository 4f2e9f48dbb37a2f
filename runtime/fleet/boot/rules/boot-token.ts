/** Boot tokens, by which a live system proves that this server booted it: `[pxe] tokens`. */
import { KERNEL_ARGS } from '#appliance/contract.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

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
