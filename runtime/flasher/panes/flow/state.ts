/** The state of the two panes and of the dialog above them, and everything that can change it. */
import type { SurveyedDisk } from '../../../engine/disk/rules/disk.ts'
import type { FlashEvent, FlashFindings, WriteProgress } from '../../../engine/flash/rules/flash.ts'
import type { FlashOutcome } from '../../../engine/flash/rules/outcome.ts'
import type { ImageFormat } from '../../../../appliance/disk-images.ts'

/** An image that is listed, wherever it lies. */
export interface PaneImage {
  readonly name: string
  /** A path or a URL, as `sources.open` takes it. */
  readonly location: string
  /** Null: none that flasher writes. */
  readonly format: ImageFormat | null
  /** Bytes as stored; null: the server does not say. */
  readonly sizeBytes: number | null
}

export type PaneName = 'images' | 'disks'

export interface PaneList<Row> {
  /** Null: still being looked for. */
  readonly rows: readonly Row[] | null
  /** Why they cannot be listed. */
  readonly trouble: string | null
}

/** What is to be written where, as it was listed when it was chosen. */
export interface ChosenFlash {
  readonly image: PaneImage
  readonly disk: SurveyedDisk
}

/** What the checks found out. */
export interface Checked {
  /** Null: the image could not be opened at all. */
  readonly findings: FlashFindings | null
  /** What speaks against the flash; none: it can go ahead. */
  readonly reasons: readonly string[]
  /** The disk with everything that would be lost. */
  readonly disk: SurveyedDisk
}

/** A flash that is under way. */
export interface Running {
  readonly phase: string
  readonly progress: WriteProgress | null
  /** The bytes of the image as stored; null where they are not known, or not yet. */
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
      /** `asked`: whether it shall really be cancelled is the question now. */
      readonly cancel: 'no' | 'asked' | 'yes'
    }
  | { readonly kind: 'ended'; readonly choice: ChosenFlash; readonly outcome: FlashOutcome }

export interface Status {
  readonly tone: 'plain' | 'good' | 'danger'
  readonly text: string
}

/** The done signal to the server. `off`: none is due. */
export type DoneSignal =
  | { readonly kind: 'off' | 'sending' | 'sent' }
  | { readonly kind: 'failed'; readonly reason: string }

/** What does not change while the program runs. */
export interface PanesSetting {
  readonly version: string
  /** The title of the left pane: a folder, or the address of the server's list. */
  readonly source: string
  /** `http://host:port`; null: standalone. */
  readonly server: string | null
  /** Lower case, colons; null: no done signal is sent. */
  readonly mac: string | null
  /** This machine's own address; null: it has none. */
  readonly address: string | null
  readonly isRoot: boolean
}

export interface PanesState {
  readonly setting: PanesSetting
  readonly focus: PaneName
  readonly images: PaneList<PaneImage>
  readonly disks: PaneList<SurveyedDisk>
  /** The marked row of each pane: an image's location, a disk's path; null: none. */
  readonly marked: Readonly<Record<PaneName, string | null>>
  readonly filter: Readonly<Record<PaneName, string>>
  /** Keys go into the filter of the pane. */
  readonly isTyping: boolean
  readonly dialog: Dialog | null
  readonly status: Status | null
  readonly signal: DoneSignal
  /** The program ends once the server was notified. */
  readonly isLeaving: boolean
}

/** A key that was pressed, or something that a service found out. */
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

/** What the executor does next. */
export type Effect =
  | { readonly effect: 'list-images' | 'list-disks' | 'send-done' | 'redraw' | 'quit' }
  | { readonly effect: 'check' | 'flash'; readonly choice: ChosenFlash }
  /** Ends the checks, or the flash, that is under way. */
  | { readonly effect: 'cancel' }

export interface PaneStep {
  readonly state: PanesState
  readonly effects: readonly Effect[]
}

export const stay = (state: PanesState): PaneStep => ({ state, effects: [] })

const LOOKING = { rows: null, trouble: null } as const

/** The line of status until the images were listed again. */
export const REFRESHING: Status = { tone: 'plain', text: 'Looking again ...' }

interface DialogOpening {
  /** Why a person is asked; null: the person asked for it. */
  readonly reason: string | null
  /** Why the server was not notified of an earlier flash; absent: it was, or there was none. */
  readonly unsent?: string | undefined
}

/** Returns the state that the program opens with, and its first work: both lists are read. */
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
