/** The text of the confirm screen: framed if there is room, otherwise disks and loss first. Pure. */
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { FlashPlan } from '#engine/flash/rules/flash.ts'
import { renderSource } from '#flasher/text/rules/flash-text.ts'
import { printable } from '#kit/foundation/printable.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import { clip } from '#kit/terminal/text/clip.ts'
import { layOutLosses } from '#flasher/text/loss-table.ts'
import { boxWidth, innerWidth } from '#kit/terminal/text/box.ts'
import { MARK_WIDTH, renderVoice } from '#kit/terminal/text/voice.ts'
import { wrapInFull } from '#kit/terminal/text/wrap.ts'
import type { WizardState } from '../flow/flow.ts'
import { headlineOf, listForms } from './confirm-disks.ts'
import type { Drawing } from './header.ts'
import type { TemplateOffer } from '#flasher/order/rules/wizard-start.ts'

const TEXTS = WIZARD_TEXTS.confirm

export interface KnownPlan {
  readonly plan: FlashPlan | null
  /** In the order of the chosen disks; null: nobody could look. */
  readonly found: readonly (Pick<SurveyedDisk, 'parts'> | null)[]
  /** Null: still being looked for. */
  readonly reasons: readonly string[] | null
  /** Null: the server has nothing for the first boot. */
  readonly template: TemplateOffer | null
  readonly isTemplateWritten: boolean
}

interface Style extends Pick<Drawing, 'ink' | 'unicode'> {
  readonly columns: number
}

interface ConfirmRoom {
  readonly columns: number
  /** Rows for all of it. */
  readonly room: number
}

/** Rows about losses. */
const MIN_ROWS = 3

/** With fewer rows a disk cannot be identified in full. */
const SMALL_ROOM = 5

export function renderConfirm(
  state: WizardState,
  known: KnownPlan,
  drawing: Drawing,
  { columns, room }: ConfirmRoom,
): readonly string[] {
  const style = { ...drawing, columns }
  if (state.disks.length > 1) return renderSeveral(state, known, style, room)
  const outcome = renderOutcome(state, known, style)
  const boxes = renderBoxes(state, known, style)
  const left = room - boxes.length
  if (left >= outcome.least) return [...boxes, ...outcome.lines(left)]
  const words = renderBriefly(state, style)
  const isWhole = words.length + outcome.least <= room
  // The disk counts more than the image; the smallest screen has the disk's path and the image.
  const part = room < SMALL_ROOM ? words.slice(0, Math.max(1, room - 1)) : words.slice(1)
  const facts = isWhole ? words : part
  return [...facts, ...outcome.lines(Math.max(1, room - facts.length))]
}

/** Names all disks, however little room is left for the image. */
function renderSeveral(
  state: WizardState,
  known: KnownPlan,
  style: Style,
  room: number,
): readonly string[] {
  const { disks } = state
  const headline = renderState(known, style) ?? headlineOf(disks.length, style)
  const above = [...renderTemplate(known, style), ...headline]
  const forms = listForms({ disks, found: known.found }, style)
  const imageLine = wrapInFull(state.image?.name ?? '', style.columns - 1)
  const images = [renderImageBox(state, known, style), imageLine]
  const all = forms.flatMap((form) => [...images, []].map((image) => [...image, ...above, ...form]))
  return all.find(({ length }) => length <= room) ?? [...headline, ...(forms.at(-1) ?? [])]
}

/** Null: the flash may go ahead. */
function renderState({ reasons }: KnownPlan, style: Style): readonly string[] | null {
  if (reasons?.length === 0) return null
  return renderVoice(style, ({ start, fail }) => {
    if (reasons === null) start(TEXTS.checking)
    else fail([TEXTS.rejected, ...reasons].join('\n'))
  })
}

function renderImageBox(
  { image }: WizardState,
  { plan }: KnownPlan,
  style: Style,
): readonly string[] {
  const found = plan === null ? null : { image: plan.image, options: plan }
  const source = image === null ? [] : renderSource(image, found).map(printable)
  return renderVoice(style, ({ box }) => box({ title: TEXTS.image, message: source.join('\n') }))
}

function renderBoxes(state: WizardState, known: KnownPlan, style: Style): readonly string[] {
  const { columns, unicode } = style
  const [disk] = state.disks
  const target = wrapInFull(`${disk?.path}: ${disk?.words}`, innerWidth(columns))
  const arrow = ' '.repeat(Math.floor(boxWidth(columns) / 2)) + (unicode ? '▼' : 'v')
  const below = renderVoice(style, (voice) => {
    voice.log(arrow)
    voice.box({ title: TEXTS.disk, message: target.join('\n') })
  })
  return [...renderImageBox(state, known, style), ...below]
}

function renderBriefly(
  { image, disks: [disk] }: WizardState,
  { ink, unicode, columns }: Style,
): readonly string[] {
  const width = columns - 1
  const [name, path] = [printable(image?.name ?? ''), printable(disk?.path ?? '')]
  const arrow = ` -> ${path}`
  return [
    clip(name, Math.max(8, width - arrow.length), { cut: 'middle', unicode }) + arrow,
    ...wrapInFull(disk?.words ?? '', width).map(ink.strong),
  ]
}

interface ConfirmPart {
  /** With fewer rows the frame is left out. */
  readonly least: number
  lines(rows: number): readonly string[]
}

function renderOutcome(
  { disks: [disk] }: WizardState,
  known: KnownPlan,
  style: Style,
): ConfirmPart {
  const { ink, columns } = style
  const stopped = renderState(known, style)
  if (stopped !== null) return { least: stopped.length, lines: () => stopped }
  const whole = printable(fill(TEXTS.allLostOn, { disk: disk?.path ?? '' }))
  const isShort = whole.length + MARK_WIDTH < columns
  const [headline = ''] = renderVoice(style, ({ warn }) => warn(isShort ? whole : TEXTS.allLost))
  const losses = layOutLosses(known.found[0]?.parts ?? [], columns - 3, style.unicode)
  const template = renderTemplate(known, style)
  return {
    least: template.length + Math.min(MIN_ROWS, 1 + losses.length),
    lines: (rows) => [
      ...template,
      headline,
      ...fit(losses, rows - template.length - 1).map((line) => ink.strong(`  ${line}`)),
    ],
  }
}

function renderTemplate(
  { template, isTemplateWritten }: KnownPlan,
  style: Style,
): readonly string[] {
  if (template === null) return []
  const text = isTemplateWritten ? TEXTS.withTemplate : TEXTS.withoutTemplate
  const said = template.kind === 'template' ? fill(text, { name: template.name }) : template.reason
  return renderVoice(style, ({ info }) => info(printable(said)))
}

function fit(lines: readonly string[], rows: number): readonly string[] {
  if (lines.length <= rows) return lines
  const shown = lines.slice(0, Math.max(0, rows - 1))
  const rest = lines.length - shown.length
  if (rows < 1) return []
  const { partitions } = WIZARD_TEXTS.disk
  return [...shown, fillCount(shown.length === 0 ? partitions : TEXTS.more, rest)]
}
