/** Asks the servers of a site: the one that answered last, and after its silence the next one that is there. */
import { isRecord } from '#kit/foundation/shape.ts'
import type { Result } from '#kit/foundation/result.ts'
import type { Environment } from '#kit/host/shell.ts'
import { linger } from '#kit/host/watch.ts'
import { isServerVersion } from '#kit/net/rules/host-header.ts'
import { exchange, type Exchange, type Rejection } from './server-exchange.ts'

export interface SiteOptions {
  /** Without a slash at its end. */
  readonly base: string
  /** In the order of asking. */
  readonly others?: readonly string[]
  readonly env?: Environment
  /** Ends every call at once. */
  readonly signal: AbortSignal
  /** For an answer of a server that shows that it is there, or has no substitute. */
  readonly timeoutMs?: number
  /** Silence after which another server is asked. */
  readonly silenceMs?: number
  /** From now on another server is asked. */
  onMove?(from: string, to: string): void
  /** Called at each answer that asking again would not change. */
  onAnswer?(): void
}

type SiteRequest = Omit<Exchange, 'env' | 'signal' | 'timeoutMs'>

/** Longer than a server holds a request while another one takes over (12 s). */
const TIMEOUT_MS = 15_000
const SILENCE_MS = 3000

export function createServerSite(options: SiteOptions) {
  const { base, others = [], env = {}, signal, timeoutMs = TIMEOUT_MS } = options
  const silenceMs = Math.min(options.silenceMs ?? SILENCE_MS, timeoutMs)
  const servers = [base, ...others]
  let current = base

  /** From the one after `server` to `server` itself. */
  function listAfter(server: string): readonly string[] {
    const at = servers.indexOf(server) + 1
    return [...servers.slice(at), ...servers.slice(0, at)]
  }

  function move(to: string) {
    if (to === current) return
    const from = current
    current = to
    options.onMove?.(from, to)
  }

  /** Another request may have left `server` already. */
  function leave(server: string) {
    if (server === current) move(listAfter(server)[0] ?? server)
  }

  async function ask(path: string, sent: SiteRequest, limitMs: number) {
    const answer = await exchange(`${current}${path}`, { ...sent, env, signal, timeoutMs: limitMs })
    if (answer.ok || !answer.refusal.isPassing) options.onAnswer?.()
    return answer
  }

  /** Null: no server is there. */
  async function askWhoIsThere(path: string, sent: SiteRequest) {
    const after = listAfter(current)
    const order = [current, ...after.slice(0, -1)]
    const found = await findAlive(order, { env, signal, timeoutMs: silenceMs })
    if (found === null) return null
    move(found)
    const answer = await ask(path, sent, timeoutMs)
    // It is there but silent: next time the next one is asked.
    if (isSilent(answer)) leave(found)
    return answer
  }

  return {
    servers,
    current: () => current,
    /**
     * Never throws. A silent server that shows that it is there is asked once more, as it may hold
     * the request until another one has taken over. After HTTP 5xx the next one is asked next time.
     */
    async ask(path: string, sent: SiteRequest = {}): Promise<Result<unknown, Rejection>> {
      if (others.length === 0) return await ask(path, sent, timeoutMs)
      const asked = current
      const answer = await ask(path, sent, silenceMs)
      if (isSilent(answer)) return (await askWhoIsThere(path, sent)) ?? answer
      const isUnable = !answer.ok && answer.refusal.isPassing && (answer.refusal.status ?? 0) >= 500
      if (isUnable) leave(asked)
      return answer
    },
  }
}

const isSilent = (answer: Result<unknown, Rejection>) =>
  !answer.ok && answer.refusal.status === null

type SearchOptions = Pick<SiteOptions, 'signal' | 'env' | 'timeoutMs'>

/**
 * Asks all at once; null: none answered as our server within `timeoutMs`. `bases`: the best first.
 */
export const findServer = (
  bases: readonly string[],
  options: SearchOptions,
): Promise<string | null> => findFirst(bases, '/version', isServerVersion, options)

interface ServerSearch extends Required<Pick<SiteOptions, 'signal' | 'env'>> {
  readonly ms: number
  /** Called once. */
  onWait(): void
}

const TRY_MS = 1000

/** Null: none answered in time. */
export async function searchServer(
  bases: readonly string[],
  { signal, env, ms, onWait }: ServerSearch,
): Promise<string | null> {
  const deadline = performance.now() + ms
  for (let tries = 1; ; tries += 1) {
    const found = await findServer(bases, { env, signal })
    if (found !== null || signal.aborted || performance.now() + TRY_MS > deadline) return found
    if (tries === 1) onWait()
    await linger(TRY_MS, signal)
  }
}

/** For servers known to be ours: they answer `/healthz` even without a leader. */
const findAlive = (bases: readonly string[], options: SearchOptions): Promise<string | null> =>
  findFirst(bases, '/healthz', (answer) => isRecord(answer) && answer['status'] === 'ok', options)

async function findFirst(
  bases: readonly string[],
  path: string,
  isOurs: (document: unknown) => boolean,
  { signal, env = {}, timeoutMs = 5000 }: SearchOptions,
): Promise<string | null> {
  const answers = bases.map(async (base) => {
    const answer = await exchange(`${base}${path}`, { env, timeoutMs, signal })
    return answer.ok && isOurs(answer.value)
  })
  for (const [index, base] of bases.entries()) if ((await answers[index]) === true) return base
  return null
}
