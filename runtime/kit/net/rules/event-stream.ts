/** Encodes server-sent events. */
/** Renders one event; `lines` are what `renderData` makes. */
export const renderEvent = (name: string, lines: string): string => `event: ${name}\n${lines}\n\n`

/** Each line of the data, with line ends of any kind, becomes one of the event. */
export const renderData = (data: string): string =>
  data
    .split(/\r\n|\n|\r/)
    .map((line) => `data: ${line}`)
    .join('\n')

/** Keeps proxies and browsers from taking silence for an end. */
export const KEEP_ALIVE = ':\n\n'

// How a client asks a server to answer when something has changed: `Prefer: wait` (RFC 7240).

/** What a server that waits says in each answer. */
export const CAN_WAIT = { name: 'accept-prefer', value: 'wait' } as const

/** Proxies between give up after a minute. */
export const MAX_WAIT_SECONDS = 50

/** The seconds of a `Prefer` header, as many as we wait at most; 0: it names none. */
export function parseWait(prefer: string | null): number {
  const [, seconds] = /(?:^|[,;])\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:[,;]|$)/i.exec(prefer ?? '') ?? []
  return Math.min(MAX_WAIT_SECONDS, Number(seconds ?? 0))
}
