/** An HTTP client for one object of a bucket: each request is signed anew, in the region that the service names. */
import { Fault } from '#kit/foundation/fault.ts'
import {
  createHttpClient,
  type HttpAnswer,
  type HttpClient,
  type HttpRequest,
} from '../http-client.ts'
import { type HttpTarget, isRedirect, nextTarget } from '../rules/image-location.ts'
import {
  chooseAccess,
  explainRefusal,
  findRegion,
  isEndpoint,
  MAX_REFUSAL_BYTES,
  objectUrl,
  parseRefusal,
  parseS3Source,
  type S3Access,
  type S3Refusal,
  type S3Settings,
} from './rules/s3-access.ts'
import { readFile } from 'node:fs/promises'
import type { Environment } from '#kit/host/shell.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { createRemote } from '../http-remote.ts'
import { findOtherSize } from '../rules/http-range.ts'

interface S3ClientOptions {
  readonly client: Pick<HttpClient, 'fetch'>
  readonly access: S3Access
  /** The canonical `s3://bucket/key`. */
  readonly source: string
  readonly now: () => Date
}

/** Longer than a request waits for its first byte, and no longer than a leaked address should work. */
const SIGNED_SECONDS = 300

/**
 * Creates the client; `target` is what it is asked for, unsigned. Only GET may be asked for. Throws a
 * Fault `input-invalid` where `access` names no service.
 */
export function createS3Client({ client, access, source, now }: S3ClientOptions) {
  if (!isEndpoint(access.endpoint)) {
    throw new Fault(
      'input-invalid',
      'the address of the S3 service is not like http://host:port, without a query or credentials',
      { hint: 'Correct AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or endpoint in [s3].' },
    )
  }
  const target: HttpTarget = {
    url: objectUrl(access, parseS3Source(source)),
    authorization: null,
  }
  let { region } = access
  let refused: S3Refusal | null = null

  async function ask(request: HttpRequest): Promise<HttpAnswer> {
    const signing = { at: now(), seconds: SIGNED_SECONDS }
    const url = await presign({ ...access, region }, source, signing)
    return await client.fetch({ url, authorization: null }, { ...request, redirects: 'answer' })
  }

  async function readRefusal(answer: HttpAnswer): Promise<string> {
    const { status, headers } = answer
    const body = await readText(answer)
    refused = parseRefusal(status, body, aheadOf(headers.date, now()))
    return body
  }

  /** The answer to a request, of which the body was not looked at where it is the object. */
  async function fetch(_asked: HttpTarget, request: HttpRequest): Promise<HttpAnswer> {
    const first = await ask(request)
    if (first.status < 300) return { ...first, target }
    const { status, headers } = first
    const found = findRegion(headers, await readRefusal(first))
    if (found !== null && found !== region) {
      region = found
      const second = await ask(request)
      if (second.status >= 300) await readRefusal(second)
      return { ...second, target }
    }
    if (!isRedirect(status) || headers.location === undefined) return { ...first, target }
    // The signature was for the other host: what this one wants is in the address that it gave.
    const next = nextTarget(target, headers.location)
    if (!next.ok) return { ...first, target }
    return { ...(await client.fetch(next.value, request)), target }
  }

  return {
    target,
    fetch,
    /** The region in which the object was found, which may be another one than was set. */
    region: () => region,
    explain: (status: number) =>
      refused?.status === status
        ? explainRefusal(refused, access.keys !== null)
        : { reason: `HTTP ${status}`, hint: undefined },
  }
}

/** Null: the service did not say what time it is there. */
function aheadOf(date: string | undefined, now: Date): number | null {
  const theirs = Date.parse(date ?? '')
  return Number.isNaN(theirs) ? null : Math.round((now.getTime() - theirs) / 1000)
}

async function readText(answer: HttpAnswer): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of answer.body()) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > MAX_REFUSAL_BYTES) break
  }
  answer.drop()
  return Buffer.concat(chunks).toString('utf8', 0, MAX_REFUSAL_BYTES)
}

/** Signs the address of an object, so that whoever has it may read that object for a while. */
interface SigningOptions {
  /** The time from which it is valid. */
  readonly at: Date
  /** How long it is valid; services allow at most seven days. */
  readonly seconds: number
}

/** Returns the address for `GET`; without keys it is the plain one. */
export async function presign(
  access: S3Access,
  source: string,
  { at, seconds }: SigningOptions,
): Promise<string> {
  const { region, keys } = access
  const url = new URL(objectUrl(access, parseS3Source(source)))
  if (keys === null) return url.href
  const { AwsV4Signer } = await import('aws4fetch')
  url.searchParams.set('X-Amz-Expires', String(seconds))
  const signer = new AwsV4Signer({
    method: 'GET',
    url: url.href,
    service: 's3',
    region,
    accessKeyId: keys.accessKey,
    secretAccessKey: keys.secretKey,
    ...(keys.sessionToken === null ? {} : { sessionToken: keys.sessionToken }),
    signQuery: true,
    datetime: at.toISOString().replace(/[:-]|\.\d{3}/g, ''),
  })
  const signed = await signer.sign()
  return signed.url.href
}

/**
 * Rejects with a Fault `input-missing` where the file cannot be read, and `input-invalid` where
 * there is an access key without a secret one.
 */
export async function readS3Access(settings: S3Settings, env: Environment): Promise<S3Access> {
  const { access_key: accessKey, secret_key_file: path } = settings
  if (accessKey === '') return chooseAccess(settings, env)
  const secretKey = path === '' ? settings.secret_key : await readFirstLine(path)
  if (secretKey !== '') return chooseAccess({ ...settings, secret_key: secretKey }, env)
  throw new Fault('input-invalid', 's3.access_key has no secret key', {
    hint: 'Set s3.secret_key, or s3.secret_key_file to a file with the key in its first line.',
  })
}

async function readFirstLine(path: string): Promise<string> {
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw new Fault('input-missing', `${path} (s3.secret_key_file) cannot be read`, { cause })
  })
  return text.split('\n')[0]?.trim() ?? ''
}

interface ObjectOptions {
  readonly env: Environment
  readonly signal: AbortSignal
  readonly stallMs: number
  readonly retryMs: number
  readonly access: S3Access
  readonly now: () => Date
  /** How long the address is valid. */
  readonly seconds: number
}

/**
 * Returns the signed address of a canonical `s3://bucket/key`. A refusal says in a clause why there
 * is none; rejects with a Fault where the object is unavailable.
 */
export async function findOpenObject(
  { env, signal, stallMs, retryMs, access, now, seconds }: ObjectOptions,
  source: string,
  wanted: { readonly sizeBytes: number | null },
): Promise<Result<string, string>> {
  await using http = createHttpClient({ env, signal, stallMs })
  const client = createS3Client({ client: http, access, source, now })
  const { target, explain } = client
  const looked = { name: source, target, client, signal, retryMs, explain }
  const remote = createRemote({ ...looked, isHasty: true, isGetOnly: true })
  const known = await remote.inspect()
  if (!known.ranges) return refuse('it has no byte ranges')
  const other = findOtherSize(known.sizeBytes, wanted.sizeBytes)
  if (other !== null) return refuse(other)
  return accept(
    await presign({ ...access, region: client.region() }, source, { at: now(), seconds }),
  )
}
