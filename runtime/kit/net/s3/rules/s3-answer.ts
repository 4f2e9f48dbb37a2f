/** Reads what a bucket's service answers instead of an object, and says what that means and what helps. */
import { printable } from '#kit/foundation/printable.ts'
import type { Headers } from '#kit/net/rules/http-range.ts'

/** Why a service refused. Texts of it are short, and can be shown. */
export interface S3Refusal {
  readonly status: number
  /** `NoSuchKey`; empty: the service named none. */
  readonly code: string
  readonly message: string
  /** How far this host's clock is ahead of the service's, in seconds; null: it did not say its time. */
  readonly aheadSeconds: number | null
}

/** The most that is read of a refusal, in bytes. */
export const MAX_REFUSAL_BYTES = 16_384

const REGION = /^[a-z0-9-]{1,40}$/

/** Parses a refusal; the body is hostile XML, of which two short texts are taken. */
export function parseRefusal(status: number, body: string, aheadSeconds: number | null): S3Refusal {
  return {
    status,
    code: /<Code>\s*([A-Za-z0-9.]{1,64})\s*<\/Code>/.exec(body)?.[1] ?? '',
    message: printable(/<Message>([^<]{1,200})/.exec(body)?.[1] ?? ''),
    aheadSeconds,
  }
}

/** Null: the service does not say. */
export function findRegion(headers: Headers, body: string): string | null {
  const named = textOf(headers, 'x-amz-bucket-region') || (/<Region>([^<]*)/.exec(body)?.[1] ?? '')
  return REGION.test(named) ? named : null
}

type S3RefusalWords = {
  readonly reason: string
  readonly hint: string | undefined
}

/** Says in a clause why an object is unavailable. `hasKeys`: it was asked for with keys. */
export function explainRefusal(refusal: S3Refusal, hasKeys: boolean): S3RefusalWords {
  const { status, code, message } = refusal
  const skew = findSkew(refusal)
  if (skew !== null) return { reason: skew, hint: 'Set the clock of this host.' }
  const known = WORDS.get(code)
  if (known !== undefined) return known
  if (code === 'AccessDenied' || (code === '' && status === 403)) {
    return { reason: 'access denied', hint: hasKeys ? NOT_ALLOWED : NO_KEYS }
  }
  const detail = [code, message].filter(Boolean).join(': ')
  return { reason: `HTTP ${status}${detail === '' ? '' : ` ${detail}`}`, hint: undefined }
}

/** Services allow a quarter of an hour. */
const SKEW_SECONDS = 300

function findSkew({ code, message, aheadSeconds }: S3Refusal): string | null {
  // It was signed a moment ago: what has expired, or is not valid yet, is a clock.
  const isTime =
    code === 'RequestTimeTooSkewed' ||
    (code === 'AccessDenied' && /expired|not valid yet/i.test(message))
  if (!isTime) return null
  if (aheadSeconds === null || Math.abs(aheadSeconds) < SKEW_SECONDS) {
    return "the clock of this host differs from the service's"
  }
  const minutes = Math.round(Math.abs(aheadSeconds) / 60)
  return `the clock of this host is ${minutes} minutes ${aheadSeconds > 0 ? 'ahead of' : 'behind'} the service's`
}

const KEYS = 'AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or access_key and secret_key in [s3]'
const NOT_ALLOWED =
  'Allow these keys s3:GetObject there; without s3:ListBucket an absent object looks the same.'
const NO_KEYS = `The bucket is not public: set ${KEYS}.`
const REGION_HINT = 'Set AWS_REGION, or region in [s3], to the region of the bucket.'

const WORDS: ReadonlyMap<string, S3RefusalWords> = new Map([
  [
    'NoSuchKey',
    {
      reason: 'the bucket has no such object',
      hint: 'Correct the key, in which upper and lower case differ.',
    },
  ],
  [
    'NoSuchBucket',
    { reason: 'there is no such bucket', hint: 'Correct the bucket, or the endpoint.' },
  ],
  [
    'SignatureDoesNotMatch',
    { reason: 'the secret key is not the one of the access key', hint: `Correct ${KEYS}.` },
  ],
  ['InvalidAccessKeyId', { reason: 'the access key is unknown', hint: `Correct ${KEYS}.` }],
  ['ExpiredToken', { reason: 'the keys have expired', hint: `Set new ones: ${KEYS}.` }],
  ['PermanentRedirect', { reason: 'the bucket is in another region', hint: REGION_HINT }],
  [
    'AuthorizationHeaderMalformed',
    { reason: 'the bucket is in another region', hint: REGION_HINT },
  ],
  [
    'AuthorizationQueryParametersError',
    { reason: 'the service refuses the signature', hint: REGION_HINT },
  ],
])

function textOf(headers: Headers, name: string): string {
  const value = headers[name]
  return typeof value === 'string' ? value : ''
}
