/** Sends messages: one after the other to each receiver, from its own place behind the events. */
import { renderError } from '../../kit/foundation/fault.ts'
import { epochOf } from '../../kit/foundation/instants.ts'
import type { Database } from '../state/database.ts'
import type { JournalEntry } from '../state/journal.ts'
import { SYSTEM_EVENT } from '../state/event-rows.ts'
import { createFollower, type ReadingDependencies } from './follower.ts'
import { isOpen, type Message, type Messages } from './messages.ts'
import type { Receivers } from './receivers.ts'
import type { ReceiverSecrets } from './receiver-secrets.ts'
import { composeTest } from './rules/message.ts'
import { describeRefused, type DeliveryOutcome } from './rules/outcome.ts'
import type { Receiver } from './rules/receiver.ts'
import { isDue, planRetry } from './rules/retry-plan.ts'
import { pickNews, settleAttempt } from './rules/settlement.ts'
import type { transmit } from './transmission.ts'

interface SendingDependencies extends Pick<ReadingDependencies, 'matches' | 'findNamed' | 'base'> {
  readonly database: Database
  readonly receivers: Receivers
  readonly messages: Messages
  readonly secrets: Pick<ReceiverSecrets, 'find'>
  send(given: Parameters<typeof transmit>[0]): Promise<DeliveryOutcome>
  record(entry: JournalEntry): Promise<void>
  now(): Date
  readonly log: { warn(message: string): void }
}

export type Sender = ReturnType<typeof createSender>

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
    `Notifications to ${receiver.name} have failed for a day, and one was given up (${content.title}): ${failure}`,
  )

const describeLoss = (receiver: Receiver, { content }: Message, failure: string) =>
  describeFailed(
    receiver,
    `Not everyone got a notification to ${receiver.name} (${content.title}): ${failure}`,
  )

const describeFailed = ({ id, name }: Receiver, summary: string): JournalEntry => ({
  ...SYSTEM_EVENT,
  kind: 'notification.failed',
  subject_kind: 'settings',
  subject_id: name,
  summary,
  details: { receiver: id },
})
