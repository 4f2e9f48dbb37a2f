/** Wraps paragraphs into lines. */
import { displayWidth, printable } from '#kit/foundation/printable.ts'

/** At blanks; a word that is longer than `width` stays whole. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line)
      line = word
    } else {
      line = line === '' ? word : `${line} ${word}`
    }
  }
  return [...lines, line]
}

/** Names of one width on the left, wrapped texts on the right. */
export function wrapColumns(
  rows: readonly (readonly [name: string, text: string])[],
  width: number,
): readonly string[] {
  const left = Math.min(26, Math.max(0, ...rows.map(([name]) => name.length))) + 4
  return rows.flatMap(([name, text]) => {
    const [first = '', ...rest] = wrap(text, Math.max(24, width - left))
    const head = `  ${name}`
    const tail = rest.map((line) => `${' '.repeat(left)}${line}`)
    return head.length + 2 > left
      ? [head, `${' '.repeat(left)}${first}`, ...tail]
      : [`${head.padEnd(left)}${first}`, ...tail]
  })
}

/**
 * Nothing is lost: a word alone (a serial number) that is too wide for a line goes on in the next
 * one.
 */
export function wrapInFull(text: string, width: number): readonly string[] {
  const shown = printable(text)
  const lines = wrap(shown, width)
  return lines.every((line) => displayWidth(line) <= width) ? lines : breakUp(shown, width)
}

function breakUp(text: string, width: number): readonly string[] {
  const lines: string[] = []
  let last = ''
  for (const character of text) {
    if (displayWidth(last + character) > width) {
      lines.push(last)
      last = ''
    }
    last += character
  }
  return [...lines, last]
}
