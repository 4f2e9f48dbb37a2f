/** Tells a leader that takes its time from one that nobody hears any more, by asking whether it is there. */
import type { ForwardTarget } from './forward-target.ts'

/** A leader that comes through to nobody for so long loses the lease; `/healthz` is answered at once. */
export const SILENT_MS = 5000

interface LivenessDependencies {
  /** Asks a server on a connection of its own; false: it gave no answer in time. */
  ask(to: ForwardTarget): Promise<boolean>
  /** This is called when it gave none, with when it was asked (`performance.now()`). */
  onSilent(to: ForwardTarget, askedAt: number): void
}

/** Each server is asked one question at a time. */
export function createLiveness({ ask, onSilent }: LivenessDependencies) {
  let asked: ForwardTarget | null = null
  let silent: ForwardTarget | null = null
  let [heard, heardAt]: [ForwardTarget | null, number] = [null, 0]

  async function check(to: ForwardTarget): Promise<void> {
    const askedAt = performance.now()
    if (asked === to || (heard === to && askedAt - heardAt < SILENT_MS)) return
    asked = to
    const isThere = await ask(to)
    // Another one may have been asked since.
    if (asked === to) asked = null
    if (isThere) {
      ;[heard, heardAt] = [to, performance.now()]
      if (silent === to) silent = null
    } else {
      silent = to
      onSilent(to, askedAt)
    }
  }

  return {
    check,
    /** Whether it gave no answer when it was asked last. It is asked again then. */
    isSilent(to: ForwardTarget): boolean {
      if (silent !== to) return false
      void check(to)
      return true
    },
  }
}
