/** The response to a form: a redirect for browsers, a header for the script that posted it. */
import type { H3Event } from 'h3'
import { answer, seeOther, type Answer } from '#kit/web/answers/answers.ts'
import { address } from '#kit/web/ui/html.ts'
import type { Notice, Notices } from '#kit/web/ui/form-notices.ts'

/** A 303. htmx follows those unnoticed, so it gets a 200 with the address to load. */
export const goTo = (event: H3Event, location: string): Answer =>
  event.req.headers.has('hx-request')
    ? answer(200, { 'hx-redirect': location }, '')
    : seeOther(location)

export interface Refused {
  /** For scripts, and for people without `text`. */
  readonly error: string
  readonly text?: string
  readonly typed?: Notice['typed']
  readonly errors?: Notice['errors']
  readonly query?: Readonly<Record<string, string | null>>
  /** Without its `#`. */
  readonly anchor?: string
}

const MAX_LENGTH = 500

/** With refusal and typed values. `error` in the address (up to 500 characters): for scripts. */
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
