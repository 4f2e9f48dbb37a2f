/** The events API: filters, pages, acknowledgement. */
import { getRouterParam, type H3Event } from 'h3'
import * as z from 'zod'
import type { MachineBase } from '../../core/machine/machine.ts'
import type { EventFilter } from '../../services/state/journal.ts'
import { checked, renderSchema } from '../http/checked.ts'
import { refuse } from '../http/faults.ts'
import type { Site } from './site.ts'
import type { Route } from '../http/route.ts'

const word = z.string().max(200).optional()
const yes = z
  .string()
  .optional()
  .transform((text) => text !== undefined && !['', '0', 'false', 'no', 'off'].includes(text))

const QUERY = z.object({
  kind: word,
  subject_kind: word,
  subject_id: word,
  actor: word,
  source_ip: word,
  text: word,
  failed: yes,
  unacknowledged: yes,
  before_id: z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(50),
})

const id = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER)
const ACK_BODY = z.strictObject({ acknowledged: z.boolean().default(true) })
const ACKS_BODY = z.strictObject({
  ids: z.array(id).min(1).max(1000),
  acknowledged: z.boolean().default(true),
})

/** Of a query string, as pages and programs write it. */
export function parseEventFilter(query: URLSearchParams) {
  const asked = checked(QUERY, Object.fromEntries(query), 'query')
  const given = Object.entries(asked).filter(([, value]) => value !== undefined)
  const filter: EventFilter = { ...Object.fromEntries(given), limit: asked.limit }
  return filter
}

export function eventRoutes<M extends MachineBase>(site: Site<M>): readonly Route[] {
  const { journal, feed } = site

  async function acknowledge(ids: readonly number[], value: boolean): Promise<number> {
    const updated = await journal.acknowledge(ids, value)
    if (updated > 0) feed.announce({ topic: 'event' })
    return updated
  }

  async function acknowledgeOne(event: H3Event, body: unknown): Promise<unknown> {
    const number = Number(getRouterParam(event, 'id'))
    const { acknowledged } = checked(ACK_BODY, body ?? {})
    if (!id.safeParse(number).success) throw refuse(404, 'no such event')
    if ((await acknowledge([number], acknowledged)) === 0) throw refuse(404, 'no such event')
    return { id: number, acknowledged }
  }

  return [
    {
      method: 'GET',
      path: '/events',
      access: 'read',
      doc: {
        summary: 'Recorded events, newest first',
        query: {
          kind: 'Exactly this kind',
          subject_kind: 'machine, netboot, backup…',
          subject_id: 'For a machine: its MAC',
          actor: 'operator, system, pxe-client, token:<name>',
          source_ip: 'Address of who did it',
          text: 'Looked for in all of these',
          failed: 'Kinds that end in failed',
          unacknowledged: 'Those not acknowledged yet',
          before_id: 'The next page: the last id of this one',
          limit: '1 to 500, 50 unless said',
        },
        answers: { 200: { type: 'object', properties: { events: { type: 'array' } } } },
        refuses: [422],
      },
      handle: async (event) => ({
        events: await journal.list(parseEventFilter(event.url.searchParams)),
      }),
    },
    {
      method: 'POST',
      path: '/events/ack',
      access: 'machines',
      takes: 'json',
      doc: {
        summary: 'Acknowledges many events, or takes that back',
        body: renderSchema(ACKS_BODY, 'input'),
        answers: { 200: { type: 'object' } },
      },
      async handle(_event, body) {
        const { ids, acknowledged } = checked(ACKS_BODY, body)
        return { updated: await acknowledge(ids, acknowledged), acknowledged }
      },
    },
    {
      method: 'POST',
      path: '/events/:id/ack',
      access: 'machines',
      takes: 'json',
      doc: {
        summary: 'Acknowledges one event, or takes that back',
        body: renderSchema(ACK_BODY, 'input'),
        answers: { 200: { type: 'object' } },
      },
      handle: acknowledgeOne,
    },
  ]
}
