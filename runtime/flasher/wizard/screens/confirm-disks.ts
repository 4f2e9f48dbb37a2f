/** The several disks of the confirm screen: with what lies on them if there is room, else shorter, but all. Pure. */
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import { summariseParts } from '#flasher/text/rules/disk-offer.ts'
import { printable } from '#kit/foundation/printable.ts'
import { fillCount } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import type { Ink } from '#kit/terminal/text/ink.ts'
import { renderVoice, type VoiceStyle } from '#kit/terminal/text/voice.ts'
import { wrapInFull } from '#kit/terminal/text/wrap.ts'
import type { DiskChoice } from '#flasher/order/rules/flash-choice.ts'

const TEXTS = WIZARD_TEXTS.confirm

interface Lost {
  readonly disks: readonly DiskChoice[]
  /** On each disk; null: nobody could look. */
  readonly found: readonly (Pick<SurveyedDisk, 'parts'> | null)[]
}

/** From the longest to the shortest. */
export function listForms(
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

export const headlineOf = (count: number, style: VoiceStyle): readonly string[] =>
  renderVoice(style, ({ warn }) => warn(fillCount(TEXTS.allLostOnAll, count)))

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
