/** An image on a web server as a Source: probed with HEAD or GET, read by ranges if supported. */
import {
  fileNameOf,
  renderSafeUrl,
  type HttpTarget,
} from '../../../kit/net/rules/image-location.ts'
import { createHttpClient } from '../../../kit/net/http-client.ts'
import { createRemote } from '../../../kit/net/http-remote.ts'
import { createEnding, createRemoteReads } from './remote-reads.ts'
import type { Environment } from '../../../kit/host/shell.ts'
import type { Source } from './source.ts'

export interface HttpSourceOptions {
  readonly env: Environment
  readonly signal: AbortSignal | undefined
  /** The longest wait for a next byte, in milliseconds. */
  readonly stallMs: number
  /** Milliseconds before the first repeat; each further one waits twice as long. */
  readonly retryMs: number
}

/** Throws a Fault `input-missing` where the address has no image. */
export async function openHttpSource(
  target: HttpTarget,
  options: HttpSourceOptions,
): Promise<Source> {
  const { env, stallMs, retryMs } = options
  await using undo = new AsyncDisposableStack()
  const { signal, end } = createEnding(options.signal)
  const name = renderSafeUrl(target.url)
  const client = undo.use(createHttpClient({ env, signal, stallMs }))
  undo.defer(end)
  const remote = createRemote({ name, target, client, signal, retryMs })
  const known = await remote.look()
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
    ...createRemoteReads(remote, known),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}
