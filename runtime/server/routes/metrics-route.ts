/** GET /metrics, and the values that are looked up for each request of it. */
import process from 'node:process'
import { text } from '#kit/web/answers/answers.ts'
import type { Site } from './site.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { gaugeRuns } from './runs.ts'
import type { Presence } from '#fleet/cluster/presence.ts'
import { countBehind, type MemberRow } from '#fleet/cluster/rules/lease.ts'
import type { Metrics } from '#kit/web/http/metrics.ts'

export function metricsRoutes(site: Site, countListeners: () => number): readonly Route[] {
  const { line, machines, catalog, journal, metrics, now } = site

  metrics.gauge('flasher_machines', async () => {
    const modes = Map.groupBy(await machines.list(), (machine) => line.describe(machine).mode)
    return [...modes].map(([mode, { length }]) => ({ labels: { mode }, value: length }))
  })
  gaugeRuns(metrics, site.runs)
  const gauge = (name: string, read: () => number | Promise<number>) =>
    metrics.gauge(name, async () => [{ labels: {}, value: await read() }])
  gauge('flasher_sse_clients', countListeners)
  gauge('flasher_unacknowledged_events', journal.countAlarms)
  metrics.gauge('flasher_catalog_age_seconds', async () => {
    const { fetchedAt } = catalog.snapshot()
    if (fetchedAt === null) return []
    return [{ labels: {}, value: (now().getTime() - Date.parse(fetchedAt)) / 1000 }]
  })
  const { leader = null } = site
  if (leader !== null) {
    gauge('flasher_database_up', () => (leader.trouble() === null ? 1 : 0))
    gauge('flasher_database_survives_host', () => (leader.survivesHost() ? 1 : 0))
  }
  if (site.presence) measureServers(metrics, site.presence)
  gauge('process_resident_memory_bytes', () => process.memoryUsage.rss())

  return [
    {
      method: 'GET',
      path: '/metrics',
      access: () => (site.settings().openMetrics ? 'open' : 'read'),
      isOfServer: true,
      doc: {
        summary: 'Metrics for Prometheus',
        answers: { 200: { type: 'string', contentMediaType: 'text/plain' } },
      },
      handle: async () =>
        text(await metrics.render(), {
          'content-type': 'text/plain; version=0.0.4; charset=utf-8',
        }),
    },
  ]
}

/** One per name, as a series may appear once: a host with a new state folder has two rows. */
const listNewest = (members: readonly MemberRow[]): readonly MemberRow[] =>
  [...Map.groupBy(members, ({ name }) => name).values()].map((same) =>
    same.reduce((one, other) => (other.silentSeconds < one.silentSeconds ? other : one)),
  )

function measureServers(metrics: Metrics, { view }: Pick<Presence, 'view'>): void {
  const measure = (name: string, read: (member: MemberRow, newest: number) => number | null) =>
    metrics.gauge(name, async () => {
      const present = view()
      if (present === null) return []
      return listNewest(present.members).flatMap((member) => {
        const value = read(member, present.lease.seq)
        return value === null ? [] : [{ labels: { server: member.name }, value }]
      })
    })
  measure('flasher_server_silent_seconds', ({ silentSeconds }) => silentSeconds)
  measure('flasher_server_behind_changes', countBehind)
  metrics.gauge('flasher_leader_since_seconds', async () => {
    const since = Date.parse(view()?.lease.since ?? '')
    return Number.isNaN(since) ? [] : [{ labels: {}, value: since / 1000 }]
  })
}
