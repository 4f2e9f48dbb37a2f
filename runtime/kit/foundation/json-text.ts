/** Renders JSON as the documents of both lines spell it (ASCII, a blank after each comma). */

/** Renders a value in ASCII, indented by two blanks, without a line end. */
export const renderJson = (value: unknown): string => ascii(JSON.stringify(value, null, 2))

/** ASCII, without a line end: `{"event": "started", "total_bytes": 300000}`. */
export const renderJsonLine = (value: unknown): string =>
  // Strings hold no raw line ends in JSON, so every one here is layout.
  ascii(JSON.stringify(value, null, 1).replaceAll(/,\n */g, ', ').replaceAll(/\n */g, ''))

const ascii = (json: string) =>
  json.replaceAll(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
