/** Asks the question of a screen, also while its choices are still loading; the letters that mean the same everywhere. */
import type { MenuKey } from '#kit/terminal/prompt/menu.ts'
import {
  stillSubject,
  type Asked,
  type Question,
  type Subject,
  type AskDependencies,
} from '#kit/terminal/prompt/question.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import { createChoice, createQuestion, type ChoiceView, type ScreenView } from './screen-layout.ts'
import type { LoadedCatalog, CatalogRefusal } from '#engine/catalog/rules/catalog-source.ts'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { ImageRow } from '#engine/image/rules/image.ts'
import type { Result } from '#kit/foundation/result.ts'
import type { Flasher } from '#engine/flash/flasher.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { RemoteDependencies } from '#flasher/order/remote-hooks.ts'
import type { Drawing } from './header.ts'
import type { Hooks } from '#flasher/order/rules/flash-choice.ts'

export const backKey = (does: string): MenuKey => ({ key: 'b', words: ['back'], does })
/** `b` also answers a question that `y` affirms. */
export const NO_KEY: MenuKey = { key: 'b', words: ['back', 'n', 'no'], does: 'back' }
export const REFRESH_KEY: MenuKey = { key: 'r', words: ['refresh'], does: 'refresh' }
export const QUIT_KEY: MenuKey = { key: 'q', words: ['quit', 'exit'], does: 'quit' }

const STEPS: Readonly<Record<string, 'back' | 'capture' | 'refresh'>> = {
  b: 'back',
  m: 'capture',
  r: 'refresh',
}

/** Anything but a letter ends the wizard. */
export const stepOf = (asked: Asked): WizardStep => ({
  step: asked.kind === 'key' ? (STEPS[asked.key] ?? 'quit') : 'quit',
})

export const askStill = (
  state: WizardState,
  view: ScreenView,
  context: WizardContext,
): Promise<Asked> => context.ask(stillSubject(createQuestion(state, view, context.drawing)))

/** Null: the person left. */
export async function askChoice(
  state: WizardState,
  view: ChoiceView,
  context: WizardContext,
): Promise<string | null> {
  const asked = await context.ask(stillSubject(createChoice(state, view, context.drawing)))
  if (asked.kind === 'row') return view.choices[asked.index]?.key ?? null
  return asked.kind === 'key' ? asked.key : null
}

/** `work` calls `changed` when there is more to show, and never rejects. */
export async function askMeanwhile(
  state: WizardState,
  view: () => ScreenView,
  context: WizardContext,
  work: (changed: () => void, signal: AbortSignal) => Promise<unknown>,
): Promise<Asked> {
  const leaving = new AbortController()
  const signal = AbortSignal.any([context.signal, leaving.signal])
  const build = () => createQuestion(state, view(), context.drawing)
  try {
    return await context.ask(createSubject(build, (changed) => work(changed, signal)))
  } finally {
    leaving.abort()
  }
}

/** `start` begins when the question is shown, and never rejects. */
export function createSubject(
  build: () => Question,
  start: (changed: () => void) => Promise<unknown>,
): Subject {
  const listeners = new Set<() => void>()
  let now: Question | null = null
  let settled: Promise<void> | null = null
  const change = () => {
    now = null
    // Listeners come and go while they are called.
    Array.from(listeners).forEach((listener) => listener())
  }
  return {
    now: () => (now ??= build()),
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    settle: () => (settled ??= start(change).then(() => {})),
  }
}

/** The context that every screen of the wizard gets. */
export interface WizardContext extends AskDependencies {
  readonly drawing: Drawing
  /** Aborted when the program is asked to end. */
  readonly signal: AbortSignal
  readonly isRoot: boolean
  readonly env: Environment
  /** Seconds on a steady clock. */
  readonly now: () => number
  /** The catalog of `[d] default`; null: not offered. */
  readonly defaultCatalog: string | null
  /** Refused in words; null: the machine was not booted to be flashed. */
  readonly reboot: (() => Promise<Result<null, string>>) | null
  ask(subject: Subject): Promise<Asked>
  listLocal(): Promise<readonly ImageRow[]>
  loadCatalog(source: string, signal: AbortSignal): Promise<Result<LoadedCatalog, CatalogRefusal>>
  loadHooks(): Promise<Hooks>
  loadRemote(): Promise<RemoteDependencies>
  surveyDisks(): Promise<readonly SurveyedDisk[]>
  /** Where the survey does not know what lies on the partitions. */
  fillContents(disk: SurveyedDisk): Promise<SurveyedDisk>
  /** Once, when an image or a disk is first looked at. */
  loadFlasher(): Promise<Flasher>
}
