/** The text of the confirm screen: framed if there is room, otherwise disk and loss first. Pure. */
import type { SurveyedDisk } from '../../../../core/disk/disk.ts'
import { decideNotes, type FlashPlan } from '../../../../core/flash/flash.ts'
import { renderLosses } from '../../../../core/flash/disk-offer.ts'
import { renderChecks, renderImage } from '../../../../core/flash/flash-text.ts'
import { renderSafeUrl } from '../../../../core/net/image-location.ts'
import { displayWidth, printable } from '../../../../core/foundation/printable.ts'
import { fill, fillCount } from '../../../../core/texts/text.ts'
import { WIZARD_TEXTS } from '../../../../core/texts/wizard/texts.ts'
import { clip } from '../../../../terminal/text/clip.ts'
import { layOut } from '../../../../terminal/text/columns.ts'
import type { Size } from '../../../../terminal/prompt/painter.ts'
import { boxWidth, innerWidth } from '../../../../terminal/text/box.ts'
import { MARK_WIDTH, renderVoice } from '../../../../terminal/text/voice.ts'
import { wrap } from '../../../../terminal/text/wrap.ts'
import type { State } from '../flow/flow.ts'
import type { Drawing } from './screen-frame.ts'
import type { ImageChoice, TemplateOffer } from '../flow/start.ts'

const TEXTS = WIZARD_TEXTS.confirm

/** What is known by now. */
export interface Known {
  readonly plan: FlashPlan | null
  readonly disk: Pick<SurveyedDisk, 'parts'> | null
  /** Null: still being looked for. */
  readonly reasons: readonly string[] | null
  /** What the server has for the first boot; null: nothing. */
  readonly template: TemplateOffer | null
  readonly isTemplateWritten: boolean
}

interface ConfirmRoom extends Pick<Size, 'columns'> {
  /** Rows for all of it. */
  readonly room: number
}

/** Of what would be lost. */
const MIN_ROWS = 3

export function renderConfirm(
  state: State,
  known: Known,
  drawing: Drawing,
  { columns, room }: ConfirmRoom,
): readonly string[] {
  const outcome = renderOutcome(state, known, drawing, columns)
  const boxes = renderBoxes(state, known, drawing, columns)
  const left = room - boxes.length
  if (left >= outcome.least) return [...boxes, ...outcome.lines(left)]
  const words = renderBriefly(state, drawing, columns)
  // Which disk it is counts more than which image.
  const facts = words.length + outcome.least <= room ? words : words.slice(1)
  return [...facts, ...outcome.lines(Math.max(1, room - facts.length))]
}

function renderBoxes(
  { image, disk }: State,
  { plan }: Known,
  { ink, unicode }: Drawing,
  columns: number,
): readonly string[] {
  const source = image === null ? [] : describe(image, plan).map(printable)
  const target = inFull(`${disk?.path}: ${disk?.words}`, innerWidth(columns))
  const arrow = ' '.repeat(Math.floor(boxWidth(columns) / 2)) + (unicode ? '▼' : 'v')
  return renderVoice({ ink, unicode, columns }, (voice) => {
    voice.box({ title: TEXTS.image, message: source.join('\n') })
    voice.log(arrow)
    voice.box({ title: TEXTS.disk, message: target.join('\n') })
  })
}

function describe({ name, location }: ImageChoice, plan: FlashPlan | null): readonly string[] {
  // An address may hold a password.
  const address = location.includes('://') ? renderSafeUrl(location) : null
  const from = address === null ? [] : [fill(TEXTS.from, { address })]
  if (plan === null) return [name, ...from]
  const { image } = plan
  return [renderImage({ ...image, name }), ...from, renderChecks(plan), ...decideNotes(image)]
}

/** The image in one line, then everything that identifies the disk. */
function renderBriefly(
  { image, disk }: State,
  { ink, unicode }: Drawing,
  columns: number,
): readonly string[] {
  const width = columns - 1
  const [name, path] = [printable(image?.name ?? ''), printable(disk?.path ?? '')]
  const arrow = ` -> ${path}`
  return [
    clip(name, Math.max(8, width - arrow.length), { cut: 'middle', unicode }) + arrow,
    ...inFull(disk?.words ?? '', width).map(ink.strong),
  ]
}

/** At blanks, unless a word alone (a serial number) is too wide for a line. */
function inFull(text: string, width: number): readonly string[] {
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

/** What comes of it. */
interface Outcome {
  /** With fewer rows frames are given up. */
  readonly least: number
  lines(rows: number): readonly string[]
}

function renderOutcome({ disk }: State, known: Known, drawing: Drawing, columns: number): Outcome {
  const { disk: found, reasons } = known
  const { ink, unicode } = drawing
  const style = { ink, unicode, columns }
  if (reasons === null) {
    return { least: 1, lines: () => renderVoice(style, ({ start }) => start(TEXTS.checking)) }
  }
  if (reasons.length > 0) {
    const rejected = renderVoice(style, ({ fail }) => fail([TEXTS.rejected, ...reasons].join('\n')))
    return { least: rejected.length, lines: () => rejected }
  }
  const whole = printable(fill(TEXTS.allLostOn, { disk: disk?.path ?? '' }))
  const isShort = whole.length + MARK_WIDTH < columns
  const [headline = ''] = renderVoice(style, ({ warn }) => warn(isShort ? whole : TEXTS.allLost))
  const losses = layLosses(found, drawing, columns)
  const template = renderTemplate(known)
  const said = template === null ? [] : renderVoice(style, ({ info }) => info(template))
  return {
    least: said.length + Math.min(MIN_ROWS, 1 + losses.length),
    lines: (rows) => [
      ...said,
      headline,
      ...fit(losses, rows - said.length - 1).map((line) => ink.strong(`  ${line}`)),
    ],
  }
}

function renderTemplate({ template, isTemplateWritten }: Known): string | null {
  if (template === null) return null
  if (template.kind === 'unavailable') return printable(template.reason)
  const text = isTemplateWritten ? TEXTS.withTemplate : TEXTS.withoutTemplate
  return fill(text, { name: printable(template.name) })
}

function layLosses(found: Known['disk'], { unicode }: Drawing, columns: number): readonly string[] {
  const parts = found?.parts ?? []
  if (parts.length === 0) return [TEXTS.nothingFound]
  const columnsOfLosses = [
    { title: '' },
    { title: '', side: 'right' as const },
    { title: '' },
    { title: '', least: 8 },
  ]
  return layOut(columnsOfLosses, renderLosses(parts), columns - 3, unicode).lines
}

/** The last row says how many there is no room for. */
function fit(lines: readonly string[], rows: number): readonly string[] {
  if (lines.length <= rows) return lines
  const shown = lines.slice(0, Math.max(0, rows - 1))
  const rest = lines.length - shown.length
  if (rows < 1) return []
  const { partitions } = WIZARD_TEXTS.disk
  return [...shown, fillCount(shown.length === 0 ? partitions : TEXTS.more, rest)]
}
