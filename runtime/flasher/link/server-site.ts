/** Asks the servers of a site: the one that answered last, and after its silence the next one that is there. */
import { isRecord } from '../../kit/foundation/shape.ts'
import type { Result } from '../../kit/foundation/result.ts'
import type { Environment } from '../../kit/host/shell.ts'
import { linger } from '../../kit/host/watch.ts'
import { isServerVersion } from '../../kit/net/rules/server-address.ts'
import { exchange, type Exchange, type Rejection } from './server-exchange.ts'

export interface SiteOptions {
  /** The address of the first one, without a slash at its end. */
  readonly base: string
  /** The others, in the order in which they are asked; absent: there are none. */
  readonly others?: readonly string[]
  /** Names FLASHER_CA_FILE; none where it is left out. */
  readonly env?: Environment
  /** Ends every call at once. */
  readonly signal: AbortSignal
  /** Milliseconds that a server has for its answer, where no other can be asked or it shows that it is there. */
  readonly timeoutMs?: number
  /** Milliseconds after which a silent server is left, if another one is there; 3 s when absent. */
  readonly silenceMs?: number
  /** This is called when another server than before is asked from now on. */
  onMove?(from: string, to: string): void
  /** This is called at each answer that asking again would not change. */
  onAnswer?(): void
}

type SiteRequest = Omit<Exchange, 'env' | 'signal' | 'timeoutMs'>

/** This is longer than a server holds a request while another one takes over (12 s). */
const TIMEOUT_MS = 15_000
const SILENCE_MS = 3000

/** Creates the site. Nothing is asked yet. */
export function createServerSite(options: SiteOptions) {
  const { base, others = [], env = {}, signal, timeoutMs = TIMEOUT_MS } = options
  const silenceMs = Math.min(options.silenceMs ?? SILENCE_MS, timeoutMs)
  const servers = [base, ...others]
  let current = base

  /** All of them, the one after `server` first and `server` itself last. */
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

  /** Another request may have left it already: then the one that is asked now has done nothing wrong. */
  function leave(server: string) {
    if (server === current) move(listAfter(server)[0] ?? server)
  }

  async function ask(path: string, sent: SiteRequest, limitMs: number) {
    const answer = await exchange(`${current}${path}`, { ...sent, env, signal, timeoutMs: limitMs })
    if (answer.ok || !answer.refusal.isPassing) options.onAnswer?.()
    return answer
  }

  /** Finds a server that is there, the current one before the others, and asks it; null: none is. */
  async function askWhoIsThere(path: string, sent: SiteRequest) {
    const after = listAfter(current)
    const order = [current, ...after.slice(0, -1)]
    const found = await findAlive(order, { env, signal, timeoutMs: silenceMs })
    if (found === null) return null
    move(found)
    const answer = await ask(path, sent, timeoutMs)
    // It is there and does not answer: the next one is asked next time.
    if (isSilent(answer)) leave(found)
    return answer
  }

  return {
    servers,
    /** The server that is asked. */
    current: () => current,
    /**
     * Asks a server of the site, and never throws. One that is silent is asked once more where it shows
     * that it is there: it may hold the request until another one has taken over. A server that cannot
     * answer for now (HTTP 5xx) is left for the next one as well, which is asked next time. One whose
     * certificate is not to be trusted has not answered.
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
 * Returns the first of the addresses that answers as our server does within `timeoutMs`
 * milliseconds, all of them asked at once; null where none does. `bases` are sorted, the best
 * first.
 */
export const findServer = (
  bases: readonly string[],
  options: SearchOptions,
): Promise<string | null> => findFirst(bases, '/version', isServerVersion, options)

interface ServerSearch extends Required<Pick<SiteOptions, 'signal' | 'env'>> {
  /** How long they are asked again, in milliseconds. */
  readonly ms: number
  /** Called once, when the first try found none. */
  onWait(): void
}

const TRY_MS = 1000

/** Asks the addresses as `findServer` does until one answers; null: none did in time. */
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

/** The same of servers that are known to be ours: this they answer even without a leader. */
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
