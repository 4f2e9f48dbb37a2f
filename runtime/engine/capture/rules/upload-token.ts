/** One-time tokens, by which a captured image is uploaded to the cache (docs/decisions/0022). */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Mac } from '#kit/net/rules/mac.ts'

/** Key for captures: the server signs, the cache verifies. */
export const UPLOAD_KEY = 'capture uploads'

interface UploadToken {
  /** One capture of one machine, or one by hand. */
  readonly order: string
  /** Milliseconds since the epoch; of two tokens of an order, the later one counts. */
  readonly issuedAt: number
}

interface UploadPurpose {
  /** Null: not of a machine that the server drives. */
  readonly mac: Mac | null
  readonly name: string
}

type UploadTokenDefect = 'malformed' | 'foreign' | 'expired'

const SHAPE = /^([\w-]{8,64})\.([0-9a-z]{1,11})\.([\w-]{43})$/
const RADIX = 36
/** To begin; the duration of a capture is not limited. */
export const UPLOAD_TOKEN_HOURS = 24
const LIFETIME_MS = UPLOAD_TOKEN_HOURS * 3_600_000

/** `<order>.<issued>.<signature>`. */
export function renderUploadToken(
  { order, issuedAt }: UploadToken,
  purpose: UploadPurpose,
  sign: (text: string) => string,
): string {
  const issued = issuedAt.toString(RADIX)
  return `${order}.${issued}.${sign(textOf(order, issued, purpose))}`
}

/** `verify` compares in constant time. Refused: malformed, foreign, or expired. */
export function parseUploadToken(
  text: string,
  { now, ...purpose }: UploadPurpose & { readonly now: Date },
  verify: (text: string, signature: string) => boolean,
): Result<UploadToken, UploadTokenDefect> {
  const [, order = '', issued = '', signature = ''] = SHAPE.exec(text) ?? []
  if (signature === '') return refuse('malformed')
  if (!verify(textOf(order, issued, purpose), signature)) return refuse('foreign')
  const issuedAt = Number.parseInt(issued, RADIX)
  return Math.abs(now.getTime() - issuedAt) > LIFETIME_MS
    ? refuse('expired')
    : accept({ order, issuedAt })
}

export const UPLOAD_TOKEN_REFUSALS: Readonly<Record<UploadTokenDefect, string>> = {
  malformed: 'what was shown is no upload token',
  foreign:
    'the upload token is of another machine or image, or of a server that does not share the key of this cache (state directory or [server] session_secret)',
  expired: 'the upload token has expired',
}

const textOf = (order: string, issued: string, { mac, name }: UploadPurpose): string =>
  JSON.stringify([order, issued, mac ?? '', name])
