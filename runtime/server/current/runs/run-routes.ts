/** `DELETE /machines/{mac}/runs/{id}`, and the one rule by which runs are removed. */
import { getRouterParam, type H3Event } from 'h3'
import type { Result } from '#kit/foundation/result.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import { stateOf } from '#fleet/run/rules/run-record.ts'
import { nothing } from '#kit/web/answers/answers.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import type { PlainEvent } from '#kit/web/answers/caller.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Site } from '#server/routes/site.ts'
import type { Route } from '#kit/web/answers/route.ts'

export const runRemovalRoutes = (site: Site): readonly Route[] => [
  {
    method: 'DELETE',
    path: '/machines/:mac/runs/:id',
    access: 'admin',
    doc: {
      summary: 'Removes a run and its log from the history, unless it is still running',
      answers: { 204: null },
      refuses: [409],
    },
    async handle(event) {
      const mac = readMac(event)
      const removed = await removeRun(site, event, mac, getRouterParam(event, 'id') ?? '')
      if (removed.ok) return nothing()
      throw removed.refusal === 'running'
        ? refuse(409, 'this run is still running')
        : refuse(404, `${mac} has no such run`)
    },
  },
]

/** Records who removed it. Refuses a run that is unknown or under way. */
export async function removeRun(
  site: Site,
  event: H3Event,
  mac: string,
  id: string,
): Promise<Result<Run, 'unknown' | 'running'>> {
  const removed = await site.runs.remove(mac, id)
  if (removed.ok) {
    await site.recordAll([renderRemoved(removed.value)], { subject_id: mac, ...site.by(event) })
  }
  return removed
}

const renderRemoved = (run: Run): PlainEvent => ({
  kind: 'machine.run_deleted',
  summary: `A run of ${run.mac} was removed from the history: ${run.image?.name ?? 'unknown image'}, ${stateOf(run)}`,
  details: {
    run: run.id,
    state: stateOf(run),
    started_at: run.started_at,
    image: run.image?.name ?? null,
    serial: run.disk?.serial ?? null,
    armed_by: run.armed_by?.actor ?? null,
  },
})
