/** Sends notifications: follows the events for each receiver, makes one message of those that belong together, and sends one after the other. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { renderError } from '#kit/foundation/fault.ts'
import { epochOf } from '#kit/foundation/instants.ts'
import type { Database } from '#fleet/state/database.ts'
import { SYSTEM_EVENT, listEventsAfter } from '#fleet/state/event-rows.ts'
import type { JournalEntry } from '#fleet/state/journal.ts'
import { readNumber, type Sql } from '#fleet/state/sqlite.ts'
import { isOpen, type Message, type Messages } from './messages.ts'
import type { Receivers, ReceiverSecrets } from './receivers.ts'
import {
  type HttpPost,
  isWanted,
  type MatchesSearch,
  type OutgoingMessage,
  type Receiver,
  type ReceiverTarget,
  renderMail,
  renderPost,
  SECRET_SHAPES,
} from './rules/channel.ts'
import {
  collect,
  type Collected,
  composeMessage,
  composeTest,
  type DeliveryOutcome,
  describeRefused,
  failed,
  type FindNamed,
  isDue,
  judgeAnswer,
  NOTHING_COLLECTED,
  pickNews,
  planRetry,
  settleAttempt,
} from './rules/message.ts'
import * as http from 'node:http'
import * as https from 'node:https'
import { describeFailure, parseRetryAfter } from '#kit/net/rules/network-failure.ts'
import { type SendingLimits, describeTls, routeTo, STOPPED, unfound, within } from './outgoing.ts'

interface SendingDependencies {
  readonly database: Database
  readonly receivers: Receivers
  readonly messages: Messages
  readonly secrets: Pick<ReceiverSecrets, 'find'>
  readonly matches: MatchesSearch
  readonly findNamed: FindNamed
  send(given: Parameters<typeof transmit>[0]): Promise<DeliveryOutcome>
  /** The address of the pages without a slash at its end; null: nobody has said it. */
  base(): string | null
  record(entry: JournalEntry): Promise<void>
  now(): Date
  readonly log: { warn(message: string): void }
}

/** Creates what sends; `tick` is called every second. */
export function createSender(given: SendingDependencies) {
  const { receivers, messages, now, log } = given
  const follower = createFollower(given)
  const busy = new Map<string, Promise<void>>()
  const following = new Map<string, Promise<unknown>>()
  const { attempt, transmitTo } = createAttempts(given)

  /** Events of a receiver are read once at a time; an attempt may take ten minutes beside it. */
  function follow<T>(
    receiver: Receiver,
    use: (found: Awaited<ReturnType<typeof follower.follow>>) => Promise<T>,
  ): Promise<T> {
    const former = following.get(receiver.id) ?? Promise.resolve()
    const work = former.then(async () => await use(await follower.follow(receiver)))
    const end = work.catch(() => undefined)
    following.set(receiver.id, end)
    void end.then(() => {
      if (following.get(receiver.id) === end) following.delete(receiver.id)
    })
    return work
  }

  /** At most one attempt, and then what waits behind it is looked at again. */
  async function serve(receiver: Receiver): Promise<void> {
    const waiting = await follow(
      receiver,
      async ({ compose }) => messages.findWaiting(receiver.id) ?? (await compose()),
    )
    const next = [waiting, messages.findPartly(receiver.id)]
      .filter((one) => one !== null)
      .find((one) => isDue(epochOf(one.next_at), now().getTime()))
    if (next !== undefined) await attempt(receiver, next)
  }

  function begin(receiver: Receiver): void {
    const serving = serve(receiver)
      .catch((thrown: unknown) => log.warn(`notifications: ${renderError(thrown)}`))
      .finally(() => busy.delete(receiver.id))
    busy.set(receiver.id, serving)
  }

  return {
    /** Looks at every receiver; one that is being sent to is left alone. */
    tick(): void {
      const present = receivers.list()
      follower.keepOnly(present)
      for (const receiver of present) {
        if (!receiver.paused && !busy.has(receiver.id)) begin(receiver)
      }
    },
    ...createManual(given, transmitTo),
    /**
     * Puts what has happened so far into a message, by the rules that are there now: they are changed
     * after it, and are no rules for what was before.
     */
    async catchUp(receiver: Receiver): Promise<void> {
      await follow(receiver, ({ finish }) => finish())
    },
    /** Resolves once nothing is being sent. */
    async settle(): Promise<void> {
      await Promise.all([...busy.values(), ...following.values()])
    },
  }
}

/** What was read for one receiver since its stored place; a restart reads it again. */
interface FollowedEvents {
  /** The rules by which it was read, and the state of the database. */
  readonly of: string
  readonly place: number
  readonly collected: Collected
  /** How many events were read since the place was stored. */
  readonly read: number
}

/** So many events are read at once, while others are answered in between. */
const STEP = 200
/** The place is stored after so many events that are for nobody: a start reads no more than these. */
const MAX_UNSTORED = 2000
/** What follows an event within this time is in the same message. */
const COLLECTED_MS = 30_000

/** What was read and is not in a message yet is in memory alone, and in the journal. */
function createFollower(given: SendingDependencies) {
  const { database, receivers, now } = given
  const progress = new Map<string, FollowedEvents>()

  function resume(receiver: Receiver): FollowedEvents {
    const of = JSON.stringify([database.epoch(), receiver.rules])
    const known = progress.get(receiver.id)
    if (known?.of === of) return known
    const place = receivers.placeOf(receiver.id) ?? 0
    return { of, place, collected: NOTHING_COLLECTED, read: 0 }
  }

  function read(
    receiver: Receiver,
    before: FollowedEvents,
  ): { after: FollowedEvents; isMore: boolean } {
    const found = listEventsAfter(database.sql, before.place, STEP)
    let { collected, place } = before
    for (const event of found) {
      place = event.id
      if (isWanted(receiver, event, given.matches)) collected = collect(collected, event)
    }
    const after = { ...before, collected, place, read: before.read + found.length }
    return { after, isMore: found.length === STEP }
  }

  const { skip, store } = createSteps(given, (id) => void progress.delete(id))

  async function compose(receiver: Receiver): Promise<Message | null> {
    const { collected, place, read: count } = resume(receiver)
    const [first] = collected.events
    if (first === undefined) return count >= MAX_UNSTORED ? await skip(receiver, place) : null
    // An event far ahead is one that a clock set back has left behind.
    const isReady = Math.abs(now().getTime() - epochOf(first.ts)) >= COLLECTED_MS
    return isReady ? await store(receiver, collected, place) : null
  }

  return {
    /** Reads what has happened since, and offers to make a message of what is due. */
    async follow(receiver: Receiver) {
      let present = resume(receiver)
      if (newest(database.sql) < present.place) {
        // A restore has taken events away; the stored place knows of it.
        progress.delete(receiver.id)
        present = resume(receiver)
      }
      for (let isMore = true; isMore;) {
        const step = read(receiver, present)
        present = step.after
        isMore = step.isMore
        progress.set(receiver.id, present)
        if (isMore) await nextTurn()
      }
      const { collected, place } = present
      const isNothing = collected.events.length === 0
      return {
        /** Resolves to the message; null: nothing is due yet. */
        compose: () => compose(receiver),
        /** Does so whether it is due or not, and stores the place in any case. */
        finish: () => (isNothing ? skip(receiver, place) : store(receiver, collected, place)),
      }
    },
    keepOnly(present: readonly Receiver[]): void {
      if (progress.size === 0) return
      const ids = new Set(present.map(({ id }) => id))
      for (const id of progress.keys()) if (!ids.has(id)) progress.delete(id)
    },
  }
}

/** What moves the place of a receiver; `forget` is called with it when that is stored. */
function createSteps(
  { database, receivers, messages, findNamed, base, now }: SendingDependencies,
  forget: (id: string) => void,
) {
  return {
    async skip({ id }: Receiver, place: number): Promise<null> {
      await database.write((sql) => receivers.moveTo(sql, id, place))
      forget(id)
      return null
    },
    /** The message and the place behind its events are stored together: no event is in two messages. */
    async store(
      { id, name }: Receiver,
      collected: Collected,
      place: number,
    ): Promise<Message | null> {
      const content = composeMessage(collected, findNamed)
      const time = now().toISOString()
      const message = await database.write((sql) => {
        if (!receivers.moveTo(sql, id, place)) return null
        return messages.insert(sql, {
          receiver: id,
          state: 'waiting',
          made_at: time,
          queued_at: time,
          attempts: 0,
          tried_at: null,
          next_at: time,
          failure: null,
          content,
          receiver_name: name,
          base: base(),
        })
      })
      forget(id)
      return message
    },
  }
}

const newest = (sql: Sql): number =>
  readNumber(sql.get('SELECT coalesce(max(id), 0) AS id FROM events'), 'id')

/** The messages among which the one before is looked for. */
const MAX_LOOKED_AT = 20

type TransmitTo = ReturnType<typeof createAttempts>['transmitTo']

function createAttempts(given: SendingDependencies) {
  const { messages, now } = given

  const transmitTo = (receiver: Receiver, message: Message) => {
    const { id, made_at, receiver_name, content, base } = message
    return given.send({
      target: receiver.target,
      secret: given.secrets.find(receiver.id),
      message: { id, made_at, receiver: receiver_name, content, base },
      left: message.left,
    })
  }

  /** The attempt is on record before it is made, and its outcome before the next one. */
  async function attempt(receiver: Receiver, message: Message): Promise<void> {
    const started = now()
    const attempts = message.attempts + 1
    const queuedAt = epochOf(message.queued_at)
    const planned = (wanted: number | null, at: Date) =>
      planRetry({ attempts, queuedAt, now: at.getTime(), wanted })
    const iso = (time: number | null) => new Date(time ?? started.getTime()).toISOString()
    const noted = await messages.change(message.id, (before) => ({
      ...before,
      attempts,
      tried_at: started.toISOString(),
      next_at: iso(planned(null, started)),
    }))
    if (noted === null) return
    const outcome = await transmitTo(receiver, message)
    const next = planned(outcome.wanted, now())
    const settled = settleAttempt(message, outcome, next)
    const isOver = settled.state === 'delivered'
    const kept = await messages.change(message.id, (before) =>
      // A restore has given it up meanwhile; only that it arrived is news.
      before.state === message.state || isOver
        ? { ...before, ...settled, next_at: iso(isOver ? null : next) }
        : before,
    )
    if (kept !== null) await recordLosses(receiver, kept, outcome, settled)
  }

  async function recordLosses(
    receiver: Receiver,
    message: Message,
    { partly }: DeliveryOutcome,
    { state, failure }: Pick<Message, 'state' | 'failure'>,
  ): Promise<void> {
    if (state === 'given-up' && message.failure === failure)
      await given.record(describeGivenUp(receiver, message, failure ?? ''))
    if (partly === undefined) return
    const isEarlier = (one: Message) =>
      one.id !== message.id && one.attempts > 0 && !one.content.is_test
    const before = messages.list(receiver.id, MAX_LOOKED_AT).find(isEarlier)
    const news = pickNews(partly.never, before?.refused ?? {})
    if (Object.keys(news).length > 0)
      await given.record(describeLoss(receiver, message, describeRefused(news)))
  }

  return { attempt, transmitTo }
}

const createManual = (
  { database, messages, base, now }: SendingDependencies,
  transmitTo: TransmitTo,
) => ({
  /** Sends a message that says it is a test, once, and keeps what became of it. */
  async sendTest(receiver: Receiver): Promise<Message> {
    const at = now().toISOString()
    const message = await database.write((sql) =>
      messages.insert(sql, {
        receiver: receiver.id,
        // Nothing repeats it: who sent it sees what became of it.
        state: 'given-up',
        made_at: at,
        queued_at: at,
        attempts: 1,
        tried_at: at,
        next_at: at,
        failure: 'it was cut off',
        content: composeTest(receiver.name),
        receiver_name: receiver.name,
        base: base(),
      }),
    )
    const { failure } = await transmitTo(receiver, message)
    const state = failure === null ? 'delivered' : 'given-up'
    const kept = await messages.change(message.id, (before) => ({ ...before, state, failure }))
    return kept ?? { ...message, state, failure }
  },
  /**
   * Queues a message again. One that was given up keeps its id, so that a receiver that has it knows
   * it again; of one that was delivered a second one is made. Null: it is not kept any more.
   */
  async sendAgain(id: string): Promise<Message | null> {
    const at = now().toISOString()
    const fresh = { state: 'waiting', queued_at: at, next_at: at, attempts: 0 } as const
    const found = messages.find(id)
    if (found === null || isOpen(found)) return found
    if (found.state === 'given-up') {
      return await messages.change(id, (before) => ({ ...before, ...fresh }))
    }
    const { id: _, ...record } = found
    return await database.write((sql) =>
      messages.insert(sql, {
        ...record,
        ...fresh,
        tried_at: null,
        failure: null,
        left: undefined,
        refused: undefined,
      }),
    )
  },
})

const describeGivenUp = (receiver: Receiver, { content }: Message, failure: string) =>
  describeFailed(
    receiver,
    `Notifications to ${receiver.name} have failed for a day, and the notification "${content.title}" was discarded: ${failure}`,
  )

const describeLoss = (receiver: Receiver, { content }: Message, failure: string) =>
  describeFailed(
    receiver,
    `Some addresses did not get a notification to ${receiver.name} (${content.title}): ${failure}`,
  )

const describeFailed = ({ id, name }: Receiver, summary: string): JournalEntry => ({
  ...SYSTEM_EVENT,
  kind: 'notification.failed',
  subject_kind: 'settings',
  subject_id: name,
  summary,
  details: { receiver: id },
})

// Sends a message to its receiver, in the form that its kind asks for: once, within limits, without redirects and proxies.

/** Sends it once, within the limit. What is needed for one kind alone is loaded where it is used. */
export async function transmit(
  {
    target,
    secret,
    message,
    left,
  }: {
    readonly target: ReceiverTarget
    /** What opens it; null: none is kept here. */
    readonly secret: string | null
    readonly message: OutgoingMessage
    /** The addresses of a mail that are left of an earlier attempt; absent: all. */
    readonly left?: readonly string[] | undefined
  },
  given: SendingLimits,
): Promise<DeliveryOutcome> {
  if (secret === null && SECRET_SHAPES[target.kind] !== null) {
    return failed('its secret is not on this server. Edit the receiver and enter it again')
  }
  const opening = secret ?? ''
  if (target.kind === 'mail') {
    const { sendMail } = await import('./mail.ts')
    const mail = { id: message.id, left, ...renderMail(message) }
    return await sendMail(target, opening, mail, given)
  }
  const post = renderPost(target, opening, message)
  if (target.kind !== 'webhook') return await sendHttp(post, given)
  return await sendHttp({ ...post, headers: await sign(opening, message.id, post.body) }, given)
}

/** The time is that of the attempt: receivers refuse what was signed long ago. */
async function sign(secret: string, id: string, body: string): Promise<Record<string, string>> {
  const { Webhook } = await import('standardwebhooks')
  const now = new Date()
  return {
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign(id, now, body),
  }
}

/** Bytes of an answer that are read. */
const MAX_ANSWER = 2048

/** Sends it once. It never rejects but for mistakes of ours: what keeps it from arriving is the outcome. */
export async function sendHttp(post: HttpPost, given: SendingLimits): Promise<DeliveryOutcome> {
  const url = new URL(post.url)
  const host = url.hostname.replaceAll(/[[\]]/g, '')
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80))
  const late = AbortSignal.timeout(given.limitMs)
  const ending = AbortSignal.any([late, given.signal])
  const found = await within(given.find({ host, port }), ending)
  if (found === null) return unfound(given)
  if (!found.ok) return failed(found.refusal)
  const { request } = url.protocol === 'https:' ? https : http
  const started = request({
    method: 'POST',
    ...routeTo({ host, port }, found.value, given.limitMs),
    path: `${url.pathname}${url.search}`,
    // A connection for each message: there are few, and none is found closed.
    agent: false,
    headers: {
      host: url.host,
      'user-agent': 'flasher',
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(post.body),
      ...post.headers,
    },
    signal: ending,
    ...describeTls(host, given.authorities),
  })
  return await exchange(started, post.body).catch((thrown: unknown) =>
    describeError(thrown, given, late),
  )
}

function describeError(
  thrown: unknown,
  { signal, limitMs }: Pick<SendingLimits, 'signal' | 'limitMs'>,
  late: AbortSignal,
): DeliveryOutcome {
  if (signal.aborted) return failed(STOPPED)
  if (late.aborted) return failed(`no answer within ${limitMs / 1000} s`)
  const failure = describeFailure(thrown)
  if (failure === null) throw thrown
  const { reason, hint } = failure
  return failed(hint === undefined ? reason : `${reason}. ${hint}`)
}

function exchange(request: http.ClientRequest, body: string): Promise<DeliveryOutcome> {
  const { promise, resolve, reject } = Promise.withResolvers<DeliveryOutcome>()
  let isAnswered = false
  request.on('error', (error) => {
    // What ends the connection afterwards changes nothing.
    if (!isAnswered) reject(error)
  })
  request.on('response', (response) => {
    isAnswered = true
    const { statusCode: status = 0, headers } = response
    const judge = (start: string) => judgeAnswer(status, start, readWait(headers['retry-after']))
    // A body that never ends is not waited for. It is still read: some programs end with their reader.
    if (judge('').failure === null) resolve(judge(''))
    void readStart(response).then((start) => {
      resolve(judge(start))
      request.destroy()
    })
  })
  request.end(body)
  return promise
}

/** What came before the limit or a broken connection counts: the status has said the most. */
async function readStart(response: http.IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of response) {
      if (!(chunk instanceof Buffer)) continue
      parts.push(chunk)
      size += chunk.length
      if (size >= MAX_ANSWER) break
    }
  } catch {
    // There is no more of it.
  }
  return Buffer.concat(parts).toString('utf8').slice(0, MAX_ANSWER)
}

/** Milliseconds; null: it names neither seconds nor a date. */
const readWait = (text: string | undefined): number | null =>
  parseRetryAfter(text, Date.parse(text ?? '') - Date.now(), Infinity)
