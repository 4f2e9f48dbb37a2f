/** The server to which requests are passed on at the moment, and whoever waits for another one. */

export interface ForwardTarget {
  /** `http://192.0.2.7:8080`, without a slash at its end. */
  readonly url: string
  /** Another one once another server leads, or the same one again; what is sealed holds for it. */
  readonly term: string
  /** This very process: its certificate need not be for this address. */
  readonly isSelf?: boolean
}

const isSame = (one: ForwardTarget | null, other: ForwardTarget | null) =>
  one?.url === other?.url && one?.term === other?.term && one?.isSelf === other?.isSelf

export function createTarget() {
  let current: ForwardTarget | null = null
  let changed = Promise.withResolvers<void>()
  function wake() {
    changed.resolve()
    changed = Promise.withResolvers()
  }
  return {
    /** Null: nobody leads, as far as is known. */
    current: () => current,
    wake,
    /** False: it is the same one. */
    set(next: ForwardTarget | null): boolean {
      if (isSame(next, current)) return false
      current = next
      wake()
      return true
    },
    /** Resolves once it is another one than `known`, or after so many milliseconds. */
    async change(known: ForwardTarget | null, milliseconds: number): Promise<void> {
      if (current !== known) return
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, milliseconds)
      await Promise.race([changed.promise, promise])
      clearTimeout(timer)
    },
  }
}
