/** What a message to a receiver says, the groups by which events are selected, and what became of a delivery. */
import { z } from 'zod'
import { isAlarm, type RecordedEvent } from '#fleet/state/rules/event-table.ts'
import { plainWords } from '#kit/foundation/printable.ts'

const oneOf = (...kinds: readonly string[]) => {
  const known = new Set(kinds)
  return (kind: string): boolean => known.has(kind)
}

/** Groups of events that a rule selects by one name. A group that is added stands here, and nowhere else. */
export const EVENT_GROUPS = {
  'flash-failed': { title: 'Flash failed', has: oneOf('machine.flash_failed') },
  flashed: { title: 'Flashed', has: oneOf('machine.flashed') },
  'boot-failed': {
    title: 'Failed to boot',
    has: oneOf('machine.boot_failed', 'machine.boot_not_seen'),
  },
  booted: { title: 'Booted', has: oneOf('machine.booted', 'machine.boot_seen') },
  'loop-suspected': {
    title: 'Boot loop or wrong disk suspected',
    has: oneOf('netboot.loop.suspected', 'netboot.plan.doubted'),
  },
  'batch-ended': { title: 'Batch ended', has: oneOf('batch.ended') },
  captured: {
    title: 'Captured',
    has: oneOf('machine.captured'),
  },
  'capture-failed': { title: 'Capture failed', has: oneOf('machine.capture_failed') },
  discovered: { title: 'Discovered', has: oneOf('machine.discovered') },
  'power-failed': { title: 'Power failed', has: oneOf('machine.power.failed') },
  'job-failed': {
    title: 'Backup or release failed',
    has: (kind) => /^(?:backup|netboot|images|catalog)\..*failed$/.test(kind),
  },
  'login-failed': {
    title: 'Login failed',
    has: oneOf('auth.login.failed', 'auth.password.failed', 'auth.token.failed'),
  },
  'server-fault': {
    title: 'Server error',
    has: (kind) => kind === 'notification.failed' || (kind.startsWith('system.') && isAlarm(kind)),
  },
  'needs-attention': { title: 'Needs attention', has: isAlarm },
} as const satisfies Readonly<
  Record<string, { readonly title: string; has(kind: string): boolean }>
>

export type EventGroupName = keyof typeof EVENT_GROUPS

const isName = (text: string): text is EventGroupName => Object.hasOwn(EVENT_GROUPS, text)

export const EVENT_GROUP_NAMES: readonly EventGroupName[] = Object.keys(EVENT_GROUPS).filter(isName)

/** What people call an event of this kind: by the first group that has it, else by its own name. */
export function nameKind(kind: string): string {
  const name = EVENT_GROUP_NAMES.find(
    (each) => each !== 'needs-attention' && EVENT_GROUPS[each].has(kind),
  )
  return name === undefined ? kind : EVENT_GROUPS[name].title
}

/** A message lists so many events; the others are counted. */
const MAX_LISTED = 50

const maybeText = z.string().nullable()

const ListedEventSchema = z.object({
  id: z.int(),
  time: z.string(),
  kind: z.string(),
  /** One sentence for people, the machine by its name. */
  summary: z.string(),
  subject_kind: z.string(),
  subject: maybeText,
  /** The machine that it is about, as it was called at that moment. */
  machine: z.object({ mac: z.string(), name: maybeText, labels: z.array(z.string()) }).nullable(),
  actor: z.string(),
  /** The path of its page at the server. */
  path: z.string(),
})
type ListedEvent = z.infer<typeof ListedEventSchema>

export const MessageContentSchema = z.object({
  title: z.string(),
  /** All events, those that are not listed included. */
  count: z.int(),
  events: z.array(ListedEventSchema),
  path: z.string(),
  /** Whether a person sent it to see whether it arrives. */
  is_test: z.boolean(),
})
export type MessageContent = z.infer<typeof MessageContentSchema>

/** Events that wait for those that follow; bounded, however many there are. */
export interface Collected {
  readonly events: readonly RecordedEvent[]
  /** How many there are of each kind. */
  readonly counts: ReadonlyMap<string, number>
}

export const NOTHING_COLLECTED: Collected = { events: [], counts: new Map() }

export function collect({ events, counts }: Collected, event: RecordedEvent): Collected {
  const listed = events.length < MAX_LISTED ? [...events, event] : events
  return {
    events: listed,
    counts: new Map(counts).set(event.kind, (counts.get(event.kind) ?? 0) + 1),
  }
}

/** What is known of a machine; null: it was deleted. */
export type FindNamed = (
  mac: string,
) => { readonly name: string | null; readonly labels: readonly string[] } | null

/** There is at least one event. */
export function composeMessage({ events, counts }: Collected, find: FindNamed): MessageContent {
  const listed = events.map((event) => listEvent(event, find))
  const count = [...counts.values()].reduce((sum, each) => sum + each, 0)
  const [only] = listed
  const isAlone = count === 1 && only !== undefined
  return {
    title: isAlone ? cut(only.summary) : nameCounts(counts),
    count,
    events: listed,
    path: isAlone ? only.path : '/ui/events',
    is_test: false,
  }
}

/** What a person sends to see whether it arrives. */
export const composeTest = (receiver: string): MessageContent => ({
  title: `Test of ${cut(plainWords(receiver))}: notifications arrive`,
  count: 0,
  events: [],
  path: '/ui/notifications',
  is_test: true,
})

/** `97 × Flash failed, 2 × Booted` */
const nameCounts = (counts: ReadonlyMap<string, number>): string => {
  const named = new Map<string, number>()
  for (const [kind, count] of counts) {
    const name = nameKind(kind)
    named.set(name, (named.get(name) ?? 0) + count)
  }
  const parts = [...named].toSorted(([, a], [, b]) => b - a)
  return cut(parts.map(([name, count]) => `${count} × ${name}`).join(', '))
}

const MAX_TITLE = 200
const cut = (text: string): string =>
  text.length <= MAX_TITLE ? text : `${text.slice(0, MAX_TITLE - 1)}…`

function listEvent(event: RecordedEvent, find: FindNamed): ListedEvent {
  const { id, ts, kind, subject_kind, subject_id: subject, actor } = event
  const known = subject_kind === 'machine' && subject !== null ? find(subject) : null
  const summary = plainWords(event.summary)
  return {
    id,
    time: ts,
    kind,
    summary: known === null ? summary : nameInSummary(summary, subject ?? '', known.name),
    subject_kind,
    subject,
    machine:
      known === null || subject === null
        ? null
        : { mac: subject, name: known.name, labels: [...known.labels] },
    actor,
    path: pathOf(event),
  }
}

/** `52:54:00:12:34:56 was flashed` becomes `node-7 (52:54:00:12:34:56) was flashed`. */
function nameInSummary(summary: string, mac: string, name: string | null): string {
  if (name === null || name === '' || !summary.startsWith(mac)) return summary
  return `${plainWords(name)} (${mac})${summary.slice(mac.length)}`
}

function pathOf({ subject_kind: kind, subject_id: id, details }: RecordedEvent): string {
  if (id === null) return '/ui/events'
  const part = encodeURIComponent(id)
  if (kind === 'batch') return `/ui/batches/${part}`
  if (kind !== 'machine') return '/ui/events'
  const run = details?.['run']
  const isRun = typeof run === 'string' && /^[\w-]{1,64}$/.test(run)
  return isRun ? `/ui/machines/${part}/runs/${run}` : `/ui/machines/${part}`
}

/** Null words: it was taken. */
export interface DeliveryOutcome {
  readonly failure: string | null
  /** How long the receiver asked to be left alone, milliseconds; null: it did not. */
  readonly wanted: number | null
  /** Of a mail that some have and others have not; absent: all have it, or nobody. */
  readonly partly?: {
    /** The addresses to which the next attempt goes. */
    readonly later: readonly string[]
    /** What was said of each address that is refused for good. */
    readonly never: Readonly<Record<string, string>>
  }
}

export const TAKEN: DeliveryOutcome = { failure: null, wanted: null }

export const failed = (failure: string, wanted: number | null = null): DeliveryOutcome => ({
  failure,
  wanted,
})

const MAX_WORDS = 200

/** Makes what others have said a part of a line: bounded, and without control characters. */
export const quoteWords = (text: string): string =>
  plainWords(text).replaceAll(/\s+/g, ' ').trim().slice(0, MAX_WORDS)

/** What it means that a mail server refused some addresses of a mail that others have. */
export function judgeRefusals(
  refusals: readonly { readonly address: string; readonly words: string }[],
): DeliveryOutcome {
  const said = refusals.map(({ address, words }) => [address, quoteWords(words)] as const)
  return {
    ...failed(describeRefused(Object.fromEntries(said))),
    partly: {
      later: refusals.filter(({ words }) => !isForGood(words)).map(({ address }) => address),
      never: Object.fromEntries(said.filter(([, words]) => isForGood(words))),
    },
  }
}

/** Only a reply that begins with 5 is for good (RFC 5321, 4.2.1). */
const isForGood = (words: string) => words.startsWith('5')

export const describeRefused = (said: Readonly<Record<string, string>>): string =>
  `the mail server refused ${Object.entries(said)
    .map(([address, words]) => `${address} (${words})`)
    .join(', ')}, and took the other addresses`

/** What an HTTP answer means; `body` is its beginning. */
export function judgeAnswer(status: number, body: string, wanted: number | null): DeliveryOutcome {
  if (status >= 200 && status < 300) return TAKEN
  if (status >= 300 && status < 400) {
    return failed(`the receiver redirects (HTTP ${status}). Enter the address it leads to`)
  }
  const words = quoteWords(body)
  return failed(`the receiver answered HTTP ${status}${words === '' ? '' : `: ${words}`}`, wanted)
}

type Refused = Readonly<Record<string, string>>

/** `next` says when the next attempt is due, milliseconds since the epoch; null: there is none. */
export function settleAttempt(
  message: {
    readonly state: 'waiting' | 'partly' | 'delivered' | 'given-up'
    readonly refused?: Refused | undefined
  },
  { failure, partly }: DeliveryOutcome,
  next: number | null,
) {
  const refused = { ...message.refused, ...partly?.never }
  const left = partly === undefined ? {} : { left: [...partly.later], refused }
  if (failure === null || partly?.later.length === 0) {
    const isForAll = Object.keys(refused).length === 0
    return {
      state: 'delivered',
      failure: isForAll ? null : describeRefused(refused),
      ...left,
    } as const
  }
  const open = partly === undefined ? message.state : 'partly'
  return { state: next === null ? 'given-up' : open, failure, ...left } as const
}

/**
 * The addresses of which an event tells: those that were not refused in the message before. Receivers
 * that hear of each other's failures would otherwise have no end of them.
 */
export const pickNews = (never: Refused, known: Refused): Refused =>
  Object.fromEntries(Object.entries(never).filter(([address]) => !Object.hasOwn(known, address)))

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** A message that nobody takes for so long is given up. */
export const GIVE_UP_MS = 24 * HOUR_MS
/** The pauses after the first attempts; the last one is repeated. */
const PAUSES_MS: readonly number[] = [
  10_000,
  MINUTE_MS,
  5 * MINUTE_MS,
  15 * MINUTE_MS,
  30 * MINUTE_MS,
  HOUR_MS,
  2 * HOUR_MS,
  3 * HOUR_MS,
]
const MAX_PAUSE_MS = Math.max(...PAUSES_MS)
/** A receiver may ask for a longer pause than ours, up to this. */
const MAX_OBEYED_MS = HOUR_MS

interface Attempt {
  /** How many attempts there were, this one included. */
  readonly attempts: number
  /** When the message was queued; milliseconds since the epoch. */
  readonly queuedAt: number
  readonly now: number
  /** What the receiver asked for, milliseconds; null: nothing. */
  readonly wanted?: number | null
}

/**
 * Returns when the next attempt is due, in milliseconds since the epoch; null: the message is given
 * up. A clock that was set back makes it wait no longer than the pause.
 */
export function planRetry({ attempts, queuedAt, now, wanted = null }: Attempt): number | null {
  if (now - queuedAt >= GIVE_UP_MS) return null
  const usual = PAUSES_MS[Math.min(attempts, PAUSES_MS.length) - 1] ?? HOUR_MS
  const pause = Math.max(usual, Math.min(wanted ?? 0, MAX_OBEYED_MS))
  return Math.min(now + pause, Math.max(now, queuedAt + GIVE_UP_MS))
}

/** Says whether an attempt is due; a time far ahead is one that a clock set back has left behind. */
export const isDue = (nextAt: number, now: number): boolean =>
  nextAt <= now || nextAt > now + MAX_PAUSE_MS
