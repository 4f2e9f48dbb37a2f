/** What is known of a request while it is answered: who asks, from where, since when. */
import type { H3Event } from 'h3'
import type { Caller } from './caller.ts'
import type { Peer } from './peer.ts'

/** Fields of the event itself: each request reads them several times. */
declare module 'h3' {
  interface H3EventContext {
    peer?: Peer
    caller?: Caller
    /** The answer is one person's: no cache may keep it. */
    isPrivate?: boolean
    /** Milliseconds, of the clock that never jumps. */
    startedAt?: number
    /** Records how long the route took. */
    recordTime?: RecordTime
  }
}

export type RecordTime = (status: number, seconds: number) => void

const ANONYMOUS: Caller = { kind: 'anonymous' }

/** Known for every route that is not open, and anonymous for those. */
export const callerOf = (event: H3Event): Caller => event.context.caller ?? ANONYMOUS

/** Known to every route: the dispatcher finds it first. */
export function peerOf({ context: { peer } }: H3Event): Peer {
  if (peer === undefined) throw new TypeError('the request came past the dispatcher')
  return peer
}
