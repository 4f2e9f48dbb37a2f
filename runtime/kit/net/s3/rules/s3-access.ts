/** What opens buckets: where the service is, and with which keys; and the address of one object there. */
import { printable } from '#kit/foundation/printable.ts'
import type { Headers } from '#kit/net/rules/http-range.ts'

export interface S3Access {
  /** `https://s3.example.org`, without a slash at its end; empty: that of AWS in the region. */
  readonly endpoint: string
  readonly region: string
  /** Null: objects are asked for anonymously. */
  readonly keys: S3Keys | null
}

interface S3Keys {
  readonly accessKey: string
  readonly secretKey: string
  /** What belongs to keys that are good for a while; null: these are not. */
  readonly sessionToken: string | null
}

interface S3Object {
  readonly bucket: string
  readonly key: string
}

/** The region that services of other makers expect, and the first one of AWS. */
const USUAL_REGION = 'us-east-1'

type S3Variables = Readonly<Record<string, string | undefined>>

/** Reads the variables by which the tools of AWS know a service and its keys. */
export function accessOf(env: S3Variables): S3Access {
  const accessKey = env['AWS_ACCESS_KEY_ID'] ?? ''
  const secretKey = env['AWS_SECRET_ACCESS_KEY'] ?? ''
  const sessionToken = env['AWS_SESSION_TOKEN'] || null
  const endpoint = env['AWS_ENDPOINT_URL_S3'] || env['AWS_ENDPOINT_URL'] || ''
  return {
    endpoint: endpoint.replace(/\/+$/, ''),
    region: env['AWS_REGION'] || env['AWS_DEFAULT_REGION'] || USUAL_REGION,
    keys: accessKey === '' || secretKey === '' ? null : { accessKey, secretKey, sessionToken },
  }
}

export interface S3Settings {
  readonly endpoint: string
  readonly region: string
  readonly access_key: string
  readonly secret_key: string
  readonly secret_key_file: string
}

/** Returns what opens buckets: what is set, else what `env` says. Keys of two places are never mixed. */
export function chooseAccess(
  settings: Omit<S3Settings, 'secret_key_file'>,
  env: S3Variables,
): S3Access {
  const others = accessOf(env)
  const { access_key: accessKey, secret_key: secretKey } = settings
  return {
    endpoint: settings.endpoint || others.endpoint,
    region: settings.region || others.region,
    keys: accessKey === '' ? others.keys : { accessKey, secretKey, sessionToken: null },
  }
}

/**
 * Tells whether requests can be made below an endpoint: variables are not checked as settings are. One
 * with a password would be in every signed address.
 */
export const isEndpoint = (text: string): boolean =>
  text === '' || (/^https?:\/\/[^\s\\?#@]+$/i.test(text) && URL.canParse(text))

export function parseS3Source(source: string): S3Object {
  const [, bucket = '', key = ''] = /^s3:\/\/([^/]*)\/(.*)$/s.exec(source) ?? []
  return { bucket, key }
}

/** Renders the address of an object with its bucket as the first part of the path, unsigned. */
export function objectUrl({ endpoint, region }: S3Access, { bucket, key }: S3Object): string {
  const base = endpoint === '' ? `https://s3.${region}.amazonaws.com` : endpoint
  return `${base}/${bucket}/${key.split('/').map(encodePart).join('/')}`
}

/** As signatures are computed: all but letters, digits and `-._~`. */
const encodePart = (part: string) =>
  encodeURIComponent(part).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )

// Reads what a bucket's service answers instead of an object, and says what that means and what helps.

/** Why a service refused. Texts of it are short, and can be shown. */
export interface S3Refusal {
  readonly status: number
  /** `NoSuchKey`; empty: the service named none. */
  readonly code: string
  readonly message: string
  /** How far this host's clock is ahead of the service's, in seconds; null: it did not say its time. */
  readonly aheadSeconds: number | null
}

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
  'Allow these keys s3:GetObject there; without s3:ListBucket a missing object looks the same.'
const NO_KEYS = `The bucket is not public: set ${KEYS}.`
const REGION_HINT = 'Set AWS_REGION, or region in [s3], to the region of the bucket.'

const WORDS: ReadonlyMap<string, S3RefusalWords> = new Map([
  [
    'NoSuchKey',
    {
      reason: 'the bucket has no such object',
      hint: 'Check the key; it is case-sensitive.',
    },
  ],
  [
    'NoSuchBucket',
    { reason: 'there is no such bucket', hint: 'Correct the bucket, or the endpoint.' },
  ],
  [
    'SignatureDoesNotMatch',
    { reason: 'the secret key does not belong to the access key', hint: `Correct ${KEYS}.` },
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
