/** The disk screen of a capture: one disk that nothing uses, and why the others cannot be chosen. */
import type { SurveyedDisk } from '../../../../core/disk/disk.ts'
import { offerSource } from '../../../../core/capture/source-offer.ts'
import { renderError } from '../../../../core/foundation/fault.ts'
import { fill } from '../../../../core/texts/text.ts'
import { WIZARD_TEXTS } from '../../../../core/texts/wizard/texts.ts'
import type { Size } from '../../../../terminal/prompt/painter.ts'
import { suggestName } from '../flow/capture-place.ts'
import { chooseDisk, DISK_COLUMNS, renderDiskRow } from '../flow/disk-offers.ts'
import type { State, Step } from '../flow/flow.ts'
import { createSubject } from './pending-question.ts'
import { createQuestion, inFull } from './screen-frame.ts'
import type { WizardContext } from './wizard-context.ts'

const { disk: TEXTS, keys: KEYS, capture: CAPTURE } = WIZARD_TEXTS

/** What is known by now. */
interface Known {
  disks: readonly SurveyedDisk[] | null
  /** Why the disks cannot be looked at. */
  trouble: string | null
}

export async function chooseSource(state: State, context: WizardContext): Promise<Step> {
  const known: Known = { disks: null, trouble: null }
  const subject = createSubject(
    () => build(state, known, context),
    (changed) =>
      readDisks(known, context)
        .then(changed)
        .then(() => fillDisks(known, context))
        .then(changed),
  )
  const asked = await context.ask(subject)
  if (asked.kind === 'row') {
    const disk = known.disks?.[asked.index]
    if (disk === undefined) return { step: 'refresh' }
    // Without the list a name that is taken is refused later.
    const images = await context.listLocal().catch(() => [])
    const taken = images.map(({ name }) => name)
    return { step: 'capture-disk', disk: chooseDisk(disk), name: suggestName(disk.device, taken) }
  }
  if (asked.kind === 'key' && asked.key === 'b') return { step: 'back' }
  return { step: asked.kind === 'key' && asked.key === 'r' ? 'refresh' : 'quit' }
}

async function readDisks(known: Known, context: WizardContext): Promise<void> {
  try {
    known.disks = await context.surveyDisks()
  } catch (thrown) {
    known.disks = []
    known.trouble = fill(TEXTS.cannotList, { reason: renderError(thrown) })
  }
}

async function fillDisks(known: Known, context: WizardContext): Promise<void> {
  known.disks = await Promise.all((known.disks ?? []).map(context.fillContents))
}

function build(state: State, known: Known, context: WizardContext) {
  const view = {
    menu: {
      prompt: TEXTS.prompt,
      columns: DISK_COLUMNS,
      rows: (known.disks ?? []).map(offerSource).map(renderDiskRow),
      keys: [
        { key: 'b', words: ['back'], does: KEYS.back },
        { key: 'r', words: ['refresh'], does: KEYS.refresh },
        { key: 'q', words: ['quit', 'exit'], does: KEYS.quit },
      ],
      enter: 'r',
    },
    intro: (size: Size) => introduce(known, context, size),
  }
  return createQuestion(state, view, context.drawing)
}

function introduce(
  { disks, trouble }: Known,
  { drawing: { ink } }: WizardContext,
  size: Size,
): readonly string[] {
  const lines = [
    ...(trouble === null ? [] : inFull([trouble], size).map(ink.danger)),
    ...(disks === null ? [ink.faint(TEXTS.looking)] : []),
    ...(disks?.length === 0 ? inFull([CAPTURE.disk.none, TEXTS.plugIn], size) : []),
  ]
  return [
    ...inFull([CAPTURE.disk.question], size),
    '',
    ...lines,
    ...(lines.length === 0 ? [] : ['']),
  ]
}
