/** Remote sources: a URL, a registry, a bucket; in order, and at any offset where the server supports ranges. */
import { createHash } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { Fault } from '#kit/foundation/fault.ts'
import type { Environment } from '#kit/host/shell.ts'
import { createHttpClient } from '#kit/net/http-client.ts'
import { createRemote, receive, type Remote } from '#kit/net/http-remote.ts'
import { READ_HINTS } from '#kit/net/registry/registry-entrance.ts'
import type { ResolvedBlob } from '#kit/net/registry/registry.ts'
import { type OrasRef, renderOrasRef } from '#kit/net/registry/rules/oras.ts'
import type { RangeRequest, Representation } from '#kit/net/rules/http-range.ts'
import {
  fileNameOf,
  type HttpTarget,
  isPresigned,
  renderSafeUrl,
} from '#kit/net/rules/image-location.ts'
import { brokenAt, notReachable } from '#kit/net/rules/network-failure.ts'
import { accessOf, type S3Access } from '#kit/net/s3/rules/s3-access.ts'
import type { Source } from './source.ts'

/** Lazy: an image from a URL needs neither. */
const loadRegistry = () => import('#kit/net/registry/registry.ts')
const loadS3 = () => import('#kit/net/s3/s3-client.ts')

function createEnding(given: AbortSignal | undefined) {
  const closing = new AbortController()
  const signal = AbortSignal.any([closing.signal, ...(given ? [given] : [])])
  setMaxListeners(0, signal) // one for each request under way
  return { signal, end: () => closing.abort() }
}

/** `slowMs`: waiting after which a slow server is a Fault `source-broken`; absent: never. */
function createRemoteReads(
  remote: Remote,
  known: Representation,
  slowMs: number | null = null,
): Pick<Source, 'readAt' | 'stream'> {
  const { sizeBytes } = known
  const pace = { waitedMs: 0, bytes: 0 }

  function read(wanted: RangeRequest): AsyncIterable<Buffer> {
    const chunks = receive({ remote, known, wanted })
    if (slowMs === null) return chunks
    const position = { name: remote.name, at: wanted.from, sizeBytes }
    return watchPace(chunks, pace, { position, slowMs })
  }

  async function readAt(into: Buffer, offset: number): Promise<number> {
    const to = Math.min(offset + into.length, sizeBytes ?? 0)
    let filled = 0
    const wanted = { from: offset, to, ranged: true }
    for await (const chunk of read(wanted)) {
      filled += chunk.copy(into, filled)
    }
    return filled
  }

  async function* stream(from = 0) {
    if (from > 0 && !known.ranges) {
      const position = { name: remote.name, at: from, sizeBytes }
      throw brokenAt(position, 'the server has no byte ranges')
    }
    yield* read({ from, to: sizeBytes, ranged: from > 0 })
  }

  return { readAt: known.ranges && sizeBytes !== null ? readAt : null, stream }
}

/** Bytes per second of one request; below, a server is slow. */
const SLOW_RATE = 64 * 1024

/** Counts only waits for the server, over all requests: a reader may take its time. */
async function* watchPace(
  chunks: AsyncIterable<Buffer>,
  pace: { waitedMs: number; bytes: number },
  {
    position,
    slowMs,
  }: { readonly position: Parameters<typeof brokenAt>[0]; readonly slowMs: number },
): AsyncGenerator<Buffer, void, undefined> {
  let since = performance.now()
  for await (const chunk of chunks) {
    pace.waitedMs += performance.now() - since
    pace.bytes += chunk.length
    if (pace.waitedMs >= slowMs) {
      const rate = (pace.bytes / pace.waitedMs) * 1000
      Object.assign(pace, { waitedMs: 0, bytes: 0 })
      if (rate < SLOW_RATE) {
        throw brokenAt(position, `the server is slow (${Math.round(rate / 1024)} KiB/s)`)
      }
    }
    yield chunk
    since = performance.now()
  }
}

interface HttpSourceOptions {
  readonly env: Environment
  readonly signal: AbortSignal | undefined
  readonly stallMs: number
  /** Before the first retry; each further one waits twice as long. */
  readonly retryMs: number
  /** Gives up after one retry. */
  readonly isHasty?: boolean
  /** Waiting after which a slow server is given up; absent: never. */
  readonly slowMs?: number
  /** A new address for a signed one that has expired. */
  readonly renew?: ((location: string) => Promise<string | null>) | undefined
}

/** Throws a Fault `input-missing` where the address has no image. */
export async function openHttpSource(
  target: HttpTarget,
  options: HttpSourceOptions,
): Promise<Source> {
  const { env, stallMs, retryMs, isHasty, slowMs } = options
  await using undo = new AsyncDisposableStack()
  const { signal, end } = createEnding(options.signal)
  const name = renderSafeUrl(target.url)
  const client = undo.use(createHttpClient({ env, signal, stallMs }))
  undo.defer(end)
  const remote = createRemote({
    name,
    target,
    client,
    signal,
    retryMs,
    isHasty,
    ...(isPresigned(target.url) ? { isGetOnly: true, renew: options.renew } : {}),
  })
  const known = await remote.inspect()
  const held = undo.move()
  return {
    name,
    fileName: fileNameOf({ kind: 'http', target }),
    path: null,
    url: name,
    sizeBytes: known.sizeBytes,
    version: known.validator,
    ...(known.sent === undefined ? {} : { sent: known.sent }),
    ...(known.sha256 === undefined ? {} : { servedSha256: known.sha256 }),
    ...createRemoteReads(remote, known, slowMs),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

export interface OrasSourceOptions extends HttpSourceOptions {
  /** Of an index; null: the only one, else this machine's. */
  readonly arch: string | null
  /** Such a layer is preferred to the largest. */
  readonly title?: RegExp
}

/** Rejects with a Fault: `input-missing` without such an image. */
export async function openOrasSource(ref: OrasRef, options: OrasSourceOptions): Promise<Source> {
  const { env, stallMs, retryMs, isHasty, slowMs, arch, title } = options
  await using undo = new AsyncDisposableStack()
  const { signal, end } = createEnding(options.signal)
  const name = renderOrasRef(ref)
  const { createRegistry } = await loadRegistry()
  const registry = undo.use(createRegistry({ env, signal, stallMs, retryMs }))
  undo.defer(end)
  const blob = await registry.resolve(ref, { arch, title })
  const target = { url: blob.url, authorization: null }
  const explain = (status: number) => explainMissing(status, blob)
  const remote = createRemote({
    name,
    target,
    client: blob.client,
    signal,
    retryMs,
    isHasty,
    explain,
  })
  const known = agree(name, blob, await remote.inspect())
  const { readAt, stream } = createRemoteReads(remote, known, slowMs)
  const sha256 = blob.digest.slice('sha256:'.length)

  async function* checked(from = 0) {
    // A start in the middle leaves the check of `sha256` to the reader.
    const hash = from === 0 ? createHash('sha256') : null
    for await (const chunk of stream(from)) {
      hash?.update(chunk)
      yield chunk
    }
    const found = hash?.digest('hex') ?? sha256
    if (found !== sha256) throw mismatch(name, sha256, found)
  }

  const held = undo.move()
  return {
    name,
    fileName: blob.title ?? '',
    isNameless: blob.title === null,
    path: null,
    url: name,
    sizeBytes: known.sizeBytes,
    version: blob.digest,
    sha256,
    ...(blob.indexSha256 === null ? {} : { indexSha256: blob.indexSha256 }),
    isPinned: ref.version.kind === 'digest',
    readAt,
    stream: checked,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** The digest names the bytes: parts need no ETag to be joined. */
function agree(name: string, { sizeBytes }: ResolvedBlob, found: Representation): Representation {
  if (sizeBytes !== null && found.sizeBytes !== null && sizeBytes !== found.sizeBytes) {
    const words = `its manifest says ${sizeBytes} bytes, the registry has ${found.sizeBytes}`
    throw notReachable(name, words)
  }
  const known = sizeBytes ?? found.sizeBytes
  return { sizeBytes: known, validator: null, ranges: found.ranges, isFixed: true }
}

/** A manifest may outlive bytes that a garbage collection has taken. */
function explainMissing(status: number, { digest, sizeBytes }: ResolvedBlob) {
  const isCollected = status === 404 && sizeBytes !== null
  return isCollected
    ? { reason: `its manifest is there, its data ${digest} is not: HTTP 404`, hint: COLLECTED }
    : { reason: `HTTP ${status}`, hint: READ_HINTS[status] }
}

const COLLECTED =
  'The garbage collection of the registry removed it. Push the image again, and exclude tagged images from the collection.'

const mismatch = (name: string, wanted: string, found: string) =>
  new Fault('digest-mismatch', `${name} holds ${found}, but ${wanted} was expected`, {
    hint: 'The registry sends other data than it announced. Download it again, or ask its administrator.',
  })

interface S3SourceOptions extends HttpSourceOptions {
  /** Absent: by the variables of AWS's tools. */
  readonly access: (() => Promise<S3Access>) | undefined
}

/** Throws a Fault `input-missing` with the reason. */
export async function openS3Source(source: string, options: S3SourceOptions): Promise<Source> {
  const { env, stallMs, retryMs, isHasty, slowMs, access } = options
  const opens = (await access?.()) ?? accessOf(env)
  await using undo = new AsyncDisposableStack()
  const { signal, end } = createEnding(options.signal)
  const http = undo.use(createHttpClient({ env, signal, stallMs }))
  undo.defer(end)
  const { createS3Client } = await loadS3()
  const client = createS3Client({ client: http, access: opens, source, now: () => new Date() })
  const { target, explain } = client
  const remote = createRemote({
    name: source,
    target,
    client,
    signal,
    retryMs,
    isHasty,
    isGetOnly: true,
    explain,
  })
  const known = await remote.inspect()
  const held = undo.move()
  return {
    name: source,
    fileName: fileNameOf({ kind: 's3', source }),
    path: null,
    url: source,
    sizeBytes: known.sizeBytes,
    version: known.validator,
    ...(known.sent === undefined ? {} : { sent: known.sent }),
    ...createRemoteReads(remote, known, slowMs),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}
