/** /ui/batches and the page of each batch: where its machines are, and what is done to all of them. */
import { POWER_ACTIONS } from '#server/current/machines/power-bulk.ts'
import { getRouterParam } from 'h3'
import type { Batch, MemberState } from '#fleet/batch/rules/batch.ts'
import { fill, fillCount, pluralOf } from '#kit/foundation/text.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { badge, banner, card, emptyState, refreshOnNews, type Tone } from '#kit/web/ui/elements.ts'
import { hidden, postButton } from '#kit/web/ui/fields.ts'
import { address, fillHtml, html, STRONG, type Content, type Html } from '#kit/web/ui/html.ts'
import { cutPage, renderPager, renderTable, type TableColumn } from '#kit/web/ui/tables.ts'
import { renderMinute, renderTime } from '#kit/web/ui/times.ts'
import { buttonAt, formAt, pageAt } from '#server/pages/context-routes.ts'
import { renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import { renderBar, renderNameCell } from '#server/pages/machines/machines-list.ts'
import { questionButton, renderQuestion } from '#server/pages/question.ts'
import type { PowerUnderway } from '#server/power/power-control.ts'
import {
  actOnBatch,
  type BatchAction,
  WRITES,
  type BatchView,
  type MemberView,
} from './keeper/batch-keeper.ts'
import {
  BATCHES_PATH,
  batchPath,
  nameOfBatch,
  renderBatchState,
  renderShares,
  sayCounts,
  SHOWN_STATES,
} from '#server/current/view/batch-view.ts'
import { nameActor } from '#server/current/view/actor-name.ts'
import { renderDisk } from '#server/current/view/machine-row.ts'
import { nameOf, type MachineView } from '#server/current/view/machine-view.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
const PATH = `${BATCHES_PATH}/:id`
const MAX_ROWS = 100

export const BATCH_PAGES = [
  pageAt(BATCHES_PATH, 'read', showAll, { reach: 'list' }),
  pageAt(PATH, 'read', show, { reach: 'list' }),
  ...(['pause', 'disarm', 'undo'] as const).map((action) => {
    const handle = (context: CurrentContext) => act(context, action)
    return buttonAt(`${PATH}/${action}`, 'machines', handle, { reach: 'list' })
  }),
  buttonAt(`${BATCHES_PATH}/power/:id/stop`, 'power', stopPower, { reach: 'list' }),
  ...(['resume', 'retry'] as const).map((action) => {
    const handle = (context: CurrentContext, form: URLSearchParams) => ask(context, form, action)
    return formAt(`${PATH}/${action}`, 'flash', handle, { reach: 'list' })
  }),
]

async function showAll(context: CurrentContext): Promise<Answer> {
  const { keeper } = context.services
  const batches = await keeper.viewAll(keeper.list().slice(0, MAX_ROWS))
  return await context.show({
    title: 'Batches',
    learn: 'server.html#many-at-once',
    updates: NEWS,
    messages: context.message(),
    body: html`<div class="stack" ${refreshOnNews('batches', BATCHES_PATH, 2000)}>
      ${renderUnderway(context)}
      ${
        batches.length === 0
          ? emptyState(
              'No batches',
              'Actions on several machines are listed here, with the progress of each machine.',
              html`<a class="button" href="/ui/machines">Select machines</a>`,
            )
          : renderTable({
              caption: 'Batches, newest first',
              className: 'runs',
              columns: BATCH_COLUMNS,
              rows: batches.map((view) => renderBatch(view, context)),
            })
      }
    </div>`,
  })
}

const BATCH_COLUMNS: readonly TableColumn[] = [
  { title: 'State', className: 'state' },
  { title: 'Batch' },
  { title: 'Machines' },
  { title: 'Ordered', className: 'time' },
]

const renderBatch = (view: BatchView, context: CurrentContext): Html => {
  const { id, by } = view.batch
  const clock = context.clock()
  return html`<tr>
    <td class="state">${renderBatchState(view)}</td>
    <th scope="row">
      <a href="${batchPath(id)}"><bdi>${nameOfBatch(view.batch)}</bdi></a>
      <div class="small dim">by ${nameActor(by.actor)}</div>
    </th>
    <td data-label="Machines">
      ${renderShares(view)}
      <div class="small dim">${sayCounts(view.batch, view.counts)}</div>
    </td>
    <td class="time" data-label="Ordered">
      ${renderTime(by.at, clock)}
      <div class="small dim">${renderMinute(by.at, clock)}</div>
    </td>
  </tr>`
}

/** It ends with the server. */
function renderUnderway({ services, site, event }: CurrentContext): Content {
  const underway = services.power.listUnderway()
  if (underway.length === 0) return null
  const row = ({ id, action, macs, left, by }: PowerUnderway) => {
    const path = `${BATCHES_PATH}/power/${id}/stop`
    const words = {
      action: POWER_ACTIONS[action].title,
      left: left.size,
      actor: nameActor(by.actor),
    }
    return html`<li>
      <span class="grow"
        >${fill(pluralOf({ one: '{action}: {left} of {count} machine to go, started by {actor}', other: '{action}: {left} of {count} machines to go, started by {actor}' }, macs.length), { count: macs.length, ...words })}</span
      >${
        site.mayOpen(event, `${BATCHES_PATH}/power/:id/stop`, 'POST')
          ? postButton({ action: path, label: 'Stop' })
          : null
      }
    </li>`
  }
  return card({
    title: 'Power, machine by machine',
    body: html`<ul class="rows">
      ${underway.map(row)}
    </ul>`,
  })
}

function stopPower(context: CurrentContext): Answer {
  const id = getRouterParam(context.event, 'id') ?? ''
  const found = context.services.power.listUnderway().find((each) => each.id === id)
  if (found === undefined)
    return context.goBack(BATCHES_PATH, { error: 'This batch has already ended.' })
  found.stop(nameActor(context.by().actor))
  return context.goTo(BATCHES_PATH)
}

/** Bars only: the page shows no rows of machines. */
const NEWS = address('/events/machines', { q: 'mac:none', bars: 'all' })

function find({ services, event }: CurrentContext): Batch {
  const batch = services.keeper.find(getRouterParam(event, 'id') ?? '')
  if (batch === null) throw refuse(404, 'There is no such batch. The newest ones are kept.')
  return batch
}

async function show(context: CurrentContext): Promise<Answer> {
  const { keeper } = context.services
  const batch = find(context)
  const members = keeper.listMembers(batch)
  return await context.show({
    title: nameOfBatch(batch),
    count: renderMinute(batch.by.at, context.clock()),
    trail: html`<a href="${BATCHES_PATH}">Batches</a>`,
    updates: NEWS,
    messages: html`${context.message()}${renderActed(context.query, members)}`,
    body: html`<div
      class="stack"
      ${refreshOnNews('batch', address(batchPath(batch.id), { page: context.query.get('page') }), 2000)}
    >
      ${renderHead(context, keeper.view(batch, members))} ${renderMembers(context, batch, members)}
    </div>`,
  })
}

const ACTED = {
  retry: { one: 'Armed {count} machine again.', other: 'Armed {count} machines again.' },
  disarm: { one: 'Disarmed {count} machine.', other: 'Disarmed {count} machines.' },
  undo: {
    one: 'Undone: {count} machine restored.',
    other: 'Undone: {count} machines restored.',
  },
  /** Where the batch had armed machines. */
  'undo-armed': {
    one: 'Undone: {count} machine restored and disarmed.',
    other: 'Undone: {count} machines restored and disarmed.',
  },
  pause: { one: 'Paused {count} machine.', other: 'Paused {count} machines.' },
  resume: { one: 'Resumed {count} machine.', other: 'Resumed {count} machines.' },
} as const

function renderActed(query: URLSearchParams, members: readonly MemberView[]): Content {
  const isDisarmed = members.some(({ state }) => state === 'disarmed')
  const given = query.get('acted')
  const meant = given === 'undo' && isDisarmed ? 'undo-armed' : given
  const acted = Object.entries(ACTED).find(([name]) => name === meant)
  const count = /^\d{1,5}$/.exec(query.get('count') ?? '')?.[0]
  return acted === undefined || count === undefined
    ? null
    : banner('done', fillCount(acted[1], Number(count)))
}

function renderHead(context: CurrentContext, view: BatchView): Html {
  const { batch, counts } = view
  const actor = nameActor(batch.by.actor)
  const time = renderTime(batch.by.at, context.clock())
  const undoable = context.site.fleet.listUndoable(batch.id).length
  return html`<section class="card stack">
    <p class="sentence">${renderBatchState(view)} ${sayCounts(batch, counts)}</p>
    ${renderShares(view)}
    ${batch.paused_at === null ? null : html`<p class="dim">Waiting machines boot from their own disks. Flashes in progress continue.</p>`}
    <p class="small dim">Ordered ${time} by ${actor}</p>
    ${renderButtons(view, undoable)}
    ${renderCurlBlock(context, listCalls(view, undoable), 'curl-batch')}
  </section>`
}

function renderButtons(view: BatchView, undoable: number): Content {
  const { batch, counts } = view
  const path = batchPath(batch.id)
  const rest = counts.waiting + counts.paused
  const offered = offer(view, undoable)
  const buttons = [
    offered.retry
      ? questionButton({
          action: `${path}/retry`,
          label: `Retry failed (${counts.failed})`,
          tone: 'primary',
        })
      : null,
    offered.resume ? questionButton({ action: `${path}/resume`, label: 'Resume' }) : null,
    offered.pause ? postButton({ action: `${path}/pause`, label: 'Pause' }) : null,
    offered.disarm
      ? postButton({ action: `${path}/disarm`, label: `Disarm the rest (${rest})` })
      : null,
    offered.undo ? postButton({ action: `${path}/undo`, label: `Undo (${undoable})` }) : null,
  ].filter((button) => button !== null)
  return buttons.length === 0 ? null : html`<div class="row">${buttons}</div>`
}

function offer({ batch, counts }: BatchView, undoable: number) {
  const isPaused = batch.paused_at !== null
  return {
    retry: counts.failed > 0 && !isPaused,
    resume: isPaused,
    pause: !isPaused && counts.waiting > 0,
    disarm: counts.waiting + counts.paused > 0,
    undo: undoable > 0,
  } satisfies Record<BatchAction, boolean>
}

/** Only buttons without a question. */
function listCalls(view: BatchView, undoable: number): readonly CurlCall[] {
  const { counts } = view
  const offered = offer(view, undoable)
  const labels = {
    pause: 'Pause',
    disarm: `Disarm the rest (${counts.waiting + counts.paused})`,
    undo: `Undo (${undoable})`,
  }
  return (['pause', 'disarm', 'undo'] as const)
    .filter((action) => offered[action])
    .map((action) => ({ ...callOf(view.batch, action), label: labels[action] }))
}

const callOf = ({ id }: Batch, action: BatchAction): CurlCall => ({
  method: 'POST',
  path: `/batches/${id}/${action}`,
  scope: action === 'resume' || action === 'retry' ? 'flash' : 'machines',
})

/** What needs somebody comes first. */
function renderMembers(
  context: CurrentContext,
  batch: Batch,
  members: readonly MemberView[],
): Html {
  const sorted = SHOWN_STATES.flatMap((state) => members.filter((each) => each.state === state))
  const page = cutPage(sorted, context.query)
  const isOrder = WRITES.has(batch.action) || batch.action === 'capture'
  return html`${renderTable({
    caption: 'Machines of the batch',
    className: 'runs',
    columns: listColumns(isOrder),
    rows: page.rows.map((member) => renderMember(context, member, isOrder)),
  })}
  ${page.pages > 1 ? renderPager(batchPath(batch.id), {}, page) : null}`
}

const listColumns = (isOrder: boolean): readonly (string | TableColumn)[] => [
  { title: 'State', className: 'state' },
  { title: 'Machine', className: 'name' },
  ...(isOrder ? ['Image', { title: 'Disk', className: 'disk' }] : []),
  'Now',
]

/** States in which the machine's present values are not from the batch. */
const GONE: ReadonlySet<MemberState> = new Set(['replaced', 'refused', 'undone'])

const STATES = {
  failed: ['failed', 'failed'],
  running: ['running', 'in progress'],
  paused: ['paused', 'paused'],
  waiting: ['armed', 'not booted yet'],
  disarmed: ['ready', 'disarmed'],
  replaced: ['ready', 'given another order'],
  refused: ['needs-you', 'skipped'],
  undone: ['ready', 'undone'],
  done: ['done', 'done'],
} as const satisfies Record<MemberState, readonly [Tone, string]>

/** `isOrder`: with its image and disk. */
function renderMember(context: CurrentContext, member: MemberView, isOrder: boolean): Html {
  const { mac, machine, state } = member
  const view = machine === null ? null : context.view(machine)
  const [tone, word] = STATES[state]
  return html`<tr>
    <td class="state">${badge(tone, word)}</td>
    ${renderNameCell(mac, machine === null ? mac : nameOf(machine))}
    ${isOrder ? renderOrder(GONE.has(state) ? null : view) : null}
    <td data-label="Now">${renderMemberNow(member, view)}</td>
  </tr>`
}

/** Null: what the machine has now is not of the batch. */
const renderOrder = (view: MachineView | null): Html =>
  html`<td data-label="Image">
      <bdi>${view?.image?.name ?? view?.machine.bty_image_ref?.slice(0, 12) ?? '–'}</bdi>
    </td>
    <td class="disk" data-label="Disk">${view === null ? '–' : renderDisk(view)}</td>`

const renderMemberNow = (member: MemberView, view: MachineView | null): Content =>
  member.state === 'running' && view !== null && view.run !== null
    ? renderBar(view.run)
    : (findReason(member) ?? view?.view.is ?? 'Deleted.')

const findReason = ({ machine, state, refusal }: MemberView): string | null =>
  refusal ?? (state === 'failed' ? (machine?.cycle.failure?.reason ?? null) : null)

const QUESTIONS = {
  retry: {
    title: { one: 'Flash {count} machine again?', other: 'Flash {count} machines again?' },
    button: 'Retry failed',
  },
  resume: {
    title: { one: 'Resume {count} machine?', other: 'Resume {count} machines?' },
    button: 'Resume',
  },
  /** `{strong}` to `{end}` is emphasized. */
  erased: {
    one: '{strong}{count} disk will be erased and flashed{end} at the next network boot of this machine.',
    other:
      '{strong}{count} disks will be erased and flashed{end} at the next network boot of these machines.',
  },
} as const

/** The answer is about as many machines as the question showed. */
async function ask(
  context: CurrentContext,
  form: URLSearchParams,
  action: 'resume' | 'retry',
): Promise<Answer> {
  const batch = find(context)
  const { counts } = context.services.keeper.view(batch)
  const count = action === 'retry' ? counts.failed : counts.paused
  if (form.get('confirm') === 'yes' && form.get('count') === String(count)) {
    return await act(context, action)
  }
  const texts = QUESTIONS[action]
  return await context.show({
    title: fillCount(texts.title, count),
    body: renderQuestion({
      title: fillCount(texts.title, count),
      command: renderCurlBlock(context, [callOf(batch, action)]),
      body: banner('needs-you', fillHtml(pluralOf(QUESTIONS.erased, count), { count, ...STRONG })),
      form: {
        action: `${batchPath(batch.id)}/${action}`,
        fields: hidden({ confirm: 'yes', count: String(count) }),
        cancel: batchPath(batch.id),
        button: html`<button class="danger">${texts.button}</button>`,
      },
    }),
  })
}

async function act(context: CurrentContext, action: BatchAction): Promise<Answer> {
  const { site, services, by } = context
  const batch = find(context)
  const path = batchPath(batch.id)
  const acted = await actOnBatch({ site, keeper: services.keeper }, batch, action, by())
  return acted.ok
    ? context.goTo(address(path, { acted: action, count: acted.value.done }))
    : context.goBack(path, { error: acted.refusal })
}
