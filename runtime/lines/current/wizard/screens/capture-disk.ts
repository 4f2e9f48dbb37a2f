/** The disk screen of a capture: one disk that nothing uses, and why the others cannot be chosen. */
import { offerSource } from '../../../../core/capture/source-offer.ts'
import { WIZARD_TEXTS } from '../../../../core/texts/wizard/texts.ts'
import type { Size } from '../../../../terminal/prompt/painter.ts'
import { suggestName } from '../flow/capture-place.ts'
import { chooseDisk, DISK_COLUMNS, renderDiskRow } from '../flow/disk-offers.ts'
import type { State, Step } from '../flow/flow.ts'
import { introduceDisks, readDiskList, type DiskList } from './disk-list.ts'
import { createSubject } from './pending-question.ts'
import { createQuestion, inFull } from './screen-frame.ts'
import type { WizardContext } from './wizard-context.ts'

const { disk: TEXTS, keys: KEYS, capture: CAPTURE } = WIZARD_TEXTS

export async function chooseSource(state: State, context: WizardContext): Promise<Step> {
  const list: DiskList = { disks: null, troubles: [] }
  const subject = createSubject(
    () => build(state, list, context),
    (changed) => readDiskList(list, context, changed),
  )
  const asked = await context.ask(subject)
  if (asked.kind === 'row') {
    const disk = list.disks?.[asked.index]
    if (disk === undefined) return { step: 'refresh' }
    // Without the list a name that is taken is refused later.
    const images = await context.listLocal().catch(() => [])
    const taken = images.map(({ name }) => name)
    return { step: 'capture-disk', disk: chooseDisk(disk), name: suggestName(disk.device, taken) }
  }
  if (asked.kind === 'key' && asked.key === 'b') return { step: 'back' }
  return { step: asked.kind === 'key' && asked.key === 'r' ? 'refresh' : 'quit' }
}

function build(state: State, list: DiskList, context: WizardContext) {
  const view = {
    menu: {
      prompt: TEXTS.prompt,
      columns: DISK_COLUMNS,
      rows: (list.disks ?? []).map(offerSource).map(renderDiskRow),
      keys: [
        { key: 'b', words: ['back'], does: KEYS.back },
        { key: 'r', words: ['refresh'], does: KEYS.refresh },
        { key: 'q', words: ['quit', 'exit'], does: KEYS.quit },
      ],
      enter: 'r',
    },
    intro: (size: Size) => introduce(list, context, size),
  }
  return createQuestion(state, view, context.drawing)
}

function introduce(list: DiskList, context: WizardContext, size: Size): readonly string[] {
  return [
    ...inFull([CAPTURE.disk.question], size),
    '',
    ...introduceDisks(list, CAPTURE.disk.none, context, size),
  ]
}
