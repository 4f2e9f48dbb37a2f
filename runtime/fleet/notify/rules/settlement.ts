/** Decides what an attempt makes of its message: over, given up, or open for all or some addresses. */
import { describeRefused, type DeliveryOutcome } from './outcome.ts'

type Refused = Readonly<Record<string, string>>

interface AttemptedMessage {
  readonly state: 'waiting' | 'partly' | 'delivered' | 'given-up'
  readonly refused?: Refused | undefined
}

/** `next` says when the next attempt is due, milliseconds since the epoch; null: there is none. */
export function settleAttempt(
  message: AttemptedMessage,
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
