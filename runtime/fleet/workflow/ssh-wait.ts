/** Waits until SSH answers at a machine that is booting. */
import { connect } from 'node:net'
import { renderError } from '#kit/foundation/fault.ts'
import { linger } from '#kit/host/watch.ts'

export interface SshWaitOptions {
  /** Read before each attempt; null: not known yet. */
  findHost(): string | null
  readonly port: number
  readonly signal: AbortSignal
  /** Called for each new reason. */
  onProblem(problem: string): void
}

const EVERY_MS = 2000
const MAX_ATTEMPT_MS = 5000

/** Returns the host. Throws the signal's reason when aborted. */
export async function awaitSsh(options: SshWaitOptions): Promise<string> {
  const { findHost, port, signal } = options
  let reported = ''
  for (;;) {
    signal.throwIfAborted()
    const host = findHost()
    const problem =
      host === null ? 'no address of the machine is known yet' : await tryBanner(host, port, signal)
    if (problem === null && host !== null) return host
    if (problem !== null && problem !== reported) options.onProblem(problem)
    reported = problem ?? ''
    await linger(EVERY_MS, signal)
  }
}

/** Null: an SSH server greeted. An open port alone proves nothing: it may be a proxy's. */
function tryBanner(host: string, port: number, signal: AbortSignal): Promise<string | null> {
  const { promise, resolve } = Promise.withResolvers<string | null>()
  const socket = connect({ host, port, signal })
  socket.setTimeout(MAX_ATTEMPT_MS, () => end('no answer'))
  function end(problem: string | null) {
    socket.destroy()
    resolve(problem === null ? null : `SSH at ${host} port ${port}: ${problem}`)
  }
  socket.on('error', (thrown) => end(renderError(thrown)))
  socket.on('close', () => end('the connection was closed'))
  socket.once('data', (greeting) => {
    end(greeting.toString('latin1').startsWith('SSH-') ? null : 'what answers is not SSH')
  })
  return promise
}
