/** The disk screen: one disk or several, and why some cannot be chosen, also by the image's size once it is known. */
import { offerDisk, type DiskOffer } from '#flasher/text/rules/disk-offer.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import type { CheckedImage } from '#engine/flash/image-checks.ts'
import type { WizardContext } from './wizard-context.ts'
import { chooseDisk } from '#flasher/order/rules/flash-choice.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import { createDiskMenu, introduceDisks, readDiskList, type DiskList } from './disk-list.ts'
import type { ScreenView } from './screen-layout.ts'
import { askMeanwhile, stepOf } from './pending-question.ts'

interface KnownDisks extends DiskList {
  image: CheckedImage | null
}

export async function chooseTarget(
  state: WizardState,
  context: WizardContext,
): Promise<WizardStep> {
  const known: KnownDisks = { disks: null, image: null, troubles: [] }
  const view = (): ScreenView => ({
    menu: { ...createDiskMenu(listOffers(known), WIZARD_TEXTS.keys.image), takesSeveral: true },
    intro: (size) => introduceDisks(known, WIZARD_TEXTS.disk.none, context, size),
  })
  const asked = await askMeanwhile(state, view, context, (changed, signal) =>
    Promise.all([
      readDiskList(known, context, changed),
      readImage(state, known, context, signal).then(changed),
    ]),
  )
  if (asked.kind !== 'rows') return stepOf(asked)
  const offers = listOffers(known)
  const chosen = asked.indexes.flatMap((index) => offers[index] ?? [])
  return chosen.length === asked.indexes.length
    ? { step: 'disks', disks: chosen.map(({ disk }) => chooseDisk(disk)) }
    : { step: 'refresh' }
}

async function readImage(
  { image }: WizardState,
  known: KnownDisks,
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

const listOffers = ({ disks, image }: KnownDisks): readonly DiskOffer[] =>
  (disks ?? []).map((disk) => offerDisk(disk, image?.image ?? null))
