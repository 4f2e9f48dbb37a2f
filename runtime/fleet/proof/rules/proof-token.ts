/** Signs the part of a one-time address by which only one system, flashed by one run, says that it has booted. */
import type { Mac } from '../../../kit/net/rules/mac.ts'

const SHAPE = /^([0-9a-z]{1,11})\.([\w-]{43})$/
const RADIX = 36

/** Renders the token of a first-boot configuration that was fetched with the seed token of `issued` (ISO 8601). */
export function renderProofToken(mac: Mac, issued: string, sign: (text: string) => string): string {
  const claims = Temporal.Instant.from(issued).epochMilliseconds.toString(RADIX)
  return `${claims}.${sign(textOf(mac, claims))}`
}

/**
 * Returns the time of the seed token (ISO 8601, milliseconds) that a token belongs to; null: it is not
 * of this server and this machine. `verify` compares in constant time.
 */
export function parseProofToken(
  text: string,
  mac: Mac,
  verify: (text: string, signature: string) => boolean,
): string | null {
  const [, claims = '', signature = ''] = SHAPE.exec(text) ?? []
  if (signature === '' || !verify(textOf(mac, claims), signature)) return null
  const at = Temporal.Instant.fromEpochMilliseconds(Number.parseInt(claims, RADIX))
  return at.toString({ fractionalSecondDigits: 3 })
}

const textOf = (mac: Mac, claims: string) => `booted:${mac}:${claims}`
