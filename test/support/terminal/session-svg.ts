/** What a terminal showed, frame by frame, as an SVG that plays by itself. Pure. */

export interface ShownFrame {
  /** The time since the start. */
  readonly seconds: number
  /** Lines with their colours as escape sequences. */
  readonly lines: readonly string[]
}

export interface SvgOptions {
  readonly columns: number
  readonly rows: number
  /** How long the last frame stays before it begins again. */
  readonly pause: number
}

const CELL = { width: 8.4, height: 18 }
const MARGIN = 14

/** Each distinct line stands in the file once; frames refer to them. */
export function renderSvg(frames: readonly ShownFrame[], options: SvgOptions): string {
  const { columns, rows, pause } = options
  const width = Math.ceil(columns * CELL.width + 2 * MARGIN)
  const height = rows * CELL.height + 2 * MARGIN
  const total = (frames.at(-1)?.seconds ?? 0) + pause
  const ids = new Map<string, number>()
  const idOf = (line: string) => {
    const id = ids.get(line) ?? ids.size
    ids.set(line, id)
    return id
  }
  const groups = frames.map((frame, index) => {
    const until = frames[index + 1]?.seconds ?? total
    const uses = carryLooks(frame.lines).flatMap((line, row) => {
      const y = MARGIN + (row + 0.75) * CELL.height
      return line === '' ? [] : [`<use href="#l${idOf(line)}" y="${y}"/>`]
    })
    return `<g visibility="hidden">${uses.join('')}${animate(frame.seconds, until, total)}</g>`
  })
  const lines = [...ids].map(
    ([line, id]) => `<text id="l${id}" x="${MARGIN}">${renderLine(line)}</text>`,
  )
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="The wizard, from the first screen to the end of a flash">`,
    '<style>text{font:14px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre;fill:#d8dee6}.b{font-weight:700}.d{fill:#8591a0}.r{fill:#ff7b72}.g{fill:#56d364}.c{fill:#6cc7ff}</style>',
    `<rect width="${width}" height="${height}" rx="8" fill="#10151c"/>`,
    `<defs>${lines.join('')}</defs>`,
    ...groups,
    '</svg>',
  ].join('\n')}\n`
}

/** A style carries over to the next lines until another one is set: makes each line name its own. */
function carryLooks(lines: readonly string[]): readonly string[] {
  let look = ''
  return lines.map((line) => {
    const whole = line.trim() === '' ? '' : look + line
    // oxlint-disable-next-line no-control-regex
    for (const [code] of line.matchAll(/\u001b\[[\d;]*m/g))
      look = code === '\u001b[0m' ? '' : look + code
    return whole
  })
}

/** A frame is seen from its own time to the next one's. */
function animate(from: number, until: number, total: number): string {
  const share = (seconds: number) => (seconds / total).toFixed(4)
  const [values, times] =
    from === 0
      ? ['visible;hidden', `0;${share(until)}`]
      : ['hidden;visible;hidden', `0;${share(from)};${share(until)}`]
  return `<animate attributeName="visibility" values="${values}" keyTimes="${times}" dur="${total.toFixed(2)}s" calcMode="discrete" repeatCount="indefinite"/>`
}

const CLASS: Readonly<Record<string, string>> = { 1: 'b', 2: 'd', 31: 'r', 32: 'g', 36: 'c' }

/** Runs of one look as `tspan`s, each at its column, whatever the font's width. */
function renderLine(line: string): string {
  let column = 0
  let classes: readonly string[] = []
  const spans: string[] = []
  // oxlint-disable-next-line no-control-regex
  for (const piece of line.split(/(\u001b\[[\d;]*m)/)) {
    const codes = piece.startsWith('\u001b[') ? piece.slice(2, -1) : undefined
    if (codes !== undefined) classes = codes.split(';').reduce(nextClasses, classes)
    else if (piece.trim() !== '') spans.push(renderSpan(piece, column, classes))
    if (codes === undefined) column += piece.length
  }
  return spans.join('')
}

function nextClasses(now: readonly string[], code: string): readonly string[] {
  if (code === '0' || code === '') return []
  if (code === '39') return now.filter((name) => name === 'b' || name === 'd')
  if (code === '22') return now.filter((name) => name !== 'b' && name !== 'd')
  const added = CLASS[code]
  return added === undefined || now.includes(added) ? now : [...now, added]
}

function renderSpan(text: string, column: number, classes: readonly string[]): string {
  const x = (MARGIN + column * CELL.width).toFixed(1)
  const length = (text.length * CELL.width).toFixed(1)
  const look = classes.length === 0 ? '' : ` class="${classes.join(' ')}"`
  return `<tspan x="${x}" textLength="${length}"${look}>${escape(text)}</tspan>`
}

const escape = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
