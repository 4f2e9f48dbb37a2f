/** The numbers of the dashboard: each is a link, and says how it moved since the day before. */
import { address } from '#kit/web/ui/html.ts'
import { fill, fillCount, renderNumber } from '#kit/texts/text.ts'
import type { RunCondition } from '#fleet/run/run-rows.ts'
import { isUnassigned, type Machine } from '#server/current/rules/machine.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { Tile } from '#server/pages/number-tiles.ts'
import type { CurrentContext } from '../view/page-context.ts'

const t = PAGES.dashboard.numbers

export const NEEDS_ATTENTION = 'state:needs-attention,failed'
const DAY_MS = 86_400_000

interface TileFacts {
  readonly machines: readonly Machine[]
  /** Flashed or captured now. */
  readonly running: number
  readonly waiting: number
  readonly images: number
}

/** Failures are runs, compared with the 24 hours before. */
export function listTiles(context: CurrentContext, facts: TileFacts): readonly Tile[] {
  const { site } = context
  const ago = (days: number) => new Date(site.now().getTime() - days * DAY_MS).toISOString()
  const count = (condition: RunCondition) => site.runs.count(condition)
  const unassigned = facts.machines.filter(isUnassigned)
  const day = { since: ago(1) }
  const dayBefore = { since: ago(2), until: day.since }
  const failed = count({ result: 'failed', ...day })
  const isNew = ({ discovered_at: at }: Machine) => at !== null && at >= day.since
  return [
    {
      title: t.machines,
      count: facts.machines.length,
      href: '/ui/machines',
      trend: renderMore(facts.machines.filter(isNew).length),
    },
    {
      title: t.running,
      count: facts.running,
      href: '/ui/machines?q=state:running',
      trend: fillCount(t.doneToday, count({ result: 'done', ...day })),
    },
    {
      title: t.failed,
      count: failed,
      href: address('/ui/runs', { state: 'failed', ...day }),
      trend: compare(failed, count({ result: 'failed', ...dayBefore })),
    },
    ...listUnbooted(context, day, dayBefore),
    {
      title: t.attention,
      count: facts.waiting,
      href: `/ui/machines?q=${NEEDS_ATTENTION}`,
      trend: null,
    },
    {
      title: t.unassigned,
      count: unassigned.length,
      href: '/ui/machines?q=is:discovered',
      trend: renderMore(unassigned.filter(isNew).length),
    },
    { title: t.images, count: facts.images, href: '/ui/cache', trend: null },
  ]
}

/** Nothing unless first boots are awaited. */
function listUnbooted(
  { site: { proof, runs } }: CurrentContext,
  day: { readonly since: string },
  dayBefore: { readonly since: string; readonly until: string },
): readonly Tile[] {
  if (proof?.isEnabled() !== true) return []
  const count = runs.count({ boot: 'failed', ...day })
  return [
    {
      title: t.notBooted,
      count,
      href: address('/ui/runs', { boot: 'failed', ...day }),
      trend: compare(count, runs.count({ boot: 'failed', ...dayBefore })),
    },
  ]
}

const renderMore = (count: number): string | null =>
  count === 0 ? null : fill(t.more, { count: renderNumber(count) })

/** `2 more than the day before`; null where both days had none. */
export function compare(now: number, before: number): string | null {
  if (now === 0 && before === 0) return null
  if (now === before) return t.same
  const difference = { count: renderNumber(Math.abs(now - before)) }
  return fill(now > before ? t.moreThanBefore : t.fewerThanBefore, difference)
}
