/** `/batches`: what was done to many machines at once, how far it is, and what can be done to it. */
import { getRouterParam, type H3Event } from 'h3'
import * as z from 'zod'
import { MEMBER_STATES, nameBatch, type Batch } from '#fleet/batch/rules/batch.ts'
import { json, type Answer } from '#kit/web/answers/answers.ts'
import { checked, renderSchema } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Route } from '#kit/web/answers/route.ts'
import type { Site } from '#server/routes/site.ts'
import {
  actOnBatch,
  BATCH_ACTIONS,
  type BatchAction,
  type BatchKeeper,
  type BatchView,
} from './keeper/batch-keeper.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'

const BATCH = z.object({
  id: z.string(),
  name: z.string().describe('What people call it: 2.4.30 to rack-03'),
  action: z.string(),
  image: z.string().nullable(),
  target: z.string().nullable().describe('The label or search that its machines have in common'),
  made_at: z.string(),
  actor: z.string(),
  machines: z.int(),
  acted_at: z.string().nullable().describe('When the last of its machines was changed'),
  paused_at: z.string().nullable(),
  open: z.boolean().describe('Not finished yet'),
  counts: z.object(Object.fromEntries(MEMBER_STATES.map((state) => [state, z.int()]))),
})

const WHOLE_BATCH = BATCH.extend({
  results: z.array(
    z.object({
      mac: z.string(),
      state: z.enum(MEMBER_STATES),
      reason: z.string().nullable(),
    }),
  ),
})

const ACTED = BATCH.extend({ done: z.int().describe('How many machines were changed') })

const QUERY = z.object({ limit: z.coerce.number().int().min(1).max(200).default(50) })

export function batchRoutes(site: Site<Machine>, keeper: BatchKeeper): readonly Route[] {
  const find = (event: H3Event): Batch => {
    const batch = keeper.find(getRouterParam(event, 'id') ?? '')
    if (batch === null) throw refuse(404, 'no such batch')
    return batch
  }

  async function act(event: H3Event, action: BatchAction): Promise<Answer> {
    const batch = find(event)
    const acted = await actOnBatch({ site, keeper }, batch, action, site.by(event))
    if (!acted.ok) throw refuse(409, acted.refusal)
    return json({ ...toWire(keeper.view(keeper.find(batch.id) ?? batch)), ...acted.value })
  }

  return [
    {
      method: 'GET',
      path: '/batches',
      access: 'read',
      reach: 'list',
      doc: {
        summary: 'What was done to many machines at once, newest first',
        query: { limit: '1 to 200; default 50' },
        answers: { 200: renderSchema(z.object({ batches: z.array(BATCH) }), 'output') },
        refuses: [422],
      },
      async handle(event) {
        const { limit } = checked(QUERY, Object.fromEntries(event.url.searchParams), 'query')
        const views = await keeper.viewAll(keeper.list().slice(0, limit))
        return json({ batches: views.map(toWire) })
      },
    },
    {
      method: 'GET',
      path: '/batches/:id',
      access: 'read',
      reach: 'list',
      doc: {
        summary: 'One batch, with where each of its machines is',
        answers: { 200: renderSchema(WHOLE_BATCH, 'output') },
      },
      handle(event) {
        const batch = find(event)
        const members = keeper.listMembers(batch)
        const results = members.map(({ mac, state, refusal: reason }) => ({ mac, state, reason }))
        return json({ ...toWire(keeper.view(batch, members)), results })
      },
    },
    ...ACTIONS.map(([action, summary]): Route => ({
      method: 'POST',
      path: `/batches/:id/${action}`,
      access: BATCH_ACTIONS[action].scope,
      reach: 'list',
      doc: { summary, answers: { 200: renderSchema(ACTED, 'output') }, refuses: [409] },
      handle: (event) => act(event, action),
    })),
  ]
}

const ACTIONS: readonly (readonly [BatchAction, string])[] = [
  ['pause', 'Pauses a batch: waiting machines boot their disks, flashes in progress continue'],
  ['resume', 'Resumes a paused batch'],
  ['disarm', 'Disarms the machines of a batch whose flash has not started'],
  ['undo', 'Undoes a batch within a minute, except on machines changed since'],
  ['retry', 'Arms the failed machines of a batch again'],
]

const toWire = ({ batch, counts, isOpen }: BatchView) => ({
  id: batch.id,
  name: nameBatch(batch),
  action: batch.action,
  image: batch.image,
  target: batch.target,
  made_at: batch.by.at,
  actor: batch.by.actor,
  machines: batch.machines,
  acted_at: batch.acted_at,
  paused_at: batch.paused_at,
  open: isOpen,
  counts,
})
