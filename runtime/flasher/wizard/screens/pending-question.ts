/** Asks the question of a screen, also while its choices are still loading; the letters that mean the same everywhere. */
import { WIZARD_TEXTS } from '#flasher/texts/texts.ts'
import type { MenuKey } from '#kit/terminal/prompt/menu.ts'
import {
  stillSubject,
  type Asked,
  type Question,
  type Subject,
} from '#kit/terminal/prompt/question.ts'
import type { WizardState, WizardStep } from '../flow/flow.ts'
import { createChoice, createQuestion, type ChoiceView, type ScreenView } from './screen-layout.ts'
import type { WizardContext } from './wizard-context.ts'

const { keys: KEYS } = WIZARD_TEXTS

export const backKey = (does: string): MenuKey => ({ key: 'b', words: ['back'], does })
/** `b` also answers a question that `y` affirms. */
export const NO_KEY: MenuKey = { key: 'b', words: ['back', 'n', 'no'], does: KEYS.back }
export const REFRESH_KEY: MenuKey = { key: 'r', words: ['refresh'], does: KEYS.refresh }
export const QUIT_KEY: MenuKey = { key: 'q', words: ['quit', 'exit'], does: KEYS.quit }

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
