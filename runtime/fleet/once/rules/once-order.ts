/** An operator's order to boot a machine into something else once: how long it holds, and how long its addresses answer. */
import { z } from 'zod'
import { epochOf } from '#kit/foundation/instants.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { EntryNameSchema } from './boot-entry.ts'

const time = z.iso.datetime({ offset: true })

export const OnceOrderSchema = z.object({
  /** The name of the boot entry. */
  entry: EntryNameSchema,
  ordered_at: time,
  /** When it ends unused. */
  expires_at: time,
  /** When its script was first offered; null: not yet. */
  offered_at: time.nullable(),
  /** When its kernel or program was fetched; null: not yet. */
  used_at: time.nullable(),
  /** When the first of its answers was fetched; null: none was. */
  answered_at: time.nullable(),
  /** A signature of the answers as they were then: the same bytes, or none. */
  answers_mark: z.string().nullable(),
})

export type OnceOrder = Readonly<z.output<typeof OnceOrderSchema>>

export const ORDER_HOURS = 24
export const ANSWER_MINUTES = 30
const ORDER_MS = ORDER_HOURS * 3_600_000
const ANSWER_MS = ANSWER_MINUTES * 60_000

export const createOnce = (entry: string, now: string): OnceOrder => ({
  entry,
  ordered_at: now,
  expires_at: later(now, ORDER_MS),
  offered_at: null,
  used_at: null,
  answered_at: null,
  answers_mark: null,
})

const later = (at: string, ms: number): string =>
  Temporal.Instant.fromEpochMilliseconds(epochOf(at) + ms).toString({ fractionalSecondDigits: 3 })

const isPast = (at: string, ms: number, now: string): boolean => epochOf(at) + ms <= epochOf(now)

/** Its machine has not booted it yet. */
export const isWaiting = (once: OnceOrder | null): once is OnceOrder =>
  once !== null && once.used_at === null

/** It ended unused. */
export const isExpired = (once: OnceOrder | null, now: string): boolean =>
  isWaiting(once) && isPast(once.expires_at, 0, now)

/** Used, and nothing of it is sent any more. */
export const isOver = ({ used_at }: OnceOrder, now: string): boolean =>
  used_at !== null && isPast(used_at, ORDER_MS, now)

/** Whether its files are sent: from its script to the next one after its boot, and no longer than a day. */
export const isOpen = ({ offered_at, used_at, expires_at }: OnceOrder, now: string): boolean =>
  offered_at !== null &&
  (used_at === null ? !isPast(expires_at, 0, now) : !isPast(used_at, ORDER_MS, now))

/** Its answers begin with its boot, so that nobody ends them before, and end earlier: they may name what nobody else should read. */
export const mayAnswer = (once: OnceOrder, now: string): boolean =>
  once.used_at !== null &&
  isOpen(once, now) &&
  (once.answered_at === null || !isPast(once.answered_at, ANSWER_MS, now))

/** Part of the addresses of one order of one machine: nobody can guess it. */
export const renderTicket = (
  mac: Mac,
  { ordered_at }: Pick<OnceOrder, 'ordered_at'>,
  sign: (text: string) => string,
): string => sign(`once:${mac}:${epochOf(ordered_at)}`)

export const isTicketOf = (
  mac: Mac,
  { ordered_at }: Pick<OnceOrder, 'ordered_at'>,
  ticket: string,
  verify: (text: string, signature: string) => boolean,
): boolean => ticket.length < 100 && verify(`once:${mac}:${epochOf(ordered_at)}`, ticket)
