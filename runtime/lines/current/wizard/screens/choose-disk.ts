/** The disk screen: one disk or several, and why some cannot be chosen, also by the image's size once it is known. */
import { offerDisk, type DiskOffer } from '../../../../core/flash/disk-offer.ts'
import { renderError } from '../../../../core/foundation/fault.ts'
import { WIZARD_TEXTS } from '../../../../core/texts/wizard/texts.ts'
import type { CheckedImage } from '../../../../services/flash/image-checks.ts'
import type { Size } from '../../../../terminal/prompt/painter.ts'
import type { WizardContext } from './wizard-context.ts'
import { chooseDisk, DISK_COLUMNS, renderDiskRow } from '../flow/disk-offers.ts'
import type { State, Step } from '../flow/flow.ts'
import { introduceDisks, readDiskList, type DiskList } from './disk-list.ts'
import { createQuestion } from './screen-frame.ts'
import { createSubject } from './pending-question.ts'

const TEXTS = WIZARD_TEXTS.disk
const { keys: KEYS } = WIZARD_TEXTS

interface Known extends DiskList {
  image: CheckedImage | null
}

export async function chooseTarget(state: State, context: WizardContext): Promise<Step> {
  const known: Known = { disks: null, image: null, troubles: [] }
  const leaving = new AbortController()
  const signal = AbortSignal.any([context.signal, leaving.signal])
  const subject = createSubject(
    () => build(state, known, context),
    (changed) =>
      Promise.all([
        readDiskList(known, context, changed),
        readImage(state, known, context, signal).then(changed),
      ]),
  )
  const asked = await context.ask(subject)
  const offers = listOffers(known)
  leaving.abort()
  if (asked.kind === 'rows') {
    const chosen = asked.indexes.flatMap((index) => offers[index] ?? [])
    return chosen.length === asked.indexes.length
      ? { step: 'disks', disks: chosen.map(({ disk }) => chooseDisk(disk)) }
      : { step: 'refresh' }
  }
  if (asked.kind === 'key' && asked.key === 'b') return { step: 'back' }
  return { step: asked.kind === 'key' && asked.key === 'r' ? 'refresh' : 'quit' }
}

async function readImage(
  { image }: State,
  known: Known,
  context: WizardContext,
  signal: AbortSignal,
) {
  if (image === null) return
  try {
    const flasher = await context.loadFlasher()
    known.image = await flasher.inspect({ ...image, image: image.location }, signal)
    if (known.image.imageProblem !== null) known.troubles.push(known.image.imageProblem)
  } catch (thrown) {
    if (!signal.aborted) known.troubles.push(renderError(thrown))
  }
}

const listOffers = ({ disks, image }: Known): readonly DiskOffer[] =>
  (disks ?? []).map((disk) => offerDisk(disk, image?.image ?? null))

function build(state: State, known: Known, context: WizardContext) {
  const view = {
    menu: {
      prompt: TEXTS.prompt,
      columns: DISK_COLUMNS,
      rows: listOffers(known).map(renderDiskRow),
      keys: [
        { key: 'b', words: ['back'], does: KEYS.image },
        { key: 'r', words: ['refresh'], does: KEYS.refresh },
        { key: 'q', words: ['quit', 'exit'], does: KEYS.quit },
      ],
      enter: 'r',
      takesSeveral: true as const,
    },
    intro: (size: Size) => introduceDisks(known, TEXTS.none, context, size),
  }
  return createQuestion(state, view, context.drawing)
}
