/** What became of one attempt to send a message, in words. */
import { plainWords } from '../../../kit/foundation/printable.ts'

/** Null words: it was taken. */
export interface DeliveryOutcome {
  readonly failure: string | null
  /** How long the receiver asked to be left alone, milliseconds; null: it did not. */
  readonly wanted: number | null
  /** Of a mail that some have and others have not; absent: all have it, or nobody. */
  readonly partly?: RefusedAddresses
}

interface RefusedAddresses {
  /** The addresses to which the next attempt goes. */
  readonly later: readonly string[]
  /** What was said of each address that is refused for good. */
  readonly never: Readonly<Record<string, string>>
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

interface AddressRefusal {
  readonly address: string
  /** What the mail server has said. */
  readonly words: string
}

/** What it means that a mail server refused some addresses of a mail that others have. */
export function judgeRefusals(refusals: readonly AddressRefusal[]): DeliveryOutcome {
  // Only a reply that begins with 5 is for good (RFC 5321, 4.2.1).
  const isForGood = ({ words }: AddressRefusal) => words.startsWith('5')
  const said = refusals.map(({ address, words }) => [address, quoteWords(words)] as const)
  return {
    ...failed(describeRefused(Object.fromEntries(said))),
    partly: {
      later: refusals.filter((one) => !isForGood(one)).map(({ address }) => address),
      never: Object.fromEntries(said.filter(([, words]) => words.startsWith('5'))),
    },
  }
}

/** Names the addresses that did not get a mail, with what was said of each. */
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
