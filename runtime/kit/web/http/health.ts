/** GET /healthz and GET /version: open to all, the same in both lines. */
import { after, type Eventual } from '#kit/foundation/eventual.ts'
import { keptJson } from '../answers/answers.ts'
import { refuse } from '../answers/faults.ts'
import type { Route } from '../answers/route.ts'

/**
 * Makes both routes; `/healthz` answers whatever the `Host` header is, and OPTIONS as well. `findObstacle`: why the server
 * cannot change anything at the moment, for load balancers, which ask `/healthz?ready`.
 */
export const healthRoutes = (
  version: string,
  findObstacle: () => Eventual<string | null> = () => null,
): readonly Route[] => [
  {
    ...tell(
      '/healthz',
      'Whether the server answers; with `?ready`, also whether it can change anything',
      HEALTHY,
    ),
    isForAnyHost: true,
    handle(event) {
      if (!event.url.searchParams.has('ready')) return keptJson(HEALTHY)
      return after(findObstacle(), (obstacle) => {
        if (obstacle !== null) throw refuse(503, obstacle)
        return keptJson(HEALTHY)
      })
    },
  },
  tell('/version', 'Which release answers', { version }),
]

const tell = (path: string, summary: string, answer: Readonly<Record<string, string>>): Route => ({
  method: 'GET',
  path,
  access: 'open',
  doc: {
    summary,
    answers: {
      200: {
        type: 'object',
        required: Object.keys(answer),
        properties: Object.fromEntries(Object.keys(answer).map((name) => [name, TEXT])),
      },
    },
  },
  handle: () => keptJson(answer),
})

const HEALTHY = { status: 'ok' }
const TEXT = { type: 'string' }
