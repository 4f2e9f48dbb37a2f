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
