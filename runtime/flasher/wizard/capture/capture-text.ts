/** The text of a capture's confirm screen, and what is said of the files that identify a machine. Pure. */
import {
  decideIdentity,
  type CapturedPart,
  type IdentityFiles,
} from '#engine/capture/rules/capture.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderDiskSize, renderSize } from '#kit/foundation/size.ts'
import { fitLines, layOut, type Column } from '#kit/terminal/text/columns.ts'
import { renderVoice, type Voice } from '#kit/terminal/text/voice.ts'
import type { CheckedCapture, ChosenCapture } from './capture-run.ts'
import type { Drawing } from '../screens/header.ts'

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
  if (reasons === null) return say(({ start }) => start('looking at what is on the disk ...'))
  if (checked === null) {
    return say(({ fail }) => fail(['Rejected:', ...reasons].join('\n')))
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
    return spaced.toSpliced(facts.length + 2, 0, ...fitLines(rows, left, INDENT))
  }
  // What the image holds of the machine counts more than how it is read.
  const promise = say(({ info }) => info(promiseOf(known)))
  const forms = [
    [...facts, ...warnings],
    [...promise, ...warnings],
  ]
  return forms.find(({ length }) => length <= room) ?? warnings
}

/** Rows of partitions. */
const MIN_ROWS = 2

const promiseOf = ({ disk }: CaptureKnown) =>
  `${disk.path} is opened read-only: nothing on it changes.`

function describe(known: CaptureKnown, { opened }: Pick<CheckedCapture, 'opened'>, voice: Voice) {
  const used = renderSize(opened.ranges.totalBytes)
  voice.info(promiseOf(known))
  voice.info(
    `${used} of ${renderDiskSize(opened.device.sizeBytes)} will be read. Compression makes the image smaller.`,
  )
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
    voice.info(
      isFound
        ? `Cleared in the image, not on the disk: ${nameFiles(identity)}.`
        : 'Nothing was found that identifies this machine.',
    )
  } else if (identity.kind === 'found')
    voice.warn(
      `The identity of this machine would be in the image: ${nameFiles(identity)}. g clears it there.`,
    )
  else if (identity.kind === 'possible')
    voice.warn(
      'The identity of this machine may be in the image: SSH host keys, machine-id, random seed, leases.',
    )
}

const KINDS = [
  [/\/machine-id$/, 'machine-id'],
  [/\/ssh_host_/, 'SSH host keys'],
  [/\/random-seed$/, 'random seed'],
  [/./, 'network leases and keys'],
] as const

/** `machine-id, SSH host keys` instead of each path. */
export const nameFiles = ({ paths }: Extract<IdentityFiles, { kind: 'found' }>): string =>
  [...new Set(paths.flatMap((path) => KINDS.find(([names]) => names.test(path))?.[1] ?? []))].join(
    ', ',
  )

const COLUMNS: readonly Column[] = [
  { title: 'Partition' },
  { title: 'Size', side: 'right' },
  { title: 'Type', drops: 1 },
  { title: 'Read', least: 12 },
]

function layParts(
  parts: readonly CapturedPart[],
  { unicode, width }: { readonly unicode: boolean; readonly width: number },
): readonly string[] {
  const { head, lines } = layOut(COLUMNS, parts.map(renderPart), width - INDENT.length, unicode)
  return [head, ...lines].map((line) => INDENT + line)
}

const INDENT = '  '

const renderPart = ({ number, type, bytes, usedBytes, whole }: CapturedPart): readonly string[] =>
  [
    number === 0 ? 'no table' : String(number),
    renderSize(bytes),
    type ?? 'unknown',
    whole === null ? `used blocks: ${renderSize(usedBytes)}` : `all of it: ${whole}`,
  ].map(printable)
