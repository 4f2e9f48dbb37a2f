/** One-time tokens, by which a live system fetches the first-boot configuration of its plan. */
import type { Mac } from '#kit/net/rules/mac.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

type SeedTokenDefect = 'malformed' | 'foreign' | 'expired' | 'used'

const SHAPE = /^([0-9a-z]{1,11})\.([\w-]{43})$/
const RADIX = 36
/** A live system fetches it before it begins to write. */
const LIFETIME_MS = 10 * 60_000

/** ISO 8601: later than the newest used one, whatever the clock says. */
export const decideIssue = (takenAt: string | null, now: string): string =>
  toText(Math.max(toMs(now), takenAt === null ? 0 : toMs(takenAt) + 1))

/** `<issued>.<signature>`. */
export function renderSeedToken(mac: Mac, issued: string, sign: (text: string) => string): string {
  const claims = toMs(issued).toString(RADIX)
  return `${claims}.${sign(textOf(mac, claims))}`
}

interface SeedTokenContext {
  readonly mac: Mac
  readonly now: string
  /** Of the newest token that this machine has used; null: none. */
  readonly takenAt: string | null
}

/**
 * `verify` compares in constant time. Refused: malformed, foreign, used, or older than ten minutes.
 */
export function parseSeedToken(
  text: string,
  { mac, now, takenAt }: SeedTokenContext,
  verify: (text: string, signature: string) => boolean,
): Result<string, SeedTokenDefect> {
  const [, claims = '', signature = ''] = SHAPE.exec(text) ?? []
  if (signature === '') return refuse('malformed')
  if (!verify(textOf(mac, claims), signature)) return refuse('foreign')
  const issued = Number.parseInt(claims, RADIX)
  if (takenAt !== null && issued <= toMs(takenAt)) return refuse('used')
  if (Math.abs(toMs(now) - issued) > LIFETIME_MS) return refuse('expired')
  return accept(toText(issued))
}

export const SEED_TOKEN_REFUSALS: Readonly<Record<SeedTokenDefect, string>> = {
  malformed: 'what was shown is no token of a plan',
  foreign: 'the token is not of this server and this machine',
  expired: 'the token has expired: request the plan again',
  used: 'the token was used already: request the plan again',
}

const textOf = (mac: Mac, claims: string) => `first-boot:${mac}:${claims}`

const toMs = (at: string) => Temporal.Instant.from(at).epochMilliseconds

const toText = (ms: number) =>
  Temporal.Instant.fromEpochMilliseconds(ms).toString({ fractionalSecondDigits: 3 })
