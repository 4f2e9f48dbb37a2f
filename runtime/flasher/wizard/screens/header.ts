/** The top of every screen: the program, this machine, the step, and what is chosen so far. Pure. */
import { displayWidth, printable } from '#kit/foundation/printable.ts'
import { clip, pad, spread, wrap } from '#kit/terminal/text/columns.ts'
import type { Size } from '#kit/terminal/prompt/painter.ts'
import type { Ink, TerminalStyle } from '#kit/terminal/text/terminal-style.ts'
import { renderDestination } from '#engine/capture/rules/capture.ts'
import { SCREENS, stepsOf, type WizardState } from '../flow/flow.ts'
import type { DiskChoice, MachineIdentity } from '#flasher/order/rules/flash-choice.ts'

const STEPS = {
  catalog: 'Catalog',
  image: 'Image',
  disk: 'Disk',
  flash: 'Flash',
  capture: 'Capture',
  reboot: 'Reboot',
} as const

const LABELS = {
  imageRoot: 'image_root:',
  catalog: 'catalog:',
  image: 'image:',
  disk: 'disk:',
} as const

interface WizardSetting {
  readonly version: string
  readonly identity: MachineIdentity
  readonly imageRoot: string
  readonly reboots: boolean
}

export interface Drawing extends Pick<TerminalStyle, 'unicode' | 'tty'> {
  readonly setting: WizardSetting
  readonly ink: Ink
  /** Below what is asked; absent: no server is known. */
  readonly code?: MachineCode
}

/** The way to the machine's page on a phone, in the rows that are left; empty: no room. */
export type MachineCode = (left: Size) => readonly string[]

/** With fewer rows there is only the step. */
const MIN_HEADER_ROWS = 16

/** The log has the whole notice. */
const NOTICE_LINES = 3

export function renderHeader(
  state: WizardState,
  { setting, ink, unicode }: Drawing,
  { columns, rows }: Size,
): readonly string[] {
  const { version, identity, imageRoot, reboots } = setting
  const width = columns - 1
  const fit = (text: string) => clip(printable(text), width, { cut: 'middle', unicode })
  const { mac, server, address } = identity
  const right = [mac, address].filter((part) => part !== null).join('  ')
  const left = `flasher ${version}  ${server ?? 'standalone'}`
  const all = stepsOf(state.screen)
  const steps = reboots ? all : all.slice(0, -1)
  const step = steps.indexOf(SCREENS[state.screen].step)
  const titles = steps.map((name) => STEPS[name])
  const title = titles.at(step) ?? ''
  const at = step === -1 ? steps.length : step + 1
  const count = ` ${at} of ${steps.length}`
  const trail = titles.map((name) => (name === title ? `[${name}]` : name)).join(' > ')
  const where = [
    ink.strong(spread(fit(left), printable(right), width, unicode)),
    ink.here(title) + ink.faint(spread(count, trail, width - title.length, unicode)),
  ]
  const notice = state.notice === null ? [] : renderNotice(state.notice, width).map(ink.danger)
  if (rows < MIN_HEADER_ROWS) return [...where, ...notice]
  return [
    ...where,
    fit(labelled('imageRoot', imageRoot)),
    ...listChosen(state).map(fit),
    ...notice,
    '',
  ]
}

function listChosen({ source, image, disks, capture }: WizardState): readonly string[] {
  const disk = disks.length === 0 ? [] : [labelled('disk', disksInWords(disks))]
  if (capture !== null) {
    const { destination } = capture
    return [
      ...disk,
      ...(destination === null ? [] : [labelled('image', renderDestination(destination))]),
    ]
  }
  const chosen = image === null ? [] : [labelled('image', image.name)]
  return [labelled('catalog', source ?? 'local only'), ...chosen, ...disk]
}

const labelled = (label: keyof typeof LABELS, value: string) =>
  `${pad(LABELS[label], Math.max(...Object.values(LABELS).map(displayWidth)))} ${value}`

function disksInWords(disks: readonly DiskChoice[]): string {
  const [first, ...more] = disks
  if (first === undefined) return ''
  if (more.length === 0) return first.words === '' ? first.path : `${first.path}, ${first.words}`
  const paths = disks.map(({ path }) => path).join(', ')
  return `${disks.length}: ${paths}`
}

export function renderNotice(notice: string, width: number): readonly string[] {
  return wrap(printable(notice), width)
    .slice(0, NOTICE_LINES)
    .map((line) => clip(line, width, { cut: 'end', unicode: false }))
}
