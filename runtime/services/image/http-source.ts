/** An image on a web server as a Source: probed with HEAD or GET, read by ranges if supported. */
import { setMaxListeners } from 'node:events'
import { fileNameOf, renderSafeUrl, type HttpTarget } from '../../core/net/image-location.ts'
import { createHttpClient } from '../net/http-client.ts'
import { createRemote } from '../net/http-remote.ts'
import { createRemoteReads } from './remote-reads.ts'
import type { Environment } from '../host/shell.ts'
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
  const closing = new AbortController()
  const signal = AbortSignal.any([closing.signal, ...(options.signal ? [options.signal] : [])])
  setMaxListeners(0, signal) // one for each request under way
  const name = renderSafeUrl(target.url)
  const client = createHttpClient({ env, signal, stallMs })
  const remote = createRemote({ name, target, client, signal, retryMs })
  const close = async () => {
    closing.abort()
    await client[Symbol.asyncDispose]()
  }
  try {
    const known = await remote.look()
    return {
      name,
      fileName: fileNameOf({ kind: 'http', target }),
      path: null,
      url: name,
      sizeBytes: known.sizeBytes,
      version: known.validator,
      ...createRemoteReads(remote, known),
      [Symbol.asyncDispose]: close,
    }
  } catch (thrown) {
    await close()
    throw thrown
  }
}
