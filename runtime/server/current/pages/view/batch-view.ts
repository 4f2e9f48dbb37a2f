/** A batch as pages show it: its name, its machines in a sentence, and a bar of them. */
import type { JournalEvent } from '#fleet/state/journal.ts'
import type { Batch, BatchCounts, MemberState } from '#fleet/batch/rules/batch.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { html, type Html } from '#kit/web/ui/html.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { BatchView } from '#server/current/batches/batch-keeper.ts'

const t = PAGES.batches

export const BATCHES_PATH = '/ui/batches'

export const batchPath = (id: string): string => `${BATCHES_PATH}/${id}`

const ACTION_TITLES: ReadonlyMap<string, string> = new Map(
  Object.entries(PAGES.machines.bulk.actions).map(([name, { title }]) => [name, title]),
)

/** `2.4.30 to rack-03`, `Lock: rack-03`, `Label: 3 machines`. */
export function nameOfBatch({ action, image, target, machines }: Batch): string {
  const what = image ?? ACTION_TITLES.get(action) ?? action
  const on = target ?? fillCount(t.machines, machines)
  return fill(image === null ? t.nameOfAction : t.name, { what, target: on })
}

/**
 * With several images, the summary names the action as the API: `flash to rack-03: 12 machines`.
 */
export function sayBatch({
  kind,
  summary,
  details,
}: Pick<JournalEvent, 'kind' | 'summary' | 'details'>): string {
  const { action, name, done, skipped } = details ?? {}
  const words = ACTIONS.find(([each]) => each === action)?.[1]
  if (kind !== 'batch.ordered' || words === undefined || typeof name !== 'string') {
    return sayName(summary)
  }
  const what = name === action ? '' : sayName(name)
  const acted = fillCount(words.after, Number(done))
  const ordered = what === '' ? acted : fill(t.orderedOf, { acted, what })
  return Number(skipped) > 0 ? fill(t.orderedSkipped, { ordered, count: Number(skipped) }) : ordered
}

const ACTIONS = Object.entries(PAGES.machines.bulk.actions)

/** The name of an action in front means that there is no common image. */
function sayName(text: string): string {
  const name = ACTIONS.find(([each]) => text.startsWith(`${each} to `))?.[0]
  if (name === undefined) return text
  const target = text.slice(`${name} to `.length)
  return name === 'flash' ? fill(t.name, { what: t.imageOfEach, target }) : target
}

/** For sentence, bar and lists: what needs somebody first. */
export const SHOWN_STATES = [
  'failed',
  'running',
  'paused',
  'waiting',
  'disarmed',
  'replaced',
  'refused',
  'done',
] as const satisfies readonly MemberState[]

const SAID_STATES = ['done', ...SHOWN_STATES.filter((state) => state !== 'done')] as const

/** `97 machines, 41 done, 3 failed, 53 not booted yet` */
export const sayCounts = ({ machines }: Batch, counts: BatchCounts): string =>
  [
    fillCount(t.machines, machines),
    ...SAID_STATES.filter((state) => counts[state] > 0).map((state) =>
      fillCount(t.states[state], counts[state]),
    ),
  ].join(', ')

export function renderShares({ batch, counts }: BatchView): Html {
  const shown = SAID_STATES.filter((state) => counts[state] > 0)
  const total = shown.reduce((sum, state) => sum + counts[state], 0)
  let at = 0
  return html`<svg
    class="shares"
    viewBox="0 0 ${Math.max(1, total)} 1"
    preserveAspectRatio="none"
    role="img"
    aria-label="${sayCounts(batch, counts)}"
  >
    ${shown.map((state) => {
      const x = at
      at += counts[state]
      return html`<rect class="${state}" x="${x}" y="0" width="${counts[state]}" height="1">
        <title>${fillCount(t.states[state], counts[state])}</title>
      </rect>`
    })}
  </svg>`
}

export const renderBatchRow = (view: BatchView): Html =>
  html`<li>
    <span class="grow"
      ><a href="${batchPath(view.batch.id)}"><bdi>${nameOfBatch(view.batch)}</bdi></a
      >${view.batch.paused_at === null ? null : html` <span class="tag">${t.paused}</span>`}
      ${renderShares(view)}<span class="small dim"
        >${sayCounts(view.batch, view.counts)}</span
      ></span
    >
  </li>`
