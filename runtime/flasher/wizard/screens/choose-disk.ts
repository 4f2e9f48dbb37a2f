/** The disk screen: one disk or several, and why some cannot be chosen, also by the image's size once it is known. */
import { offerDisk, type DiskOffer, renderDiskCells } from '#flasher/text/rules/disk-offer.ts'
import { renderError } from '#kit/foundation/fault.ts'
import type { CheckedImage } from '#engine/image/image-inspection.ts'
import {
  type WizardContext,
  askMeanwhile,
  stepOf,
  backKey,
  QUIT_KEY,
  REFRESH_KEY,
  type ScreenView,
  inFull,
} from './screen.ts'
import { chooseDisk } from '#flasher/order/rules/flash-choice.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { Menu, MenuRow } from '#kit/terminal/prompt/menu.ts'
import type { Size } from '#kit/terminal/prompt/painter.ts'
import type { Column } from '#kit/terminal/text/columns.ts'

interface KnownDisks extends DiskList {
  image: CheckedImage | null
}

export async function chooseTarget(
  state: WizardState,
  context: WizardContext,
): Promise<WizardStep> {
  const known: KnownDisks = { disks: null, image: null, troubles: [] }
  const view = (): ScreenView => ({
    menu: { ...createDiskMenu(listOffers(known), 'image'), takesSeveral: true },
    intro: (size) => introduceDisks(known, 'No flash-eligible disks detected.', context, size),
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

// The disks of a screen that offers them: listed at once, what they contain a moment later.

export interface DiskList {
  /** Null while they are looked for. */
  disks: readonly SurveyedDisk[] | null
  /** What could not be read; shown above the list. */
  readonly troubles: string[]
}

/** Calls `changed` twice: with the list, and with the disks' contents. */
export async function readDiskList(
  list: DiskList,
  { surveyDisks, fillContents }: WizardContext,
  changed: () => void,
): Promise<void> {
  try {
    list.disks = await surveyDisks()
  } catch (thrown) {
    list.disks = []
    list.troubles.push(`the disks cannot be listed: ${renderError(thrown)}`)
  }
  changed()
  list.disks = await Promise.all(list.disks.map(fillContents))
  changed()
}

export const createDiskMenu = (offers: readonly DiskOffer[], back: string): Menu => ({
  prompt: 'Disk',
  columns: DISK_COLUMNS,
  rows: offers.map(renderDiskRow),
  keys: [backKey(back), REFRESH_KEY, QUIT_KEY],
  enter: null,
})

export function introduceDisks(
  { disks, troubles }: DiskList,
  none: string,
  { drawing: { ink } }: WizardContext,
  size: Size,
): readonly string[] {
  const lines = [
    ...inFull(troubles, size).map(ink.danger),
    ...(disks === null ? [ink.faint('looking at the disks ...')] : []),
    ...(disks?.length === 0
      ? inFull(
          [
            none,
            'Plug one in, then press [r]. "lsblk" in another shell shows what the kernel sees.',
          ],
          size,
        )
      : []),
  ]
  return lines.length === 0 ? [] : [...lines, '']
}

const DISK_COLUMNS: readonly Column[] = [
  { title: 'Path' },
  { title: 'Size', side: 'right' },
  { title: 'Model', least: 14, cut: 'middle', drops: 2 },
  { title: 'Serial', least: 10, cut: 'middle', drops: 1, tells: true },
  { title: 'Bus', drops: 3 },
  { title: 'On it now', least: 22 },
]

/** A row with a refusal cannot be chosen. */
export const renderDiskRow = (offer: DiskOffer): MenuRow => ({
  cells: renderDiskCells(offer),
  refusal: offer.refusal,
})
