/** The confirm screen: image and disks, what is lost, and whether the flash is possible. */
import { renderError } from '#kit/foundation/fault.ts'
import type { MenuKey } from '#kit/terminal/prompt/menu.ts'
import type { PlannedDisk } from '#engine/flash/flash-planner.ts'
import {
  type WizardContext,
  askMeanwhile,
  askStill,
  NO_KEY,
  QUIT_KEY,
  type ScreenView,
  type Drawing,
} from './screen.ts'
import { choiceOf, type WizardState, type WizardStep } from '../flow/flow.ts'
import {
  orderFor,
  type FlashChoices,
  type TemplateOffer,
  type DiskChoice,
} from '#flasher/order/rules/flash-choice.ts'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { FlashPlan } from '#engine/flash/rules/flash-plan.ts'
import { renderSource } from '#flasher/text/rules/flash-text.ts'
import { printable } from '#kit/foundation/printable.ts'
import { clip, fitLines, wrapInFull } from '#kit/terminal/text/columns.ts'
import { layOutLosses } from '#flasher/text/loss-table.ts'
import {
  boxWidth,
  innerWidth,
  MARK_WIDTH,
  renderVoice,
  type VoiceStyle,
} from '#kit/terminal/text/voice.ts'
import { countParts, summariseParts } from '#flasher/text/rules/disk-offer.ts'
import type { Ink } from '#kit/terminal/text/terminal-style.ts'

type Learned = { -readonly [Name in keyof KnownPlan]: KnownPlan[Name] }

/** Only what passed all checks can be confirmed. */
export async function confirm(state: WizardState, context: WizardContext): Promise<WizardStep> {
  const known: Learned = {
    plan: null,
    found: [],
    reasons: null,
    template: null,
    isTemplateWritten: true,
  }
  const view = () => viewOf(state, known, context)
  let asked = await askMeanwhile(state, view, context, (changed, signal) =>
    check(state, known, context, signal).then(changed),
  )
  // The key appears once all is checked.
  while (asked.kind === 'key' && asked.key === 't') {
    known.isTemplateWritten = !known.isTemplateWritten
    asked = await askStill(state, view(), context)
  }
  if (asked.kind !== 'key' || asked.key === 'q') return { step: 'quit' }
  return asked.key === 'y' ? { step: 'flash', template: chosenOf(known) } : { step: 'back' }
}

const chosenOf = ({ template, isTemplateWritten }: KnownPlan) =>
  template?.kind === 'template' && isTemplateWritten ? template : null

async function check(
  state: WizardState,
  known: Learned,
  context: WizardContext,
  signal: AbortSignal,
): Promise<void> {
  const choices = choiceOf(state)
  if (choices === null) return
  try {
    const hooks = await context.loadHooks()
    const offering = hooks.findTemplate()
    const plans = await planAll(choices, context, signal)
    const disks = await context.surveyDisks()
    known.found = await Promise.all(
      choices.map(async (choice) => {
        const disk = disks.find(({ path }) => path === choice.disk)
        return disk === undefined ? null : await context.fillContents(disk)
      }),
    )
    known.plan = plans.flatMap((plan) => (plan.ok ? [plan.value] : []))[0] ?? null
    known.template = decideTemplate(await offering, choices.length)
    const rights = context.isRoot ? [] : ['writing to a disk requires root; start flasher as root']
    const refusals = plans.flatMap((plan) => (plan.ok ? [] : plan.refusal))
    known.reasons = [...new Set(refusals), ...rights]
  } catch (thrown) {
    known.reasons = [renderError(thrown)]
  }
}

/** A template is for one machine, and several disks are for several. */
const decideTemplate = (offer: TemplateOffer | null, disks: number): TemplateOffer | null =>
  offer?.kind === 'template' && disks > 1
    ? {
        kind: 'unavailable',
        reason: 'No first-boot template, because several disks are selected.',
      }
    : offer

async function planAll(
  choices: FlashChoices,
  context: WizardContext,
  signal: AbortSignal,
): Promise<readonly PlannedDisk['plan'][]> {
  const flasher = await context.loadFlasher()
  await using planned = await flasher.plan(orderFor(choices), signal)
  return planned.disks.map(({ plan }) => plan)
}

/** The one key that erases a disk: nothing else on the way asks for it. */
const YES: MenuKey = { key: 'y', words: ['yes'], does: 'ERASE AND FLASH', isInstant: true }

const keyOfTemplate = (isWritten: boolean): MenuKey => ({
  key: 't',
  words: ['template'],
  does: isWritten ? 'without template' : 'with template',
  isInstant: true,
})

function viewOf(state: WizardState, known: KnownPlan, { drawing }: WizardContext): ScreenView {
  const isFree = known.reasons?.length === 0
  const choice = known.template?.kind === 'template' ? [keyOfTemplate(known.isTemplateWritten)] : []
  return {
    menu: {
      prompt: isFree ? 'Flash' : 'Back',
      columns: [],
      rows: [],
      keys: [...(isFree ? [YES, ...choice] : []), NO_KEY, QUIT_KEY],
      enter: 'b',
    },
    intro: (size, room) => renderConfirm(state, known, drawing, { ...size, room }),
  }
}

// The text of the confirm screen: framed if there is room, otherwise disks and loss first. Pure.

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

/** Rows about losses. */
const MIN_ROWS = 3

/** With fewer rows a disk cannot be identified in full. */
const SMALL_ROOM = 5

export function renderConfirm(
  state: WizardState,
  known: KnownPlan,
  drawing: Drawing,
  {
    columns,
    room,
  }: {
    readonly columns: number
    /** Rows for all of it. */
    readonly room: number
  },
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
    if (reasons === null) start('checking ...')
    else fail(['Rejected:', ...reasons].join('\n'))
  })
}

function renderImageBox(
  { image }: WizardState,
  { plan }: KnownPlan,
  style: Style,
): readonly string[] {
  const found = plan === null ? null : { image: plan.image, options: plan }
  const source = image === null ? [] : renderSource(image, found).map(printable)
  return renderVoice(style, ({ box }) => box({ title: 'Image', message: source.join('\n') }))
}

function renderBoxes(state: WizardState, known: KnownPlan, style: Style): readonly string[] {
  const { columns, unicode } = style
  const [disk] = state.disks
  const target = wrapInFull(`${disk?.path}: ${disk?.words}`, innerWidth(columns))
  const arrow = ' '.repeat(Math.floor(boxWidth(columns) / 2)) + (unicode ? '▼' : 'v')
  const below = renderVoice(style, (voice) => {
    voice.log(arrow)
    voice.box({ title: 'Disk', message: target.join('\n') })
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
  const whole = printable(`Everything on ${disk?.path ?? ''} will be lost:`)
  const isShort = whole.length + MARK_WIDTH < columns
  const [headline = ''] = renderVoice(style, ({ warn }) =>
    warn(isShort ? whole : 'All of it will be lost:'),
  )
  const losses = layOutLosses(known.found[0]?.parts ?? [], columns - 3, style.unicode)
  const template = renderTemplate(known, style)
  return {
    least: template.length + Math.min(MIN_ROWS, 1 + losses.length),
    lines: (rows) => [
      ...template,
      headline,
      ...fitLosses(losses, rows - template.length - 1).map((line) => ink.strong(`  ${line}`)),
    ],
  }
}

function renderTemplate(
  { template, isTemplateWritten }: KnownPlan,
  style: Style,
): readonly string[] {
  if (template === null) return []
  const written = isTemplateWritten ? 'is written with the image' : 'is not written'
  const said =
    template.kind === 'template'
      ? `The first-boot template ${template.name} ${written}.`
      : template.reason
  return renderVoice(style, ({ info }) => info(printable(said)))
}

const fitLosses = (losses: readonly string[], rows: number): readonly string[] =>
  rows === 1 && losses.length > 1 ? [countParts(losses.length)] : fitLines(losses, rows)

// The several disks of the confirm screen: with what lies on them if there is room, else shorter, but all. Pure.

interface Lost {
  readonly disks: readonly DiskChoice[]
  /** On each disk; null: nobody could look. */
  readonly found: readonly (Pick<SurveyedDisk, 'parts'> | null)[]
}

/** From the longest to the shortest. */
function listForms(
  { disks, found }: Lost,
  { ink, columns }: Pick<VoiceStyle, 'ink'> & { readonly columns: number },
): readonly (readonly string[])[] {
  const width = columns - 1 - INDENT.length
  const lines = disks.map(({ path, words }) =>
    wrapInFull(`${path}: ${words}`, width).map((line) => ink.strong(INDENT + line)),
  )
  const full = lines.flatMap((named, index) => [...named, renderParts(found[index], ink)])
  return [full, lines.flat(), renderShort(disks, ink, width)]
}

const headlineOf = (count: number, style: VoiceStyle): readonly string[] =>
  renderVoice(style, ({ warn }) =>
    warn(`Everything on ${count === 1 ? '1 disk' : `these ${count} disks`} will be lost:`),
  )

const INDENT = '  '

const renderParts = (found: Lost['found'][number] | undefined, ink: Ink): string =>
  ink.faint(printable(`${INDENT}${INDENT}${summariseParts(found?.parts ?? [])}`))

/** Serial numbers tell equal disks apart. */
const renderShort = (disks: readonly DiskChoice[], ink: Ink, width: number): readonly string[] =>
  wrapInFull(
    disks
      .map(({ path, identity: { serial } }) => (serial === null ? path : `${path} (${serial})`))
      .join(', '),
    width,
  ).map((line) => ink.strong(INDENT + line))
