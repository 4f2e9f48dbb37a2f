/** Renders the parts of iPXE scripts, quoted so that no value can become a command. */
import { Fault } from '#kit/foundation/fault.ts'

/** iPXE splits at blanks, expands `${…}`, and knows `&&`, `||`, `;` and `#…`. */
const WORD = /^[\w.~:/?=&%@,+[\]-]+$/
const OPERATOR = /^&+$/

/** Throws a Fault for unsafe text: values were made or checked before. */
export function word(text: string): string {
  if (WORD.test(text) && !OPERATOR.test(text)) return text
  throw new Fault('misuse', `${JSON.stringify(text)} cannot stand in an iPXE script`)
}

const MAX_PROSE = 120

/** For an `echo`; whatever iPXE could act on becomes a `?`. */
export const prose = (text: string): string => plain(text, /[^\w .,:/()@%+=~'-]|(?<=^| )-/g)

/** A whole line: iPXE reads nothing behind `#`, so `;` separates no commands. */
export const comment = (text: string): string =>
  `# ${plain(text, /[^\w .,:;/()@%+=~'-]|(?<=^| )-/g)}`

const plain = (text: string, unsafe: RegExp) =>
  text.slice(0, MAX_PROSE).replaceAll(unsafe, '?').trim()

export const segment = (name: string): string =>
  encodeURIComponent(name.toWellFormed()).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )

/** LF only, one at the end: older iPXE takes a CR as part of the last word. */
export const renderScript = (lines: readonly string[]): string =>
  `${['#!ipxe', ...lines].join('\n')}\n`

/** After 1, 2, 4, 8 and 16 seconds, then `giveUp`. `${pause}` must be 1 before the first try. */
export const backOff = (what: string, again: string, giveUp: string): readonly string[] => [
  `iseq \${pause} 32 && goto ${giveUp} ||`,
  `echo flasher: ${what}, next try in \${pause} s`,
  'sleep ${pause} ||',
  'inc pause ${pause}',
  `goto ${again}`,
]

export const START_PAUSE = 'set pause:int32 1'

/** A boot loader's wait for an answer if there is another server, in milliseconds. */
export const ANSWER_MS = 3000

/**
 * The wait after a silent round: a server holds a request for up to 12 s while another takes over,
 * and then tells the machine to wait.
 */
export const HELD_MS = 15_000

export const patience = (others: readonly string[], waitMs = ANSWER_MS): string =>
  others.length === 0 ? '' : `--timeout ${waitMs} `
