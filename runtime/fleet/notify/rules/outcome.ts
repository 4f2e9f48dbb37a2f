/** What became of one attempt to send a message, in words; when it is tried again, and when it is over. */
import { plainWords } from '#kit/foundation/printable.ts'

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
    return failed(
      `the receiver redirects (HTTP ${status}), which is not followed: enter the address it leads to`,
    )
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
