/** What a rule may know of one request. */
import type { H3Event } from 'h3'
import { readBearer } from '../http/guard.ts'
import { LIMITS } from '../http/limits.ts'
import type { Contact } from './transition.ts'
import type { Peer } from '../http/caller.ts'

const NONE: Contact['query'] = {}

export const readContact = (event: H3Event, peer: Peer, now: Date): Contact => ({
  now: now.toISOString(),
  baseUrl: peer.baseUrl,
  ip: peer.ip,
  bearer: readBearer(event),
  query: event.url.search === '' ? NONE : readQuery(event.url.searchParams),
})

/** The first few fields, each cut to a length that no honest one has. */
function readQuery(query: URLSearchParams): Contact['query'] {
  const fields = [...query].slice(0, LIMITS.queryFields)
  return Object.fromEntries(fields.map(([name, value]) => [name, value.slice(0, LIMITS.queryText)]))
}
