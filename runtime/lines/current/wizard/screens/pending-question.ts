/** Asks a question while its choices are still loading, and redraws it as they arrive. */
import type { Question, Subject } from '../../../../terminal/prompt/question.ts'

/** `changed` draws anew; `work` is what is under way, and never rejects. */
export function createSubject(
  build: () => Question,
  start: (changed: () => void) => Promise<unknown>,
): Subject {
  const listeners = new Set<() => void>()
  let now: Question | null = null
  const settled = start(() => {
    now = null
    // Listeners come and go while they are called.
    Array.from(listeners).forEach((listener) => listener())
  }).then(() => {})
  return {
    now: () => (now ??= build()),
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    settled,
  }
}

export const stillSubject = (question: Question): Subject => ({
  now: () => question,
  onChange: () => () => {},
  settled: Promise.resolve(),
})
