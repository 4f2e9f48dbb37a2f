/** The response to a form: a redirect for browsers, a header for the script that posted it. */
import type { H3Event } from 'h3'
import { answer, seeOther, type Answer } from '../../kit/web/answers/answers.ts'
import { address } from '../../kit/web/ui/html.ts'
import type { Notice, Notices } from '../../kit/web/ui/form-notices.ts'

/** A 303. htmx would follow that unnoticed, so it gets a 200 with the address to load. */
export const goTo = (event: H3Event, location: string): Answer =>
  event.req.headers.has('hx-request')
    ? answer(200, { 'hx-redirect': location }, '')
    : seeOther(location)

export interface Refused {
  /** For scripts, and for people where `text` says nothing else. */
  readonly error: string
  readonly text?: string
  /** What was typed, for the fields of the form. */
  readonly typed?: Notice['typed']
  /** Why each of several fields was refused, by name. */
  readonly errors?: Notice['errors']
  /** More parameters of the address. */
  readonly query?: Readonly<Record<string, string | null>>
  /** The anchor without its `#`. */
  readonly anchor?: string
}

/** Characters of a message in an address. */
const MAX_LENGTH = 500

/**
 * The page shows the refusal and what was typed. `error` in the address, of 500 characters at most,
 * is for scripts; pages never show it.
 */
export function goBack(
  { notices }: { readonly notices: Notices },
  event: H3Event,
  path: string,
  { error, text = error, typed = {}, errors = {}, query, anchor }: Refused,
): Answer {
  const notice = notices.keep(event, text, { typed, errors })
  const page = address(path, { error: error.slice(0, MAX_LENGTH), notice, ...query })
  return goTo(event, anchor === undefined ? page : `${page}#${anchor}`)
}
