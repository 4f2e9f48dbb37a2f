/** The wizard as a state machine: decides the next screen after each answer. Pure. */
import { type Cases, decideCase } from '#kit/foundation/cases.ts'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'
import type { CaptureOutcome, CaptureDestination } from '#engine/capture/rules/capture.ts'
import type {
  ChosenImage,
  DiskChoice,
  FlashChoice,
  FlashChoices,
  Flashed,
  TemplateOffer,
  WizardStart,
} from '#flasher/order/rules/flash-choice.ts'

/** As the header counts; the last one only where the machine can be restarted. */
const FLASH_STEPS = ['catalog', 'image', 'disk', 'flash', 'reboot'] as const
const CAPTURE_STEPS = ['disk', 'image', 'capture', 'reboot'] as const
type StepName = (typeof FLASH_STEPS | typeof CAPTURE_STEPS)[number]

export const SCREENS = {
  catalog: { step: 'catalog', back: 'catalog' },
  source: { step: 'catalog', back: 'catalog' },
  image: { step: 'image', back: 'catalog' },
  disk: { step: 'disk', back: 'image' },
  confirm: { step: 'flash', back: 'disk' },
  flash: { step: 'flash', back: 'disk' },
  failed: { step: 'flash', back: 'disk' },
  done: { step: 'reboot', back: 'disk' },
  'capture-disk': { step: 'disk', back: 'catalog' },
  'capture-destination': { step: 'image', back: 'capture-disk' },
  'capture-token': { step: 'image', back: 'capture-destination' },
  'capture-confirm': { step: 'capture', back: 'capture-destination' },
  'capture-failed': { step: 'capture', back: 'capture-confirm' },
  'capture-done': { step: 'reboot', back: 'capture-disk' },
} as const satisfies Record<string, { readonly step: StepName; readonly back: string }>
export type ScreenName = keyof typeof SCREENS

export interface WizardState {
  readonly screen: ScreenName
  /** Null: only images of this machine. */
  readonly source: string | null
  /** The first screen was that of the images, and no catalog was chosen since. */
  readonly skipsCatalog: boolean
  readonly image: ChosenImage | null
  /** All of them get the image; none: not chosen yet. */
  readonly disks: readonly DiskChoice[]
  /** For the first boot; null: nothing is written. */
  readonly template: WrittenTemplate | null
  /** Of several disks, as the first that failed ended. */
  readonly end: FlashOutcome | null
  readonly ends: readonly FlashOutcome[]
  /** The UEFI boot entry; null: none was asked for. */
  readonly bootEntry: string | null
  /** Red, until the operator goes on. */
  readonly notice: string | null
  /** The disk in `disks` is captured; null: an image is flashed. */
  readonly capture: CaptureChoice | null
}

interface CaptureChoice {
  readonly begunAt: ScreenName
  readonly name: string
  /** Null: not chosen yet. */
  readonly destination: CaptureDestination | null
  readonly end: CaptureOutcome | null
}

type WrittenTemplate = Extract<TemplateOffer, { kind: 'template' }>

export type WizardStep =
  | { readonly step: 'back' | 'refresh' | 'ask-source' | 'capture' | 'quit' | 'reboot' }
  | { readonly step: 'flash'; readonly template: WrittenTemplate | null }
  | { readonly step: 'source'; readonly source: string | null }
  | { readonly step: 'image'; readonly image: ChosenImage }
  | { readonly step: 'disks'; readonly disks: readonly DiskChoice[] }
  | ({ readonly step: 'ended' } & Flashed)
  | { readonly step: 'capture-disk'; readonly disk: DiskChoice; readonly name: string }
  | { readonly step: 'capture-destination'; readonly destination: CaptureDestination }
  | { readonly step: 'captured'; readonly end: CaptureOutcome }

export type NextScreen = WizardState | 'quit' | 'reboot'

export const isCapture = (screen: ScreenName): boolean => screen.startsWith('capture-')

export const stepsOf = (screen: ScreenName): readonly StepName[] =>
  isCapture(screen) ? CAPTURE_STEPS : FLASH_STEPS

function backOf({ screen, capture }: WizardState): ScreenName {
  return screen === 'capture-disk' && capture !== null ? capture.begunAt : SCREENS[screen].back
}

export const openState = ({ screen, catalog, notice }: WizardStart): WizardState => ({
  screen,
  source: catalog,
  skipsCatalog: screen !== 'catalog',
  image: null,
  disks: [],
  template: null,
  end: null,
  ends: [],
  bootEntry: null,
  notice,
  capture: null,
})

/** What lies ahead on the way back is forgotten, so that no header shows it as chosen. */
const CLEARED: { readonly [Name in ScreenName]?: Partial<WizardState> } = {
  catalog: { skipsCatalog: false, image: null, disks: [], end: null, ends: [], capture: null },
  image: { image: null, disks: [], end: null, ends: [], capture: null },
  disk: { disks: [], end: null, ends: [] },
  'capture-disk': { disks: [] },
}

const NEXT: Cases<'step', WizardStep & { readonly from: WizardState }, NextScreen> = {
  quit: () => 'quit',
  reboot: () => 'reboot',
  refresh: ({ from }) => ({ ...from }),
  back: ({ from }) => goTo(from, backOf(from)),
  'ask-source': ({ from }) => goTo(from, 'source'),
  source: ({ from, source }) => goTo({ ...from, source }, 'image'),
  image: ({ from, image }) => ({ ...goTo(from, 'disk'), image }),
  disks: ({ from, disks }) => ({ ...goTo(from, 'confirm'), disks }),
  flash: ({ from, template }) => ({ ...goTo(from, 'flash'), template }),
  ended: ({ from, end, ends = [end], notice, bootEntry }) => ({
    ...goTo(from, end.kind === 'done' ? 'done' : 'failed'),
    end,
    ends,
    bootEntry,
    notice,
  }),
  capture: ({ from }) => ({
    ...goTo(from, 'capture-disk'),
    capture: { begunAt: from.screen, name: '', destination: null, end: null },
  }),
  'capture-disk': ({ from, disk, name }) => ({
    ...goTo(from, 'capture-destination'),
    disks: [disk],
    capture: captureOf(from, { name, destination: null, end: null }),
  }),
  'capture-destination': ({ from, destination }) => ({
    ...goTo(from, needsToken(destination) ? 'capture-token' : 'capture-confirm'),
    capture: captureOf(from, { destination }),
  }),
  captured: ({ from, end }) => ({
    ...goTo(from, end.kind === 'done' ? 'capture-done' : 'capture-failed'),
    capture: captureOf(from, { end }),
  }),
}

const captureOf = (
  { capture }: WizardState,
  change: Partial<CaptureChoice>,
): WizardState['capture'] => (capture === null ? null : { ...capture, ...change })

const needsToken = (destination: CaptureDestination): boolean =>
  destination.kind === 'upload' && destination.token === null

export const next = (from: WizardState, step: WizardStep): NextScreen =>
  decideCase(NEXT, 'step', { ...step, from })

const goTo = (state: WizardState, screen: ScreenName): WizardState => ({
  ...state,
  ...CLEARED[screen],
  screen,
  bootEntry: null,
  notice: null,
})

/** Null until image and disks are chosen. */
export function choiceOf({ image, disks }: WizardState): FlashChoices | null {
  if (image === null) return null
  const choices = disks.map(({ path: disk, identity }): FlashChoice => ({
    image,
    disk,
    identity,
    unattended: false,
  }))
  const [first, ...more] = choices
  return first === undefined ? null : [first, ...more]
}
