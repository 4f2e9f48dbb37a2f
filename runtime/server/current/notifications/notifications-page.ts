/** /ui/notifications: who is notified of what happens, whether it arrives, and what was sent. */
import { getRouterParam } from 'h3'
import { isOpen, type Message } from '#fleet/notify/messages.ts'
import {
  LOCAL_SETTING,
  nameTarget,
  type Receiver,
  TARGET_KINDS,
  type TargetKind,
} from '#fleet/notify/rules/channel.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { refuse as refuseRequest } from '#kit/web/answers/faults.ts'
import { badge, card, emptyState, factList, tag, type Tone } from '#kit/web/ui/elements.ts'
import { postButton } from '#kit/web/ui/fields.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { fillCount } from '#kit/foundation/text.ts'
import { buttonAt, formAt, pageAt, removalAt } from '#server/pages/context-routes.ts'
import { questionButton, showRemoval } from '#server/pages/question.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import {
  CHANNELS,
  readKind,
  readReceiver,
  renderFields,
  typedOf,
  describeRefusal,
  findReceiver,
  goDone,
  NOTIFICATIONS_PATH as PATH,
  NOTIFICATIONS_TITLE,
  REFUSALS,
  WRONG_FIELDS,
  pathOfReceiver,
  renderDone,
  trailTo,
} from './receiver-form.ts'
import { renderRules } from './rule-form.ts'

const ONE = `${PATH}/:id`
/** Deliveries on the page of a receiver. */
const MAX_SHOWN = 50

export const NOTIFICATION_PAGES = [
  pageAt(PATH, 'admin', show),
  pageAt(`${PATH}/add/:kind`, 'admin', showForm),
  formAt(`${PATH}/add/:kind`, 'admin', add),
  pageAt(ONE, 'admin', showReceiver),
  formAt(ONE, 'admin', edit),
  buttonAt(`${ONE}/test`, 'admin', sendTest),
  buttonAt(`${ONE}/pause`, 'admin', (context: CurrentContext) => setPaused(context, true)),
  buttonAt(`${ONE}/resume`, 'admin', (context: CurrentContext) => setPaused(context, false)),
  formAt(`${ONE}/again`, 'admin', sendAgain),
  removalAt(`${ONE}/remove`, 'admin', askRemoval, remove),
]

async function show(context: CurrentContext): Promise<Answer> {
  const receivers = context.services.notify.receivers.list()
  return await context.show({
    title: NOTIFICATIONS_TITLE,
    learn: 'notifications.html',
    count: receivers.length,
    messages: html`${context.message()}${renderDone(context, null)}`,
    body: html`<div class="columns even">
      <div>
        ${
          receivers.length === 0
            ? emptyState(
                'No receivers yet',
                'Add a receiver, send it a test, and choose its events.',
              )
            : card({
                body: html`<ul class="rows" aria-label="Receivers of notifications">
                  ${receivers.map((receiver) => renderRow(context, receiver))}
                </ul>`,
              })
        }
      </div>
      <div>${card({ title: 'Add a receiver', id: 'add', body: renderKinds() })}</div>
    </div>`,
  })
}

const renderKinds = (): Html =>
  html`<ul class="rows">
    ${TARGET_KINDS.map(
      (kind) =>
        html`<li>
          <span class="grow"
            ><strong>${CHANNELS[kind].title}</strong><br /><span class="small dim"
              >${CHANNELS[kind].text}</span
            ></span
          >
          <a
            class="button"
            href="${PATH}/add/${kind}"
            aria-label="${`Add a receiver: ${CHANNELS[kind].title}`}"
            >Add</a
          >
        </li>`,
    )}
  </ul>`

const renderRow = (context: CurrentContext, receiver: Receiver): Html =>
  html`<li>
    <span class="grow"
      ><a href="${pathOfReceiver(receiver.id)}"><strong>${receiver.name}</strong></a>
      ${tag(CHANNELS[receiver.target.kind].title)}<br /><span class="small"
        >${renderState(context, receiver, false)}</span
      ></span
    >
  </li>`

/** One line, however often it failed; `hasLog`: the deliveries beside it say why. */
function renderState(context: CurrentContext, { id, paused }: Receiver, hasLog: boolean): Content {
  const { messages } = context.services.notify
  const time = (iso: string) => renderTime(iso, context.clock())
  if (paused)
    return html`${badge('ready', '')} Paused. What happens until you resume is never sent.`
  const waiting = messages.findWaiting(id)
  if (waiting !== null && waiting.failure !== null) {
    const { queued_at: since, failure, next_at: next } = waiting
    const why = hasLog ? null : html`: ${renderFailure(failure)}`
    return html`${badge('failed', '')} Failing since ${time(since)}${why}. Next attempt
    ${time(next)}.`
  }
  const [last] = messages.list(id, 2).filter(({ state }) => state !== 'waiting')
  if (last === undefined) return waiting === null ? 'Nothing sent yet.' : 'One message is waiting.'
  return renderLast(last, time(last.tried_at ?? last.queued_at), hasLog)
}

function renderLast({ state, failure }: Message, time: Content, hasLog: boolean): Html {
  if (failure === null && state !== 'given-up') {
    return html`${badge('done', '')} Delivered ${time}.`
  }
  const what =
    state === 'given-up' ? html`Failed ${time}` : html`Delivered ${time}, but not to everyone`
  const why = hasLog ? null : html`: ${renderFailure(failure ?? 'unknown')}`
  return html`${badge('failed', '')} ${what}${why}.`
}

/** With a link to the setting that it names. */
function renderFailure(failure: string): Html {
  const [before = '', after] = failure.split(LOCAL_SETTING)
  if (after === undefined) return html`${before}`
  return html`${before}<a href="/ui/settings#notify.networks">${LOCAL_SETTING}</a>${after}`
}

async function showForm(context: CurrentContext): Promise<Answer> {
  const kind = kindOf(context)
  const { title, text } = CHANNELS[kind]
  const fields = renderFields(context, kind, null)
  return await context.show({
    title: `Add a receiver: ${title}`,
    trail: trailTo(null),
    body: card({
      body: html`<p class="dim">${text}</p>
        <form method="post" action="${PATH}/add/${kind}" class="narrow">
          ${fields}<button class="primary">Add receiver</button>
        </form>`,
    }),
  })
}

function add(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const kind = kindOf(context)
  return save(context, form, { kind, path: `${PATH}/add/${kind}`, id: null })
}

function edit(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { id, target } = findReceiver(context)
  return save(context, form, { kind: target.kind, path: pathOfReceiver(id), id })
}

/** `id` null: it is added. */
async function save(
  context: CurrentContext,
  form: URLSearchParams,
  {
    kind,
    path,
    id,
  }: { readonly kind: TargetKind; readonly path: string; readonly id: string | null },
): Promise<Answer> {
  const { edits } = context.services.notify
  const typed = typedOf(form)
  const read = readReceiver(kind, form)
  if (!read.ok) return context.goBack(path, { error: WRONG_FIELDS, errors: read.refusal, typed })
  const saved = await (id === null
    ? edits.add(read.value, context.by())
    : edits.edit(id, read.value, context.by()))
  if (saved.ok) return goDone(context, saved.value, id === null ? 'added' : 'saved')
  return context.goBack(path, { ...describeRefusal(kind, saved.refusal), typed })
}

async function showReceiver(context: CurrentContext): Promise<Answer> {
  const receiver = findReceiver(context)
  const { id, name, paused } = receiver
  const path = pathOfReceiver(id)
  return await context.show({
    title: name,
    trail: trailTo(null),
    actions: postButton({ action: `${path}/test`, label: 'Send a test', tone: 'primary' }),
    messages: html`${context.message()}${renderDone(context, name)}`,
    body: html`<div class="columns even">
      <div>
        ${card({
          body: html`${factList([
              [
                CHANNELS[receiver.target.kind].title,
                html`<code>${nameTarget(receiver.target)}</code>`,
              ],
              ['State', renderState(context, receiver, true)],
            ])}
            <div class="row">
              ${postButton({ action: `${path}/${paused ? 'resume' : 'pause'}`, label: paused ? 'Resume' : 'Pause' })}
              ${questionButton({ action: `${path}/remove`, label: 'Remove…', tone: 'danger' })}
            </div>`,
        })}
        ${card({ title: 'Rules', id: 'rules', body: renderRules(receiver) })}
        ${card({ title: 'Address and name', id: 'edit', body: renderEdit(context, receiver) })}
      </div>
      <div>
        ${card({ title: 'Deliveries, newest first', id: 'log', body: renderLog(context, receiver) })}
      </div>
    </div>`,
  })
}

const renderEdit = (context: CurrentContext, receiver: Receiver): Html =>
  html`<form method="post" action="${pathOfReceiver(receiver.id)}" class="narrow">
    ${renderFields(context, receiver.target.kind, receiver)}
    <button>Save</button>
  </form>`

function renderLog(context: CurrentContext, { id }: Receiver): Html {
  const messages = context.services.notify.messages.list(id, MAX_SHOWN)
  return messages.length === 0
    ? html`<p class="dim">Nothing was sent yet.</p>`
    : html`<ul class="rows">
        ${messages.map((message) => renderMessage(context, message))}
      </ul>`
}

const STATES: Readonly<Record<Message['state'], readonly [Tone, string]>> = {
  waiting: ['running', 'waiting'],
  partly: ['running', 'waiting for some addresses'],
  delivered: ['done', 'delivered'],
  'given-up': ['failed', 'failed'],
}

function renderMessage(context: CurrentContext, message: Message): Html {
  const { id, receiver, state, attempts, failure, queued_at: at, content } = message
  return html`<li>
    <span class="grow"
      >${badge(...STATES[state])} ${content.title} ${content.is_test ? tag('test') : null}<br /><span
        class="small dim"
        >${renderTime(at, context.clock())},
        ${fillCount({ one: '1 attempt', other: '{count} attempts' }, attempts)}${failure === null ? null : html`: ${renderFailure(failure)}`}
        <code>${id}</code></span
      ></span
    >
    ${isOpen(message) || content.is_test ? null : postButton({ action: `${pathOfReceiver(receiver)}/again`, label: 'Send again', values: { message: id } })}
  </li>`
}

async function sendTest(context: CurrentContext): Promise<Answer> {
  const receiver = findReceiver(context)
  const { failure } = await context.services.notify.sender.sendTest(receiver)
  if (failure === null) return goDone(context, receiver, 'tested')
  const error = `The test to ${receiver.name} failed. The reason is under Deliveries.`
  return context.goBack(pathOfReceiver(receiver.id), { error, anchor: 'log' })
}

async function setPaused(context: CurrentContext, paused: boolean): Promise<Answer> {
  const { id } = findReceiver(context)
  const changed = await context.services.notify.edits.setPaused(id, paused, context.by())
  return changed.ok
    ? goDone(context, changed.value, paused ? 'paused' : 'resumed')
    : context.goBack(PATH, { error: REFUSALS[changed.refusal] })
}

async function sendAgain(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const receiver = findReceiver(context)
  const { messages, sender } = context.services.notify
  const message = messages.find(form.get('message') ?? '')
  const isOwn = message?.receiver === receiver.id && !message.content.is_test
  const queued = isOwn ? await sender.sendAgain(message.id) : null
  if (queued !== null) return goDone(context, receiver, 'again')
  return context.goBack(pathOfReceiver(receiver.id), {
    error: 'This message is no longer kept.',
  })
}

async function askRemoval(context: CurrentContext): Promise<Answer> {
  const receiver = findReceiver(context)
  const { id, name } = receiver
  return await showRemoval(context, {
    title: `Remove ${name}`,
    trail: trailTo(receiver),
    question: `Remove the receiver ${name}?`,
    body: html`<p>Waiting messages and the delivery log are deleted.</p>`,
    cancel: pathOfReceiver(id),
    button: 'Remove receiver',
  })
}

async function remove(context: CurrentContext): Promise<Answer> {
  const receiver = findReceiver(context)
  const removed = await context.services.notify.edits.remove(receiver.id, context.by())
  return removed.ok
    ? goDone(context, removed.value, 'removed')
    : context.goBack(PATH, { error: REFUSALS[removed.refusal] })
}

/** Throws a 404 where there is no such kind. */
function kindOf({ event }: CurrentContext): TargetKind {
  const kind = readKind(getRouterParam(event, 'kind') ?? '')
  if (kind === null) throw refuseRequest(404, REFUSALS.unknown)
  return kind
}
