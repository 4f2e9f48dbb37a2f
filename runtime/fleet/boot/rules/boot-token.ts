/** Boot tokens, by which a live system proves that this server booted it: `[pxe] tokens`. */
import { KERNEL_ARGS } from '../../../../appliance/contract.ts'
import type { Mac } from '../../../kit/net/rules/mac.ts'
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'

/** What a token says; the address that it comes to names the machine. */
export interface BootToken {
  /** When the cycle began for which the boot was offered: ISO time. */
  readonly cycle: string
  /** ISO time. */
  readonly expiresAt: string
}

export type TokenDefect = 'malformed' | 'foreign' | 'expired'

const SHAPE = /^([0-9a-z]{1,11})\.([0-9a-z]{1,11})\.([\w-]{43})$/
const RADIX = 36

/**
 * `<expiry>.<cycle>.<signature>`, in characters that kernel command lines and HTTP headers take.
 */
export function renderBootToken(
  mac: Mac,
  { cycle, expiresAt }: BootToken,
  sign: (text: string) => string,
): string {
  const claims = `${renderTime(expiresAt)}.${renderTime(cycle)}`
  return `${claims}.${sign(textOf(mac, claims))}`
}

/**
 * Checks a token. `verify` compares in constant time. Forged, and made for another machine, look
 * the same: `foreign`. While a run of the machine is open (`isOpen`) its token does not expire: the
 * clock may have been set since.
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

/** Hides tokens in texts that people read: the kernel's log begins with its command line. */
export const hideBootTokens = (text: string): string =>
  text.replaceAll(HIDDEN, `${KERNEL_ARGS.token}=hidden`)

const HIDDEN = new RegExp(`${KERNEL_ARGS.token.replaceAll('.', '\\.')}=\\S+`, 'g')

const textOf = (mac: Mac, claims: string) => `boot:${mac}:${claims}`

const renderTime = (at: string) => Temporal.Instant.from(at).epochMilliseconds.toString(RADIX)

const parseTime = (digits: string) =>
  Temporal.Instant.fromEpochMilliseconds(Number.parseInt(digits, RADIX)).toString({
    fractionalSecondDigits: 3,
  })
