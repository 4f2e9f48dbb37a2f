/** The text of a capture's confirm screen, and what is said of the files that identify a machine. Pure. */
import {
  decideIdentity,
  type CapturedPart,
  type IdentityFiles,
} from '#engine/capture/rules/capture.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDiskSize, renderSize } from '#kit/foundation/size.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import { layOut, type Column } from '#kit/terminal/text/columns.ts'
import { renderVoice, type Voice } from '#kit/terminal/text/voice.ts'
import type { CheckedCapture, ChosenCapture } from './capture-run.ts'
import type { Drawing } from '../screens/header.ts'

const { confirm: TEXTS, files: FILES } = WIZARD_TEXTS.capture

export interface CaptureKnown extends ChosenCapture {
  readonly checked: Pick<CheckedCapture, 'opened' | 'room'> | null
  /** Null: still being looked at. */
  readonly reasons: readonly string[] | null
}

interface TextRoom {
  readonly columns: number
  /** Rows for all of it. */
  readonly room: number
}

export const canClear = ({ checked, generalize }: Pick<CaptureKnown, 'checked' | 'generalize'>) =>
  generalize || (checked !== null && decideIdentity(checked.opened.parts).kind !== 'absent')

export function renderCapture(
  known: CaptureKnown,
  { ink, unicode }: Drawing,
  { columns, room }: TextRoom,
): readonly string[] {
  const { checked, reasons } = known
  const say = (speak: (voice: Voice) => void) => renderVoice({ ink, unicode, columns }, speak)
  if (reasons === null) return say(({ start }) => start(TEXTS.looking))
  if (checked === null) {
    return say(({ fail }) => fail([WIZARD_TEXTS.confirm.rejected, ...reasons].join('\n')))
  }
  const facts = say((voice) => describe(known, checked, voice))
  const warnings = say((voice) => warn(known, checked, voice))
  const [head = '', ...rows] = layParts(checked.opened.parts, { unicode, width: columns - 1 })
  const spaced = [
    ...facts,
    '',
    ink.faint(head),
    ...(warnings.length === 0 ? [] : ['']),
    ...warnings,
  ]
  const left = room - spaced.length
  if (left >= Math.min(MIN_ROWS, rows.length)) {
    return spaced.toSpliced(facts.length + 2, 0, ...fitRows(rows, left))
  }
  // What the image holds of the machine counts more than how it is read.
  const promise = say(({ info }) => info(fill(TEXTS.readOnly, { disk: known.disk.path })))
  const forms = [
    [...facts, ...warnings],
    [...promise, ...warnings],
  ]
  return forms.find(({ length }) => length <= room) ?? warnings
}

/** Rows of partitions. */
const MIN_ROWS = 2

function describe(
  { disk }: CaptureKnown,
  { opened }: Pick<CheckedCapture, 'opened'>,
  voice: Voice,
) {
  const used = renderSize(opened.ranges.totalBytes)
  voice.info(fill(TEXTS.readOnly, { disk: disk.path }))
  voice.info(fill(TEXTS.amount, { used, size: renderDiskSize(opened.device.sizeBytes) }))
}

function warn(
  { generalize }: CaptureKnown,
  { opened, room }: Pick<CheckedCapture, 'opened' | 'room'>,
  voice: Voice,
) {
  if (room !== null) voice.warn(room)
  const identity = decideIdentity(opened.parts)
  if (generalize) {
    const isFound = identity.kind === 'found'
    voice.info(isFound ? fill(TEXTS.cleared, nameFiles(identity)) : TEXTS.nothingToClear)
  } else if (identity.kind === 'found') voice.warn(fill(TEXTS.found, nameFiles(identity)))
  else if (identity.kind === 'possible') voice.warn(TEXTS.possible)
}

const KINDS = [
  [/\/machine-id$/, FILES.machineId],
  [/\/ssh_host_/, FILES.sshKeys],
  [/\/random-seed$/, FILES.seed],
  [/./, FILES.leases],
] as const

/** `machine-id, SSH host keys` instead of each path. */
export const nameFiles = ({ paths }: Extract<IdentityFiles, { kind: 'found' }>) => ({
  files: [
    ...new Set(paths.flatMap((path) => KINDS.find(([names]) => names.test(path))?.[1] ?? [])),
  ].join(', '),
})

const COLUMNS: readonly Column[] = [
  { title: TEXTS.columns.part },
  { title: TEXTS.columns.size, side: 'right' },
  { title: TEXTS.columns.type, drops: 1 },
  { title: TEXTS.columns.read, least: 12 },
]

function layParts(
  parts: readonly CapturedPart[],
  { unicode, width }: { readonly unicode: boolean; readonly width: number },
): readonly string[] {
  const { head, lines } = layOut(COLUMNS, parts.map(renderPart), width - INDENT.length, unicode)
  return [head, ...lines].map((line) => INDENT + line)
}

function fitRows(rows: readonly string[], most: number): readonly string[] {
  if (rows.length <= most) return rows
  const shown = rows.slice(0, most - 1)
  return [...shown, INDENT + fillCount(TEXTS.more, rows.length - shown.length)]
}

const INDENT = '  '

const renderPart = ({ number, type, bytes, usedBytes, whole }: CapturedPart): readonly string[] =>
  [
    number === 0 ? TEXTS.wholeDisk : String(number),
    renderSize(bytes),
    type ?? TEXTS.unknown,
    whole === null
      ? fill(TEXTS.used, { size: renderSize(usedBytes) })
      : fill(TEXTS.whole, { reason: whole }),
  ].map(printable)
