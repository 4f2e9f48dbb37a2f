/** The disk screen of a capture: one disk that nothing uses, and why the others cannot be chosen. */
import { offerSource } from '#flasher/text/rules/source-offer.ts'
import { suggestName } from './destination.ts'
import { chooseDisk } from '#flasher/order/rules/flash-choice.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import {
  createDiskMenu,
  introduceDisks,
  readDiskList,
  type DiskList,
} from '../screens/choose-disk.ts'
import { askMeanwhile, stepOf, type WizardContext } from '../screens/pending-question.ts'
import { inFull, type ScreenView } from '../screens/screen-layout.ts'

/** Also suggests a name that no local image has. */
export async function chooseSource(
  state: WizardState,
  context: WizardContext,
): Promise<WizardStep> {
  const list: DiskList = { disks: null, troubles: [] }
  const view = (): ScreenView => ({
    menu: createDiskMenu((list.disks ?? []).map(offerSource), 'back'),
    intro: (size) => [
      ...inFull(['Which disk? It is only read.'], size),
      '',
      ...introduceDisks(list, 'No disks detected.', context, size),
    ],
  })
  const asked = await askMeanwhile(state, view, context, (changed) =>
    readDiskList(list, context, changed),
  )
  if (asked.kind !== 'row') return stepOf(asked)
  const disk = list.disks?.[asked.index]
  if (disk === undefined) return { step: 'refresh' }
  // Without the list a taken name is refused later.
  const images = await context.listLocal().catch(() => [])
  const taken = images.map(({ name }) => name)
  return { step: 'capture-disk', disk: chooseDisk(disk), name: suggestName(disk.device, taken) }
}
