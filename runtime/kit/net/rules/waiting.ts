/** How a client asks a server to answer when something has changed: `Prefer: wait` (RFC 7240). */

/** What a server that waits says in each answer. */
export const CAN_WAIT = { name: 'accept-prefer', value: 'wait' } as const

/** Proxies between give up after a minute. */
export const MAX_WAIT_SECONDS = 50

/**
 * Returns the seconds that a `Prefer` header allows, as many as we wait at most; 0: it names none.
 */
export function parseWait(prefer: string | null): number {
  const [, seconds] = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:[,;]|$)/i.exec(prefer ?? '') ?? []
  return Math.min(MAX_WAIT_SECONDS, Number(seconds ?? 0))
}
