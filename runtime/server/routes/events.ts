/** The events API: filters, pages, acknowledgement. */
import { json, type Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam, type H3Event } from 'h3'
import * as z from 'zod'
import { EVENT_HEAD, renderEventRow } from '#fleet/state/rules/event-table.ts'
import type { EventFilter, JournalEvent } from '#fleet/state/journal.ts'
import { checked, QueryTimeSchema, renderSchema } from '#kit/web/answers/checked.ts'
import { exportRoutes, type Route, STEP } from '#kit/web/answers/route.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Site } from './site.ts'

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
  person: word,
  text: word,
  batch: word,
  folded: yes,
  erased: yes,
  failed: yes,
  unacknowledged: yes,
  since: QueryTimeSchema.optional(),
  until: QueryTimeSchema.optional(),
  before_id: z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(50),
})

const id = z.number().int().min(1).max(Number.MAX_SAFE_INTEGER)
const ACK_BODY = z.strictObject({ acknowledged: z.boolean().default(true) })
const ACKS_BODY = z.strictObject({
  ids: z.array(id).min(1).max(1000),
  acknowledged: z.boolean().default(true),
})

/** Throws a 422 that names each wrong field. */
export const parseEventFilter = (query: URLSearchParams): EventFilter =>
  checked(QUERY, Object.fromEntries(query), 'query')

const FILTERS = {
  kind: 'Exactly this kind',
  subject_kind: 'machine, netboot, backup…',
  subject_id: 'For a machine: its MAC',
  actor: 'operator, system, pxe-client, person:<name>, token:<name>, token:<name>@<person>',
  source_ip: 'Address of the person or program',
  person:
    'The name of a person: what they, their tokens and their orders did; administrator: actions without a name',
  text: 'Text to search for',
  batch: 'Events of the machines of this batch, by its id',
  folded: 'Without events that are part of a batch',
  erased: 'Erased disks: the start of each flash',
  failed: 'Only kinds that end in failed',
  unacknowledged: 'Only events not acknowledged yet',
  since: 'Recorded at this time or later',
  until: 'Recorded before this time',
}

const filterOf = (event: H3Event): EventFilter => parseEventFilter(event.url.searchParams)

export function eventRoutes(site: Site): readonly Route[] {
  const { journal, changes } = site

  async function acknowledge(ids: readonly number[], value: boolean): Promise<number> {
    const updated = await journal.acknowledge(ids, value)
    if (updated > 0) changes.announce({ topic: 'event' })
    return updated
  }

  async function acknowledgeOne(event: H3Event, body: unknown): Promise<Answer> {
    const number = Number(getRouterParam(event, 'id'))
    const { acknowledged } = checked(ACK_BODY, body ?? {})
    if (!id.safeParse(number).success) throw refuse(404, 'no such event')
    if ((await acknowledge([number], acknowledged)) === 0) throw refuse(404, 'no such event')
    return json({ id: number, acknowledged })
  }

  return [
    {
      method: 'GET',
      path: '/events',
      access: 'read',
      reach: 'list',
      doc: {
        summary: 'Recorded events, newest first',
        query: {
          ...FILTERS,
          before_id: 'The next page: the last id of this one',
          limit: '1 to 500; default 50',
        },
        answers: { 200: { type: 'object', properties: { events: { type: 'array' } } } },
        refuses: [422],
      },
      handle: async (event) => json({ events: await journal.list(filterOf(event)) }),
    },
    ...exportRoutes<JournalEvent>({
      path: '/events',
      query: FILTERS,
      schema: { type: 'array' },
      open(event) {
        const filter = { ...filterOf(event), limit: STEP }
        return (last) =>
          journal.list(last === undefined ? filter : { ...filter, before_id: last.id })
      },
      csvHead: EVENT_HEAD,
      renderCsvRow: renderEventRow,
      toWire: (row) => row,
    }),
    {
      method: 'POST',
      path: '/events/ack',
      access: 'machines',
      reach: 'list',
      takes: 'json',
      doc: {
        summary: 'Acknowledges many events, or undoes that',
        body: renderSchema(ACKS_BODY, 'input'),
        answers: { 200: { type: 'object' } },
      },
      async handle(_event, body) {
        const { ids, acknowledged } = checked(ACKS_BODY, body)
        return json({ updated: await acknowledge(ids, acknowledged), acknowledged })
      },
    },
    {
      method: 'POST',
      path: '/events/:id/ack',
      access: 'machines',
      reach: 'list',
      takes: 'json',
      doc: {
        summary: 'Acknowledges one event, or undoes that',
        body: renderSchema(ACK_BODY, 'input'),
        answers: { 200: { type: 'object' } },
      },
      handle: acknowledgeOne,
    },
  ]
}
