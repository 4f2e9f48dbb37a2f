/** Encodes server-sent events. */

/** One event; `lines` as `renderData` makes them. */
export const renderEvent = (name: string, lines: string): string => `event: ${name}\n${lines}\n\n`

/** Line ends of any kind in `data` become lines of it. */
export const renderData = (data: string): string =>
  data
    .split(/\r\n|\n|\r/)
    .map((line) => `data: ${line}`)
    .join('\n')

/** Keeps proxies and browsers from taking silence for an end. */
export const KEEP_ALIVE = ':\n\n'
