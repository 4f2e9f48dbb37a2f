/** Clips texts to a number of terminal columns. */
import { displayWidth } from '../../core/foundation/printable.ts'

interface Clip {
  /** What is given up: the middle where both ends tell (paths, names), else the end. */
  readonly cut: 'middle' | 'end'
  readonly unicode: boolean
}

/** At most `width` columns; what was cut out is shown by dots. `text`: printable already. */
export function clip(given: string, width: number, { cut, unicode }: Clip): string {
  const text = unicode ? given : given.replaceAll('…', '...')
  if (displayWidth(text) <= width) return text
  const dots = unicode ? '…' : '..'
  const room = width - dots.length
  if (room <= 0) return take([...text], width)
  if (cut === 'end') return take([...text], room) + dots
  const tail = Math.floor(room / 2)
  return take([...text], room - tail) + dots + takeLast([...text], tail)
}

/** Filled up with blanks to `width` columns. */
export function pad(text: string, width: number, side: 'left' | 'right' = 'right'): string {
  const blanks = ' '.repeat(Math.max(0, width - displayWidth(text)))
  return side === 'right' ? text + blanks : blanks + text
}

function take(characters: readonly string[], width: number): string {
  let taken = ''
  let used = 0
  for (const character of characters) {
    used += displayWidth(character)
    if (used > width) break
    taken += character
  }
  return taken
}

function takeLast(characters: readonly string[], width: number): string {
  let taken = ''
  let used = 0
  for (const character of characters.toReversed()) {
    used += displayWidth(character)
    if (used > width) break
    taken = character + taken
  }
  return taken
}
