/** What became of one attempt to send a message, in words. */
import { plainWords } from '../../../kit/foundation/printable.ts'

/** Null words: it was taken. */
export interface DeliveryOutcome {
  readonly failure: string | null
  /** How long the receiver asked to be left alone, milliseconds; null: it did not. */
  readonly wanted: number | null
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
