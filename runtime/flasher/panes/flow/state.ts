/** The state of the two panes and of the dialog above them, and everything that can change it. */
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { FlashEvent, FlashFindings, WriteProgress } from '#engine/flash/rules/flash.ts'
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'

export interface PaneImage {
  readonly name: string
  /** A path or a URL, as `sources.open` takes it. */
  readonly location: string
  /** Null: none that flasher writes. */
  readonly format: ImageFormat | null
  /** As stored; null: the server does not say. */
  readonly sizeBytes: number | null
}

export type PaneName = 'images' | 'disks'

export interface PaneList<Row> {
  /** Null: still being looked for. */
  readonly rows: readonly Row[] | null
  readonly trouble: string | null
}

export interface ChosenFlash {
  readonly image: PaneImage
  readonly disk: SurveyedDisk
}

export interface Checked {
  /** Null: the image could not be opened. */
  readonly findings: FlashFindings | null
  /** What speaks against the flash. */
  readonly reasons: readonly string[]
  /** With everything that would be lost. */
  readonly disk: SurveyedDisk
}

export interface Running {
  readonly phase: string
  readonly progress: WriteProgress | null
  /** Size of the stored image; null: unknown. */
  readonly storedBytes: number | null
}

export type Dialog =
  | { readonly kind: 'help' }
  | { readonly kind: 'checking'; readonly choice: ChosenFlash }
  | { readonly kind: 'confirm'; readonly choice: ChosenFlash; readonly checked: Checked }
  | {
      readonly kind: 'flash'
      readonly choice: ChosenFlash
      readonly running: Running
      /** `asked`: the question is shown. */
      readonly cancel: 'no' | 'asked' | 'yes'
    }
  | { readonly kind: 'ended'; readonly choice: ChosenFlash; readonly outcome: FlashOutcome }

export interface Status {
  readonly tone: 'plain' | 'good' | 'danger'
  readonly text: string
}

/** `off`: none is due. */
export type DoneSignal =
  | { readonly kind: 'off' | 'sending' | 'sent' }
  | { readonly kind: 'failed'; readonly reason: string }

export interface PanesSetting {
  readonly version: string
  /** A folder, or the address of the server's list. */
  readonly source: string
  /** `http://host:port`; null: standalone. */
  readonly server: string | null
  /** Lower case, colons; null: no done signal is sent. */
  readonly mac: string | null
  /** Null: none. */
  readonly address: string | null
  readonly isRoot: boolean
}

export interface PanesState {
  readonly setting: PanesSetting
  readonly focus: PaneName
  readonly images: PaneList<PaneImage>
  readonly disks: PaneList<SurveyedDisk>
  /** An image's location, a disk's path; null: none. */
  readonly marked: Readonly<Record<PaneName, string | null>>
  readonly filter: Readonly<Record<PaneName, string>>
  readonly isTyping: boolean
  readonly dialog: Dialog | null
  readonly status: Status | null
  readonly signal: DoneSignal
  /** The program ends once the server was notified. */
  readonly isLeaving: boolean
}

export type Input =
  | { readonly input: 'key'; readonly key: string; readonly pageRows: number }
  | { readonly input: 'images'; readonly listing: PaneList<PaneImage> }
  | { readonly input: 'disks'; readonly listing: PaneList<SurveyedDisk> }
  | { readonly input: 'checked'; readonly checked: Checked }
  | {
      readonly input: 'event'
      readonly event: FlashEvent
      readonly storedBytes: number | null
    }
  | { readonly input: 'ended'; readonly outcome: FlashOutcome }
  /** Null: the server was notified. */
  | { readonly input: 'signalled'; readonly refusal: string | null }

export type Effect =
  | { readonly effect: 'list-images' | 'list-disks' | 'send-done' | 'redraw' | 'quit' }
  | { readonly effect: 'check' | 'flash'; readonly choice: ChosenFlash }
  /** Of running checks, or a running flash. */
  | { readonly effect: 'cancel' }

export interface PaneStep {
  readonly state: PanesState
  readonly effects: readonly Effect[]
}

export const stay = (state: PanesState): PaneStep => ({ state, effects: [] })

const LOOKING = { rows: null, trouble: null } as const

export const REFRESHING: Status = { tone: 'plain', text: 'Looking again ...' }

interface DialogOpening {
  /** Null: the person asked for it. */
  readonly reason: string | null
  /** Why the server was not notified of an earlier flash; absent: it was, or there was none. */
  readonly unsent?: string | undefined
}

export const openState = (setting: PanesSetting, { reason, unsent }: DialogOpening): PaneStep => ({
  state: {
    setting,
    focus: 'images',
    images: LOOKING,
    disks: LOOKING,
    marked: { images: null, disks: null },
    filter: { images: '', disks: '' },
    isTyping: false,
    dialog: null,
    status: reason === null ? null : { tone: 'danger', text: reason },
    signal: unsent === undefined ? { kind: 'off' } : { kind: 'failed', reason: unsent },
    isLeaving: false,
  },
  effects: [{ effect: 'list-images' }, { effect: 'list-disks' }],
})
