/** A strict S3 bucket on loopback: it computes every signature itself, and refuses as the real service does. */
import { createHash, createHmac } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { sendFile, startHostileServer, type FileBehaviour } from './hostile-server.ts'

const SECRET = 'aVerySecret/Key+With=Signs'

export interface BucketOptions {
  readonly bucket?: string
  readonly region?: string
  /** Its clock, in milliseconds since 1970. */
  readonly now?: () => number
  /** Signatures of before this have expired, whatever they say, in milliseconds since 1970. */
  readonly expiresBefore?: () => number
  /** How it sends its objects; absent: decently. */
  readonly behaviour?: () => FileBehaviour
  /** Answers before anything is looked at; true: it did. */
  readonly before?: (request: IncomingMessage, response: ServerResponse) => boolean
  /** Who asks in the wrong region gets a redirect without an address. */
  readonly redirects?: boolean
}

export async function startBucket(options: BucketOptions = {}) {
  const { bucket = 'lab', region = 'us-east-1', now = Date.now, redirects = false } = options
  const objects = new Map<string, Buffer>()
  const { expiresBefore = () => 0 } = options
  const clock = { region, now, redirects, expiresBefore }
  const server = await startHostileServer((request, response) => {
    response.setHeader('date', new Date(now()).toUTCString())
    if (options.before?.(request, response) === true) return
    const asked = parse(request)
    const signed = readSignature(request, asked)
    const path = decodeURIComponent(asked.path)
    const refusal =
      findFault(request, asked, signed, clock) ??
      (path.startsWith(`/${bucket}/`) ? null : NO_BUCKET)
    const found = objects.get(path.slice(bucket.length + 2))
    if (refusal !== null || found === undefined) {
      sendRefusal(response, refusal ?? NO_KEY, region)
      return
    }
    const etag = `"${createHash('md5').update(found).digest('hex')}"`
    sendFile(found, request, response, { etag, ...options.behaviour?.() })
  })
  return {
    origin: server.origin,
    seen: server.seen,
    objects,
    env: {
      AWS_ENDPOINT_URL_S3: server.origin,
      AWS_ACCESS_KEY_ID: 'lab-key',
      AWS_SECRET_ACCESS_KEY: SECRET,
      AWS_REGION: region,
    },
    secret: SECRET,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

type Refusal = readonly [status: number, code: string, message: string, more?: string]

const NO_BUCKET: Refusal = [404, 'NoSuchBucket', 'No such bucket']
const NO_KEY: Refusal = [404, 'NoSuchKey', 'The key does not exist']

function sendRefusal(response: ServerResponse, refusal: Refusal, region: string): void {
  const [status, code, message, more = ''] = refusal
  if (status === 301) response.setHeader('x-amz-bucket-region', region)
  response.writeHead(status, { 'content-type': 'application/xml' })
  const text = `<Error><Code>${code}</Code><Message>${message}</Message>${more}</Error>`
  response.end(`<?xml version="1.0"?>${text}`)
}

const DATE = /^(\d{4})(..)(..)T(..)(..)(..)Z$/

type BucketClock = Required<Pick<BucketOptions, 'region' | 'now' | 'redirects' | 'expiresBefore'>>

/** Says what is wrong with a signature, in the order in which the real service looks; null: nothing is. */
function findFault(
  request: IncomingMessage,
  asked: Asked,
  signed: Signed | null,
  { region, now, redirects, expiresBefore }: BucketClock,
): Refusal | null {
  if (signed === null) return [403, 'AccessDenied', 'Access Denied']
  if (signed.accessKey !== 'lab-key') return [403, 'InvalidAccessKeyId', 'No such key']
  if (signed.region !== region) {
    const more = `<Region>${region}</Region>`
    return redirects
      ? [301, 'PermanentRedirect', 'Use the right endpoint']
      : [400, 'AuthorizationQueryParametersError', 'wrong region', more]
  }
  const late = now() - Date.parse(signed.date.replace(DATE, '$1-$2-$3T$4:$5:$6Z'))
  if (now() - late < expiresBefore()) return [403, 'AccessDenied', 'Request has expired']
  const untimely = findUntimely(late, signed.expires)
  if (untimely !== null) return untimely
  return signed.signature === computeSignature(request, asked, signed)
    ? null
    : [403, 'SignatureDoesNotMatch', 'The signature does not match']
}

/** `late`: the milliseconds since it was signed. */
function findUntimely(late: number, expires: number | null): Refusal | null {
  if (expires === null) {
    return Math.abs(late) > 900_000 ? [403, 'RequestTimeTooSkewed', 'Too far off'] : null
  }
  if (late < -900_000) return [403, 'AccessDenied', 'Request is not valid yet']
  return late > expires * 1000 ? [403, 'AccessDenied', 'Request has expired'] : null
}

interface Asked {
  readonly path: string
  readonly query: readonly (readonly [string, string])[]
}

function parse({ url = '' }: IncomingMessage): Asked {
  const [path = '', search = ''] = url.split('?', 2)
  const pairs = search === '' ? [] : search.split('&')
  const query = pairs.map((pair) => {
    const [name = '', value = ''] = pair.split('=', 2)
    return [decodeURIComponent(name), decodeURIComponent(value)] as const
  })
  return { path, query }
}

interface Signed {
  readonly accessKey: string
  readonly day: string
  readonly region: string
  readonly date: string
  readonly headers: string
  readonly signature: string
  /** Null: the signature is in a header. */
  readonly expires: number | null
}

const HEADER = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=(\w+)$/

function readSignature({ headers }: IncomingMessage, { query }: Asked): Signed | null {
  const given = new Map(query)
  if (!given.has('X-Amz-Signature')) {
    const parts = HEADER.exec(headers.authorization ?? '')?.slice(1) ?? []
    return readScope(parts, String(headers['x-amz-date']), null)
  }
  const of = (name: string) => given.get(name) ?? ''
  const names = ['X-Amz-Credential', 'X-Amz-SignedHeaders', 'X-Amz-Signature']
  return readScope(names.map(of), of('X-Amz-Date'), Number(of('X-Amz-Expires')))
}

function readScope(
  [credential = '', headers = '', signature = '']: readonly string[],
  date: string,
  expires: number | null,
): Signed | null {
  const [accessKey = '', day = '', region = '', ...rest] = credential.split('/')
  if (rest.join('/') !== 's3/aws4_request') return null
  return { accessKey, day, region, headers, signature, date, expires }
}

const encode = (text: string) =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  )

const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()

function computeSignature(
  request: IncomingMessage,
  { path, query }: Asked,
  signed: Signed,
): string {
  const scope = [signed.day, signed.region, 's3', 'aws4_request']
  const pairs = query
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => `${encode(name)}=${encode(value)}`)
    .toSorted()
  const names = signed.headers.split(';')
  const canonical = [
    request.method,
    decodeURIComponent(path).split('/').map(encode).join('/'),
    pairs.join('&'),
    ...names.map((name) => `${name}:${String(request.headers[name] ?? '').trim()}`),
    '',
    signed.headers,
    String(request.headers['x-amz-content-sha256'] ?? 'UNSIGNED-PAYLOAD'),
  ].join('\n')
  const digest = createHash('sha256').update(canonical).digest('hex')
  const text = ['AWS4-HMAC-SHA256', signed.date, scope.join('/'), digest].join('\n')
  const key = scope.reduce<string | Buffer>((secret, part) => hmac(secret, part), `AWS4${SECRET}`)
  return hmac(key, text).toString('hex')
}
