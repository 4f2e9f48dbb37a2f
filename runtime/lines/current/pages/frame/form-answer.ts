/** Where a form leads: a new page for browsers, a word to the script that asked for it. */
import { HTTPResponse, type H3Event } from 'h3'
import { seeOther } from '../../../../web/http/answers.ts'
import { address } from '../../../../web/ui/html.ts'
import type { Site } from '../../../../web/fleet/site.ts'
import type { Notice } from '../../../../web/http/form-notices.ts'
import type { Machine } from '../../rules/machine.ts'

/** 303, or for htmx (which would follow that unseen) the address to load. */
export const goTo = (event: H3Event, location: string): HTTPResponse =>
  event.req.headers.has('hx-request')
    ? new HTTPResponse('', { status: 200, headers: { 'hx-redirect': location } })
    : seeOther(location)

export interface Refused {
  readonly error: string
  /** What the form comes back with. */
  readonly typed?: Notice['typed']
  /** Of the address, besides. */
  readonly query?: Readonly<Record<string, string | null>>
  /** Without its `#`. */
  readonly anchor?: string
}

/** Of the words that an address carries. */
const LONGEST = 500

/** Back to a page, which says why not. `error` in the address is for scripts; pages never show it. */
export function goBack(
  { notices }: Pick<Site<Machine>, 'notices'>,
  event: H3Event,
  path: string,
  { error, typed, query, anchor }: Refused,
): HTTPResponse {
  const notice = notices.keep(event, error, typed)
  const page = address(path, { error: error.slice(0, LONGEST), notice, ...query })
  return goTo(event, anchor === undefined ? page : `${page}#${anchor}`)
}
