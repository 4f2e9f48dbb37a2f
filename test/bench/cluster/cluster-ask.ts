/** Asks the servers of a storm as a person does, each time another one of them. */
import { setTimeout as sleep } from 'node:timers/promises'
import { PASSWORD, until } from '#test/support/cluster/servers.ts'
import { login } from '#test/support/server/flasher-web.ts'

export type AskSite = Awaited<ReturnType<typeof createAsk>>

/** This is longer than a server holds a request. */
const PATIENCE_MS = 15_000
const AGAIN_MS = 1000

/** Asks any of the servers, with a session of a person. */
export async function createAsk(servers: readonly string[], random: () => number) {
  const [first = ''] = servers
  const { cookie } = await until(() => login(first, PASSWORD))
  const pick = () => servers[Math.floor(random() * servers.length)] ?? first

  /** Null: no answer came, or one that says that it may not have been done. */
  async function once(path: string, init: RequestInit, signal: AbortSignal) {
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)])
      const headers = { cookie, 'content-type': 'application/json' }
      const answer = await fetch(`${pick()}${path}`, { ...init, headers, signal: limit })
      const text = await answer.text()
      if (answer.status >= 500) return null
      return { status: answer.status, text }
    } catch {
      signal.throwIfAborted()
      return null
    }
  }

  return {
    once,
    /** Asks until there is an answer below 500. */
    async insist(path: string, init: RequestInit, signal: AbortSignal) {
      for (;;) {
        const answer = await once(path, init, signal)
        if (answer !== null) {
          if (answer.status > 299 && answer.status !== 404) {
            throw new Error(`${init.method ?? 'GET'} ${path}: ${answer.status} ${answer.text}`)
          }
          return answer
        }
        await sleep(AGAIN_MS, undefined, { signal })
      }
    },
  }
}
