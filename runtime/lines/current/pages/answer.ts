/** Where a form leads: a new page for browsers, a word to the script that asked for it. */
import { HTTPResponse, type H3Event } from 'h3'
import { seeOther } from '../../../web/answers.ts'

/** 303, or for htmx (which would follow that unseen) the address to load. */
export const goTo = (event: H3Event, location: string): HTTPResponse =>
  event.req.headers.has('hx-request')
    ? new HTTPResponse('', { status: 200, headers: { 'hx-redirect': location } })
    : seeOther(location)
