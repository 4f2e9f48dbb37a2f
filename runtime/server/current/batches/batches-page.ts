/** /ui/batches and the page of each batch: where its machines are, and what is done to all of them. */
import { POWER_ACTIONS } from '#server/current/machines/power-bulk.ts'
import { getRouterParam } from 'h3'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import type { Batch, MemberState } from '#fleet/batch/rules/batch.ts'
import { fill, fillCount, pluralOf } from '#kit/foundation/text.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { banner, card, emptyState, refreshOnNews, tag } from '#kit/web/ui/elements.ts'
import { hidden, postButton } from '#kit/web/ui/fields.ts'
import { address, fillHtml, html, STRONG, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { buttonAt, formAt, pageAt } from '#server/pages/context-routes.ts'
import { renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import { machinePath, MACHINES_TRAIL, renderBar } from '#server/pages/machines/machines-list.ts'
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
  renderBatchRow,
  renderShares,
  sayCounts,
  SHOWN_STATES,
} from '#server/current/view/batch-view.ts'
import { nameActor } from '#server/current/view/actor-name.ts'
import { nameOf } from '#server/current/view/machine-view.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
const SECTION = '/ui/machines'
const PATH = `${BATCHES_PATH}/:id`
/** Of the list, and of each group of machines. */
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
    section: SECTION,
    trail: MACHINES_TRAIL,
    updates: NEWS,
    messages: context.message(),
    body: html`<div class="stack" ${refreshOnNews('batches', BATCHES_PATH, 2000)}>
      ${renderUnderway(context)}
      ${
        batches.length === 0
          ? emptyState(
              'No batches',
              'An action on several machines is listed here, with how far each of them is.',
              html`<a class="button" href="/ui/machines">Select machines</a>`,
            )
          : card({
              body: html`<ul class="rows">
                ${batches.map(renderBatchRow)}
              </ul>`,
            })
      }
    </div>`,
  })
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
        >${fill(pluralOf({ one: '{action}: {left} of {count} machine to go, begun by {actor}', other: '{action}: {left} of {count} machines to go, begun by {actor}' }, macs.length), { count: macs.length, ...words })}</span
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
  if (found === undefined) return context.goBack(BATCHES_PATH, { error: 'This has ended already.' })
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
    section: SECTION,
    trail: html`<a href="${BATCHES_PATH}">Batches</a>`,
    updates: NEWS,
    messages: html`${context.message()}${renderActed(context.query, members)}`,
    body: html`<div class="stack" ${refreshOnNews('batch', batchPath(batch.id), 2000)}>
      ${renderHead(context, keeper.view(batch, members))} ${renderMembers(context, batch, members)}
    </div>`,
  })
}

const ACTED = {
  retry: { one: '{count} machine armed again.', other: '{count} machines armed again.' },
  disarm: { one: '{count} machine disarmed.', other: '{count} machines disarmed.' },
  undo: {
    one: 'Undone: {count} machine restored.',
    other: 'Undone: {count} machines restored.',
  },
  /** Where the batch had armed machines. */
  'undo-armed': {
    one: 'Undone: {count} machine restored and disarmed.',
    other: 'Undone: {count} machines restored and disarmed.',
  },
  pause: { one: 'Paused: {count} machine waits.', other: 'Paused: {count} machines wait.' },
  resume: { one: 'Resumed: {count} machine goes on.', other: 'Resumed: {count} machines go on.' },
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
    <p class="sentence">${sayCounts(batch, counts)}</p>
    ${renderShares(view)}
    ${batch.paused_at === null ? null : html`<p>${tag('Paused')} <span class="dim">Waiting machines boot from their own disks. Flashes in progress continue.</span></p>`}
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

function renderMembers(
  { site, services }: CurrentContext,
  batch: Batch,
  members: readonly MemberView[],
): Html {
  const runs = new Map(site.runs.listRunning().map((run) => [run.mac, run]))
  const look = (member: MemberView) =>
    renderMember(member, {
      run: member.state === 'running' ? (runs.get(member.mac) ?? null) : null,
      image: nameOwnImage(services.images(), batch, member),
    })
  return html`${SHOWN_STATES.map((state) =>
    renderGroup(
      state,
      members.filter((member) => member.state === state),
      look,
    ),
  )}`
}

/** Where the machines of a batch that writes have different images. */
function nameOwnImage(
  images: readonly CatalogEntry[],
  { action, image }: Batch,
  { machine, state }: MemberView,
): string | null {
  const ref = machine?.bty_image_ref
  const isOfIt = image === null && WRITES.has(action) && !GONE.has(state)
  return !isOfIt || !ref
    ? null
    : (images.find((each) => each.ref === ref)?.name ?? ref.slice(0, 12))
}

/** States in which the machine's present values are not from the batch. */
const GONE: ReadonlySet<MemberState> = new Set(['replaced', 'refused', 'undone'])

const GROUPS = {
  failed: 'Failed',
  running: 'In progress',
  paused: 'Paused',
  waiting: 'Not booted yet',
  disarmed: 'Disarmed',
  replaced: 'Given another order since',
  refused: 'Skipped',
  undone: 'Undone',
  done: 'Done',
} as const

function renderGroup(
  state: MemberState,
  members: readonly MemberView[],
  look: (member: MemberView) => Html,
): Content {
  if (members.length === 0) return null
  const more = members.length - MAX_ROWS
  return card({
    title: `${GROUPS[state]} (${members.length})`,
    body: html`<ul class="rows">
      ${members.slice(0, MAX_ROWS).map(look)}
      ${more > 0 ? html`<li class="dim">and ${more} more</li>` : null}
    </ul>`,
  })
}

interface ShownMember {
  /** Null: nothing reported. */
  readonly run: Run | null
  /** Null: what the batch says. */
  readonly image: string | null
}

function renderMember(member: MemberView, { run, image }: ShownMember): Html {
  const { mac, machine } = member
  const name = machine === null ? mac : nameOf(machine)
  const reason = findReason(member)
  return html`<li>
    <span class="grow"
      ><a href="${machinePath(mac)}"><bdi>${name}</bdi></a
      >${name === mac ? null : html` <span class="mono dim small">${mac}</span>`}${
        image === null ? null : html`<br /><bdi class="small">${image}</bdi>`
      }${reason === null ? null : html`<br /><span class="small dim">${reason}</span>`}</span
    >${run === null ? null : renderBar(run)}
  </li>`
}

const findReason = ({ machine, state, refusal }: MemberView): string | null =>
  refusal ?? (state === 'failed' ? (machine?.cycle.failure?.reason ?? null) : null)

const QUESTIONS = {
  retry: {
    title: { one: 'Flash {count} machine again?', other: 'Flash {count} machines again?' },
    button: 'Retry failed',
  },
  resume: {
    title: { one: 'Resume with {count} machine?', other: 'Resume with {count} machines?' },
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
    section: SECTION,
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
