/** An image in an OCI registry as a Source: resolved when opened, its digest checked while read. */
import { createHash } from 'node:crypto'
import { Fault } from '#kit/foundation/fault.ts'
import type { Representation } from '#kit/net/rules/http-range.ts'
import { renderOrasRef, type OrasRef } from '#kit/net/registry/rules/oras.ts'
import { notReachable } from '#kit/net/rules/network-failure.ts'
import { createRemote } from '#kit/net/http-remote.ts'
import type { HttpSourceOptions } from './http-source.ts'
import { createRegistry, type ResolvedBlob } from '#kit/net/registry/registry.ts'
import { READ_HINTS } from '#kit/net/registry/registry-entrance.ts'
import { createEnding, createRemoteReads } from './remote-reads.ts'
import type { Source } from './source.ts'

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
    ? { reason: `its manifest is there, its bytes ${digest} are gone: HTTP 404`, hint: COLLECTED }
    : { reason: `HTTP ${status}`, hint: READ_HINTS[status] }
}

const COLLECTED =
  'The registry has collected them as garbage: push the image again, and let its collection spare what is tagged.'

const mismatch = (name: string, wanted: string, found: string) =>
  new Fault('digest-mismatch', `${name} holds ${found}, but ${wanted} was expected`, {
    hint: 'What the registry sends is not what it promised: download it again, or ask whoever keeps it.',
  })
