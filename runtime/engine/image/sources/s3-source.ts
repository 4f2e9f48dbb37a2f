/** An image in a bucket as a Source: each request is signed for itself, so that no signature ends during a flash. */
import { fileNameOf } from '#kit/net/rules/image-location.ts'
import { createHttpClient } from '#kit/net/http-client.ts'
import { createRemote } from '#kit/net/http-remote.ts'
import { accessOf, type S3Access } from '#kit/net/s3/rules/s3-access.ts'
import { createS3Client } from '#kit/net/s3/s3-client.ts'
import type { HttpSourceOptions } from './http-source.ts'
import { createEnding, createRemoteReads } from './remote-reads.ts'
import type { Source } from './source.ts'

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
