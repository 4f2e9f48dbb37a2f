/** GET /healthz and GET /version: open to all, the same in both lines. */
import { keptJson } from '../answers/answers.ts'
import type { Route } from '../answers/route.ts'

/** Makes both routes; `/healthz` answers whatever the `Host` header is. */
export const healthRoutes = (version: string): readonly Route[] => [
  { ...tell('/healthz', 'Whether the server answers', { status: 'ok' }), isForAnyHost: true },
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

const TEXT = { type: 'string' }
