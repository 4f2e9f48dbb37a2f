/** Lays cells out in columns, as wide as their content needs and the terminal allows. */
import { displayWidth, printable, printableLines } from '#kit/foundation/printable.ts'
import { isRecord } from '#kit/foundation/shape.ts'

export interface Column {
  readonly title: string
  readonly side?: 'left' | 'right'
  /** It may shrink to so many columns; absent: it is shown whole. */
  readonly least?: number
  readonly cut?: 'middle' | 'end'
  /** Where there is no room for all, the highest goes first; absent: it stays. */
  readonly drops?: number
  /** It tells the rows apart: shortened last, when all others have shrunk or gone. */
  readonly tells?: boolean
  /** It is shown even where all of its cells are empty. */
  readonly keepsEmpty?: true
}

interface ColumnLayout {
  readonly head: string
  /** Dashes below the titles. */
  readonly rule: string
  /** One for each row, no blanks at the end. */
  readonly lines: readonly string[]
}

const GAP = 2

/** One cell for each column, printable. No line is wider than `width`. */
export function layOut(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  width: number,
  unicode: boolean,
): ColumnLayout {
  const all = measure(columns, rows)
  // Columns without any content are left out, unless all are.
  const filled = all.filter(({ isEmpty }) => !isEmpty)
  const kept = fit(filled.length === 0 ? all : filled, width)
  const shown = kept.map(({ column, index, width: room }) => {
    const style = { cut: column.cut ?? 'end', unicode } as const
    const texts = rows.map((cells) => cells[index] ?? '')
    const cut =
      column.tells === true
        ? clipApart(texts, room, style)
        : texts.map((text) => clip(text, room, style))
    const side = column.side === 'right' ? 'left' : 'right'
    return [clip(column.title, room, style), ...cut].map((text) => pad(text, room, side))
  })
  const layOutLine = (row: number) =>
    clip(shown.map((cells) => cells[row]).join(' '.repeat(GAP)), width, {
      cut: 'end',
      unicode,
    }).trimEnd()
  const rule = kept.map(({ width: room }) => '-'.repeat(room)).join(' '.repeat(GAP))
  return {
    head: layOutLine(0),
    rule: rule.slice(0, width),
    lines: rows.map((_cells, row) => layOutLine(row + 1)),
  }
}

/** Nothing of the rows is cut or left out at it. */
export const naturalWidth = (
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
): number => sum(measure(columns, rows).filter(({ isEmpty }) => !isEmpty))

const measure = (columns: readonly Column[], rows: readonly (readonly string[])[]) =>
  columns.map((column, index) => ({
    column,
    index,
    width: Math.max(
      displayWidth(column.title),
      ...rows.map((cells) => displayWidth(cells[index] ?? '')),
    ),
    isEmpty: column.keepsEmpty !== true && rows.every((cells) => (cells[index] ?? '') === ''),
  }))

interface Measured {
  readonly column: Column
  readonly index: number
  readonly width: number
}

const sum = (columns: readonly Measured[]) =>
  columns.reduce((total, { width }) => total + width, GAP * (columns.length - 1))

/**
 * Shrinks what may shrink, the widest first; then drops what may be dropped, and tries again; what
 * tells the rows apart comes last.
 */
function fit(columns: readonly Measured[], width: number): readonly Measured[] {
  const shrunk = shrink(columns, width, ({ tells }) => tells !== true)
  if (sum(shrunk) <= width) return shrunk
  const worst = findWorst(columns.filter(({ column }) => column.tells !== true))
  if (worst !== undefined) return fit(without(columns, worst), width)
  const narrow = shrink(shrunk, width, ({ tells }) => tells === true)
  if (sum(narrow) <= width) return narrow
  const last = findWorst(columns)
  if (last !== undefined) return fit(without(columns, last), width)
  return shrink(narrow, width, () => true, LEAST)
}

/** What is left of a column that may shrink, where nothing else helps. */
const LEAST = 6

function shrink(
  columns: readonly Measured[],
  width: number,
  mayShrink: (column: Column) => boolean,
  floor = Infinity,
): readonly Measured[] {
  let fitted = columns
  for (let excess = sum(fitted) - width; excess > 0; excess -= 1) {
    const widest = fitted
      .filter(({ column, width: now }) => {
        const least = column.least === undefined ? Infinity : Math.min(floor, column.least)
        return mayShrink(column) && now > least
      })
      .toSorted((one, two) => two.width - one.width)[0]
    if (widest === undefined) return fitted
    fitted = fitted.map((one) => (one === widest ? { ...one, width: one.width - 1 } : one))
  }
  return fitted
}

const findWorst = (columns: readonly Measured[]) =>
  columns
    .filter(({ column }) => column.drops !== undefined)
    .toSorted((one, two) => (two.column.drops ?? 0) - (one.column.drops ?? 0))[0]

const without = (columns: readonly Measured[], gone: Measured) =>
  columns.filter((one) => one !== gone)

interface Clip {
  /** What is given up: the middle where both ends tell (paths, names), else the end. */
  readonly cut: 'middle' | 'end'
  readonly unicode: boolean
}

/** The text is printable already; dots show what was cut out. */
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

/** Texts that would then look the same are cut elsewhere, so that they stay different. */
export function clipApart(texts: readonly string[], width: number, style: Clip): readonly string[] {
  const cut = texts.map((text) => clip(text, width, style))
  const groups = Map.groupBy(texts, (_text, at) => cut[at])
  return texts.map((text, at) => {
    const alike = new Set(groups.get(cut[at]))
    return alike.size > 1
      ? clipAround(text, commonLength([...alike]), width, style)
      : (cut[at] ?? '')
  })
}

/** What is shown before the place that matters. */
const LEAD = 4

/** The beginning, then the text from `at` on. */
function clipAround(text: string, at: number, width: number, { unicode }: Clip): string {
  if (displayWidth(text) <= width) return text
  const dots = unicode ? '…' : '..'
  const characters = [...text]
  const head = take(characters, Math.floor(width / 4))
  const room = Math.max(0, width - displayWidth(head) - dots.length)
  const rest = characters.slice(Math.max([...head].length, at - LEAD))
  const shown = `${head}${dots}${clip(rest.join(''), room, { cut: 'end', unicode })}`
  return take([...shown], width)
}

function commonLength(texts: readonly string[]): number {
  const [first = [], ...others] = texts.map((text) => [...text])
  const at = first.findIndex((character, index) =>
    others.some((other) => other[index] !== character),
  )
  return at === -1 ? first.length : at
}

/** Where there is no room for both, the left one stays. */
export function spread(left: string, right: string, width: number, unicode: boolean): string {
  const room = width - displayWidth(right) - 2
  if (right === '' || room < displayWidth(left)) return clip(left, width, { cut: 'end', unicode })
  return `${pad(left, room)}  ${right}`
}

/** `side`: where the blanks go. */
export function pad(text: string, width: number, side: 'left' | 'right' = 'right'): string {
  const blanks = ' '.repeat(Math.max(0, width - displayWidth(text)))
  return side === 'right' ? text + blanks : blanks + text
}

function take(characters: readonly string[], width: number): string {
  let used = 0
  const end = characters.findIndex((character) => (used += displayWidth(character)) > width)
  return (end === -1 ? characters : characters.slice(0, end)).join('')
}

const takeLast = (characters: readonly string[], width: number): string =>
  [...take(characters.toReversed(), width)].toReversed().join('')

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

/** Nothing is lost: a word (a serial number) too wide for a line goes on in the next one. */
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

/** The last line counts those for which there is no room. */
export function fitLines(lines: readonly string[], room: number, indent = ''): readonly string[] {
  if (lines.length <= room || room < 1) return lines.slice(0, Math.max(0, room))
  return [...lines.slice(0, room - 1), `${indent}and ${lines.length - room + 1} more`]
}

// Tables and records as text: aligned, trimmed, and safe whatever they hold.

/** A key of the rows, and what becomes of its column on a narrow terminal. */
interface TextColumn extends Omit<Column, 'title' | 'keepsEmpty'> {
  readonly key: string
  /** Absent: the key. */
  readonly title?: string
}

/** Where a table goes; `width` null: no terminal, so nothing is cut. */
interface TableRoom {
  readonly width: number | null
  readonly unicode: boolean
}

const NO_TERMINAL: TableRoom = { width: null, unicode: true }

/**
 * A header in capitals, a line of dashes, then the rows, with two blanks between columns and none
 * at the end of a line. No rows at all read `(no entries)`. The text ends with a line end.
 */
export function renderTable(
  rows: readonly object[],
  columns: readonly (string | TextColumn)[],
  { width, unicode }: TableRoom = NO_TERMINAL,
): string {
  if (rows.length === 0) return '(no entries)\n'
  const shown = columns.map((column) => (typeof column === 'string' ? { key: column } : column))
  const cells = rows.map((row) => {
    const fields = new Map(Object.entries(row))
    return shown.map(({ key }) => printable(renderValue(fields.get(key))))
  })
  const titled = shown.map(({ key, title = key, ...column }, index) => ({
    ...column,
    // What says nothing is the first to go.
    ...(column.drops !== undefined && cells.every((row) => row[index] === '') && { drops: 100 }),
    title: title.toUpperCase(),
    keepsEmpty: true as const,
  }))
  const { head, rule, lines } = layOut(titled, cells, width ?? Number.POSITIVE_INFINITY, unicode)
  return [head, rule, ...lines].map((line) => `${line}\n`).join('')
}

/** Nested records and texts of several lines are indented blocks. */
export const renderRecord = (record: object): string =>
  Object.entries(record)
    .flatMap(([key, value]) => renderField(key, value, ''))
    .map((line) => `${line}\n`)
    .join('')

/** Deeper records are shown as JSON: an outline of them is unreadable. */
const MAX_DEPTH = 8

function renderField(key: string, value: unknown, indent: string): readonly string[] {
  const name = `${indent}${printable(key)}:`
  const deeper = `${indent}  `
  if (isRecord(value) && indent.length < MAX_DEPTH * 2) {
    const fields = Object.entries(value).flatMap(([k, v]) => renderField(k, v, deeper))
    return fields.length === 0 ? [`${name} (none)`] : [name, ...fields]
  }
  const lines = typeof value === 'string' ? printableLines(value) : [printable(renderValue(value))]
  if (lines.length > 1) return [name, ...lines.map((line) => `${deeper}${line}`.trimEnd())]
  return [`${name} ${lines[0] ?? ''}`.trimEnd()]
}

/** Booleans as yes and no, unknown values as an empty cell. */
function renderValue(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}
