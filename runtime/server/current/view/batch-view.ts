/** A batch as pages show it: its name, its machines in a sentence, and a bar of them. */
import type { JournalEvent } from '#fleet/state/journal.ts'
import type { Batch, BatchCounts, MemberState } from '#fleet/batch/rules/batch.ts'
import { fillCount } from '#kit/foundation/text.ts'
import { badge } from '#kit/web/ui/elements.ts'
import { html, type Html } from '#kit/web/ui/html.ts'
import type { BatchView } from '#server/current/batches/keeper/batch-keeper.ts'

export const BATCHES_PATH = '/ui/batches'

export const batchPath = (id: string): string => `${BATCHES_PATH}/${id}`

export const ACTION_TEXTS = {
  flash: {
    menu: 'Arm…',
    title: 'Arm',
    before: { one: 'Arm {count} machine', other: 'Arm {count} machines' },
    after: { one: 'Armed {count} machine', other: 'Armed {count} machines' },
  },
  disarm: {
    menu: 'Disarm',
    title: 'Disarm',
    before: { one: 'Disarm {count} machine', other: 'Disarm {count} machines' },
    after: { one: 'Disarmed {count} machine', other: 'Disarmed {count} machines' },
  },
  image: {
    menu: 'Assign image…',
    title: 'Assign image',
    before: {
      one: 'Assign the image to {count} machine',
      other: 'Assign the image to {count} machines',
    },
    after: {
      one: 'Assigned the image to {count} machine',
      other: 'Assigned the image to {count} machines',
    },
  },
  mode: {
    menu: 'Set network boot…',
    title: 'Set network boot',
    before: {
      one: 'Set the network boot of {count} machine',
      other: 'Set the network boot of {count} machines',
    },
    after: {
      one: 'Set the network boot of {count} machine',
      other: 'Set the network boot of {count} machines',
    },
  },
  'first-boot': {
    menu: 'Set first-boot template…',
    title: 'Set first-boot template',
    before: {
      one: 'Set the first-boot template of {count} machine',
      other: 'Set the first-boot template of {count} machines',
    },
    after: {
      one: 'Set the first-boot template of {count} machine',
      other: 'Set the first-boot template of {count} machines',
    },
  },
  label: {
    menu: 'Label…',
    title: 'Label',
    before: { one: 'Label {count} machine', other: 'Label {count} machines' },
    after: { one: 'Labelled {count} machine', other: 'Labelled {count} machines' },
  },
  name: {
    menu: 'Names and labels',
    title: 'Names and labels',
    before: {
      one: 'Change the names and labels of {count} machine',
      other: 'Change the names and labels of {count} machines',
    },
    after: {
      one: 'Change the names and labels of {count} machine',
      other: 'Change the names and labels of {count} machines',
    },
  },
  capture: {
    menu: 'Capture…',
    title: 'Capture',
    before: { one: 'Capture {count} machine', other: 'Capture {count} machines' },
    after: {
      one: 'Ordered the capture of {count} machine',
      other: 'Ordered the capture of {count} machines',
    },
  },
  once: {
    menu: 'Boot something else once…',
    title: 'Boot once',
    before: {
      one: 'Boot {count} machine into something else once',
      other: 'Boot {count} machines into something else once',
    },
    after: {
      one: 'Ordered {count} machine to boot something else once',
      other: 'Ordered {count} machines to boot something else once',
    },
  },
  refresh: {
    menu: 'Refresh inventory',
    title: 'Refresh inventory',
    before: {
      one: 'Refresh the inventory of {count} machine',
      other: 'Refresh the inventory of {count} machines',
    },
    after: {
      one: 'Requested the inventory of {count} machine',
      other: 'Requested the inventory of {count} machines',
    },
  },
  power: {
    menu: 'Power…',
    title: 'Power',
    before: { one: 'Set the power of {count} machine', other: 'Set the power of {count} machines' },
    after: {
      one: 'Set the power of {count} machine',
      other: 'Set the power of {count} machines',
    },
  },
  lock: {
    menu: 'Lock',
    title: 'Lock',
    before: { one: 'Lock {count} machine', other: 'Lock {count} machines' },
    after: { one: 'Locked {count} machine', other: 'Locked {count} machines' },
  },
  unlock: {
    menu: 'Unlock',
    title: 'Unlock',
    before: { one: 'Unlock {count} machine', other: 'Unlock {count} machines' },
    after: { one: 'Unlocked {count} machine', other: 'Unlocked {count} machines' },
  },
  delete: {
    menu: 'Delete…',
    title: 'Delete',
    before: { one: 'Delete {count} machine', other: 'Delete {count} machines' },
    after: { one: 'Deleted {count} machine', other: 'Deleted {count} machines' },
  },
} as const

/** `Arm 12 machines: 2.4.30 to rack-03`, `Lock 3 machines: rack-03`. */
export function nameOfBatch({ action, image, target, machines }: Batch): string {
  const words = ACTIONS.find(([each]) => each === action)?.[1]
  const what = words === undefined ? action : fillCount(words.before, machines)
  const about = [image, target].filter((each) => each !== null).join(' to ')
  return about === '' ? what : `${what}: ${about}`
}

/** With several images, it names the action as the API: `flash to rack-03: 12 machines`. */
export function sayBatch({
  kind,
  summary,
  details,
}: Pick<JournalEvent, 'kind' | 'summary' | 'details'>): string {
  const { action, name, done, skipped } = details ?? {}
  const words = ACTIONS.find(([each]) => each === action)?.[1]
  if (kind !== 'batch.ordered' || words === undefined || typeof name !== 'string') {
    return summary.split(': ').map(sayName).join(': ')
  }
  const what = name === action ? '' : sayName(name)
  const acted = fillCount(words.after, Number(done))
  const ordered = what === '' ? acted : `${acted}: ${what}`
  return Number(skipped) > 0 ? `${ordered} (${Number(skipped)} skipped)` : ordered
}

const ACTIONS = Object.entries(ACTION_TEXTS)

/** The name of an action in front means that there is no common image. */
function sayName(text: string): string {
  const name = ACTIONS.find(([each]) => text.startsWith(`${each} to `))?.[0]
  if (name === undefined) return text
  const target = text.slice(`${name} to `.length)
  return name === 'flash' ? `the image of each to ${target}` : target
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
  'undone',
  'done',
] as const satisfies readonly MemberState[]

const SAID_STATES = ['done', ...SHOWN_STATES.filter((state) => state !== 'done')] as const

const BATCH_STATES = {
  failed: { one: '{count} failed', other: '{count} failed' },
  running: { one: '{count} in progress', other: '{count} in progress' },
  paused: { one: '{count} paused', other: '{count} paused' },
  waiting: { one: '{count} not booted yet', other: '{count} not booted yet' },
  disarmed: { one: '{count} disarmed', other: '{count} disarmed' },
  replaced: { one: '{count} changed since', other: '{count} changed since' },
  refused: { one: '{count} skipped', other: '{count} skipped' },
  undone: { one: '{count} undone', other: '{count} undone' },
  done: { one: '{count} done', other: '{count} done' },
} as const

/** `97 machines, 41 done, 3 failed, 53 not booted yet` */
export const sayCounts = ({ machines }: Batch, counts: BatchCounts): string =>
  [
    fillCount({ one: '{count} machine', other: '{count} machines' }, machines),
    ...SAID_STATES.filter((state) => counts[state] > 0).map((state) =>
      fillCount(BATCH_STATES[state], counts[state]),
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
        <title>${fillCount(BATCH_STATES[state], counts[state])}</title>
      </rect>`
    })}
  </svg>`
}

export function renderBatchState({ batch, counts, isOpen }: BatchView): Html {
  if (isOpen && batch.paused_at !== null) return badge('paused', 'paused')
  if (counts.running > 0) return badge('running', 'in progress')
  if (isOpen) return badge('armed', 'waiting')
  if (counts.failed > 0) return badge('failed', 'failed')
  if (counts.done > 0) return badge('done', 'done')
  return badge('ready', counts.undone > 0 ? 'undone' : 'not done')
}

export const renderBatchRow = (view: BatchView): Html =>
  html`<li>
    <span class="grow"
      ><a href="${batchPath(view.batch.id)}"><bdi>${nameOfBatch(view.batch)}</bdi></a
      >${view.batch.paused_at === null ? null : html` <span class="tag">Paused</span>`}
      ${renderShares(view)}<span class="small dim"
        >${sayCounts(view.batch, view.counts)}</span
      ></span
    >
  </li>`
