/** An image on a web server as a Source: probed with HEAD or GET, read by ranges if supported. */
import {
  fileNameOf,
  isPresigned,
  renderSafeUrl,
  type HttpTarget,
} from '#kit/net/rules/image-location.ts'
import { createHttpClient } from '#kit/net/http-client.ts'
import { createRemote } from '#kit/net/http-remote.ts'
import { createEnding, createRemoteReads } from './remote-reads.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { Source } from './source.ts'

export interface HttpSourceOptions {
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
