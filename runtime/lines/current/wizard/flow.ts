/** The wizard as a state machine: where an answer leads. Pure; screens show it, nothing else decides. */
import type { DiskIdentity } from '../../../core/disk.ts'
import type { FlashEnd, FlashOrder, ImageChoice, Start } from './start.ts'

export const SCREENS = [
  'catalog',
  'source',
  'image',
  'disk',
  'confirm',
  'flash',
  'failed',
  'done',
] as const
export type ScreenName = (typeof SCREENS)[number]

/** A disk that was chosen. */
export interface DiskChoice {
  readonly path: string
  readonly identity: DiskIdentity
  /** In one line, for the header: `ATA Samsung SSD 980, serial S5GX, 500 GB`. */
  readonly words: string
}

export interface State {
  readonly screen: ScreenName
  /** Where the catalog is; null: only images of this machine. */
  readonly source: string | null
  readonly image: ImageChoice | null
  readonly disk: DiskChoice | null
  /** How the last flash ended. */
  readonly end: FlashEnd | null
  /** What the operator must know, in red until he goes on. */
  readonly notice: string | null
}

/** What an operator, or a flash, did. */
export type Step =
  | { readonly step: 'back' | 'refresh' | 'ask-source' | 'flash' | 'quit' | 'reboot' }
  | { readonly step: 'source'; readonly source: string | null }
  | { readonly step: 'image'; readonly image: ImageChoice }
  | { readonly step: 'disk'; readonly disk: DiskChoice }
  | { readonly step: 'ended'; readonly end: FlashEnd; readonly notice: string | null }

/** The next screen, or how the wizard ends. */
export type Next = State | 'quit' | 'reboot'

/** The five steps that the header counts. */
export const STEPS = ['Catalog', 'Image', 'Disk', 'Flash', 'Reboot'] as const

export const STEP_OF: Readonly<Record<ScreenName, (typeof STEPS)[number]>> = {
  catalog: 'Catalog',
  source: 'Catalog',
  image: 'Image',
  disk: 'Disk',
  confirm: 'Flash',
  flash: 'Flash',
  failed: 'Flash',
  done: 'Reboot',
}

const BACK: Readonly<Record<ScreenName, ScreenName>> = {
  catalog: 'catalog',
  source: 'catalog',
  image: 'catalog',
  disk: 'image',
  confirm: 'disk',
  flash: 'disk',
  failed: 'disk',
  done: 'disk',
}

export const openState = ({ screen, catalog, notice }: Start): State => ({
  screen,
  source: catalog,
  image: null,
  disk: null,
  end: null,
  notice,
})

/** What is not chosen yet on the way back is forgotten, so that no header shows it as chosen. */
const CLEARED: { readonly [Name in ScreenName]?: Partial<State> } = {
  catalog: { image: null, disk: null, end: null },
  image: { image: null, disk: null, end: null },
  disk: { disk: null, end: null },
}

const NEXT: {
  readonly [Name in Step['step']]: (state: State, step: Extract<Step, { step: Name }>) => Next
} = {
  quit: () => 'quit',
  reboot: () => 'reboot',
  refresh: (state) => ({ ...state }),
  back: (state) => goTo(state, BACK[state.screen]),
  'ask-source': (state) => goTo(state, 'source'),
  source: (state, { source }) => goTo({ ...state, source }, 'image'),
  image: (state, { image }) => ({ ...goTo(state, 'disk'), image }),
  disk: (state, { disk }) => ({ ...goTo(state, 'confirm'), disk }),
  flash: (state) => goTo(state, 'flash'),
  ended: (state, { end, notice }) => ({
    ...goTo(state, end.kind === 'done' ? 'done' : 'failed'),
    end,
    notice,
  }),
}

export function next<Name extends Step['step']>(
  state: State,
  step: Extract<Step, { step: Name }>,
): Next {
  return NEXT[step.step as Name](state, step)
}

const goTo = (state: State, screen: ScreenName): State => ({
  ...state,
  ...CLEARED[screen],
  screen,
  notice: null,
})

/** What to write where; null until both are chosen. */
export function orderOf({ image, disk }: State): FlashOrder | null {
  if (image === null || disk === null) return null
  return { image, disk: disk.path, identity: disk.identity, unattended: false }
}
