/** The confirm screen: what goes where, what is lost, and whether it can be done at all. */
import type { SurveyedDisk } from '../../../core/disk.ts'
import { renderError } from '../../../core/fault.ts'
import { decideNotes, type FlashPlan } from '../../../core/flash.ts'
import { renderChecks, renderImage } from '../../../core/flash-words.ts'
import { renderSafeUrl } from '../../../core/location.ts'
import { printable } from '../../../core/printable.ts'
import { layColumns } from '../../../terminal/columns.ts'
import type { MenuKey } from '../../../terminal/menu.ts'
import type { Size } from '../../../terminal/painter.ts'
import { wrap } from '../../../terminal/wrap.ts'
import { renderArrow, renderBox } from './boxes.ts'
import type { Desk } from './desk.ts'
import { renderLosses } from './disk-offers.ts'
import { orderOf, type State, type Step } from './flow.ts'
import { createQuestion, type Drawing } from './screen-frame.ts'
import type { ImageChoice } from './start.ts'
import { createSubject } from './subject.ts'

/** What is known by now. */
interface Known {
  plan: FlashPlan | null
  disk: SurveyedDisk | null
  /** Null: still being looked for. */
  reasons: readonly string[] | null
}

export async function confirm(state: State, desk: Desk): Promise<Step> {
  const known: Known = { plan: null, disk: null, reasons: null }
  const leaving = new AbortController()
  const signal = AbortSignal.any([desk.signal, leaving.signal])
  const subject = createSubject(
    () => createQuestion(state, viewOf(state, known, desk), desk.drawing),
    (changed) => check(state, known, desk, signal).then(changed),
  )
  const asked = await desk.ask(subject)
  leaving.abort()
  if (asked.kind !== 'key') return { step: 'quit' }
  if (asked.key === 'q') return { step: 'quit' }
  return { step: asked.key === 'y' ? 'flash' : 'back' }
}

async function check(state: State, known: Known, desk: Desk, signal: AbortSignal): Promise<void> {
  const order = orderOf(state)
  if (order === null) return
  try {
    const { lookAtImage, planOrder, parts } = await desk.loadFlash()
    const checked = await lookAtImage(parts, order.image, signal)
    const planned = await planOrder(parts, order, checked, signal)
    const disks = await desk.surveyDisks()
    const disk = disks.find(({ path }) => path === order.disk)
    known.disk = disk === undefined ? null : await parts.fillContents(disk)
    known.plan = planned.ok ? planned.value : null
    const rights = desk.isRoot ? [] : ['writing to a disk needs root: run it again as root']
    known.reasons = [...(planned.ok ? [] : planned.refusal), ...rights]
  } catch (thrown) {
    known.reasons = [renderError(thrown)]
  }
}

const BACK: MenuKey = { key: 'b', words: ['back', 'n', 'no'], does: 'back' }
const QUIT: MenuKey = { key: 'q', words: ['quit', 'exit'], does: 'quit' }
/** One key, but one that nothing else on the way here asks for. */
const YES: MenuKey = { key: 'y', words: ['yes'], does: 'ERASE AND FLASH', isInstant: true }

function viewOf(state: State, known: Known, { drawing }: Desk) {
  const isFree = known.reasons?.length === 0
  return {
    menu: {
      prompt: isFree ? 'Flash' : 'Back',
      columns: [],
      rows: [],
      keys: [...(isFree ? [YES] : []), BACK, QUIT],
      enter: 'b',
    },
    intro: (size: Size) => introduce(state, known, drawing, size),
  }
}

function introduce(
  { image, disk }: State,
  { plan, disk: found, reasons }: Known,
  drawing: Drawing,
  size: Size,
): readonly string[] {
  const { ink, unicode } = drawing
  const look = { columns: size.columns, unicode }
  const source = image === null ? [] : describe(image, plan)
  const target = [`${disk?.path}: ${disk?.words}`]
  const boxes = [
    ...renderBox('Image', source.map(printable), look),
    renderArrow(look),
    ...renderBox('Disk', target.map(printable), look),
  ]
  if (reasons === null) return [...boxes, ink.faint('checking ...')]
  if (reasons.length > 0) {
    const lines = reasons.flatMap((reason) => wrap(printable(reason), size.columns - 3))
    return [...boxes, ...['Rejected:', ...lines.map((line) => `  ${line}`)].map(ink.danger)]
  }
  return [...boxes, ...losses(disk?.path ?? '', found, drawing, size)]
}

function describe({ name, location }: ImageChoice, plan: FlashPlan | null): readonly string[] {
  // An address may hold a password.
  const from = location.includes('://') ? [`from ${renderSafeUrl(location)}`] : []
  if (plan === null) return [name, ...from]
  const { image } = plan
  return [renderImage({ ...image, name }), ...from, renderChecks(plan), ...decideNotes(image)]
}

/** As many as an 80×24 terminal has room for. */
const MOST_PARTS = 5

function losses(
  path: string,
  found: SurveyedDisk | null,
  { ink, unicode }: Drawing,
  size: Size,
): readonly string[] {
  const parts = found?.parts ?? []
  const headline = ink.danger(`Everything on ${path} will be lost:`)
  if (parts.length === 0) return [headline, ink.strong('  no partitions or file systems are known')]
  const most = Math.max(MOST_PARTS, size.rows - 20)
  const columns = [
    { title: '' },
    { title: '', side: 'right' as const },
    { title: '' },
    { title: '', least: 8 },
  ]
  const laid = layColumns(columns, renderLosses(parts), size.columns - 4, unicode)
  const rest = parts.length - most
  return [
    headline,
    ...laid.lines.slice(0, most).map((line) => ink.strong(`  ${line}`)),
    ...(rest > 0 ? [ink.strong(`  and ${rest} more`)] : []),
  ]
}
