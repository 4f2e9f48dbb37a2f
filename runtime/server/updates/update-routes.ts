/** GET /events/machines: the machines table as server-sent events. */
import { answer } from '#kit/web/answers/answers.ts'
import type { Channel, SeenFleet } from './channel.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { LIMITS } from '#kit/web/answers/limits.ts'
import type { H3Event } from 'h3'
import type { Caller } from '#kit/web/answers/caller.ts'
import type { Route } from '#kit/web/answers/route.ts'

const HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-store, no-transform',
  // Without it, nginx buffers the stream.
  'x-accel-buffering': 'no',
}

/** Responds with a 503 if too many pages are open. */
export function updateRoutes(
  site: SeenFleet & { caller(event: H3Event): Caller },
  channel: Channel,
): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/events/machines',
      access: 'read',
      reach: 'list',
      doc: {
        summary: 'Server-sent events: the machines table, now and after every change',
        query: {
          q: 'Only the machines that this search finds',
          page: 'From 1; with it or q, at most 100 rows',
          columns: 'Columns of the table, separated by dots, such as `state.image.disk`',
          bars: '`all`: how far all flashes are, not only those of the rows',
          view: 'Instead of all these, up to 16 times, for several views on one stream: a query string of these parameters. Events of the first view are named as in `machines-update.0`, those of the second as in `machines-update.1`',
        },
        answers: { 200: { type: 'string', contentMediaType: 'text/event-stream' } },
      },
      async handle(event) {
        if (event.req.method === 'HEAD') return answer(200, HEADERS, null)
        if (channel.count() >= LIMITS.listeners) {
          throw refuse(503, 'too many pages are open', { headers: { 'retry-after': '30' } })
        }
        const views = readViews(event.url.searchParams)
        const body = await channel.join(views, site.caller(event), site)
        return answer(200, HEADERS, body)
      },
    },
  ]
}

/** A browser has one stream for all of its pages. */
function readViews(query: URLSearchParams) {
  const views = query.getAll('view')
  if (views.length > LIMITS.views || views.some((view) => view.length > LIMITS.viewCharacters)) {
    throw refuse(400, `at most ${LIMITS.views} views of ${LIMITS.viewCharacters} characters`)
  }
  if (views.length === 0) return [{ query: query.size === 0 ? null : query, tag: '' }]
  return views.map((view, number) => ({
    query: view === '' ? null : new URLSearchParams(view),
    tag: `.${number}`,
  }))
}
