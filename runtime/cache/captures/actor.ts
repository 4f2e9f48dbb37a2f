/** Who changes something, for the log of the cache. */
import type { H3Event } from 'h3'
import { callerOf, peerOf } from '#kit/web/answers/caller.ts'
import { renderBy } from '#kit/web/access/guard.ts'

export function renderActor(event: H3Event): string {
  const { actor, ip } = renderBy(callerOf(event), peerOf(event).ip)
  return `${actor}, ${ip ?? 'no address'}`
}
