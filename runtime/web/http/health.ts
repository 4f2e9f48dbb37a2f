/** GET /healthz and GET /version: open to all, the same in both lines. */
import type { Route } from './route.ts'

const textOf = (name: string) => ({
  type: 'object',
  required: [name],
  properties: { [name]: { type: 'string' } },
})

export const healthRoutes = (version: string): readonly Route[] => [
  {
    method: 'GET',
    path: '/healthz',
    access: 'open',
    doc: { summary: 'Whether the server answers', answers: { 200: textOf('status') } },
    handle: () => ({ status: 'ok' }),
  },
  {
    method: 'GET',
    path: '/version',
    access: 'open',
    doc: { summary: 'Which release answers', answers: { 200: textOf('version') } },
    handle: () => ({ version }),
  },
]
