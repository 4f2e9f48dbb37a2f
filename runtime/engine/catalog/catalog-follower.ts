/** Keeps a request open at a cache service that answers when its catalog changes. */

interface FollowerDependencies {
  /** Whether the service that is set has answered before, and waits for changes. */
  canFollow(): boolean
  /** Resolves when the service has answered, and its answer counts; the signal ends it. */
  waitForNews(ending: AbortSignal): Promise<void>
  /** This is called when the cache did not answer. */
  onFailure(): void
  readonly signal: AbortSignal
}

export function startFollower(dependencies: FollowerDependencies) {
  const { canFollow, waitForNews, onFailure, signal } = dependencies
  let woken = Promise.withResolvers<void>()
  let isConnected = false
  let asking = new AbortController()

  async function follow() {
    while (!signal.aborted) {
      if (canFollow()) {
        isConnected = true
        const isAnswered = await waitForNews(AbortSignal.any([signal, asking.signal])).then(
          () => true,
          () => false,
        )
        if (isAnswered) continue
        isConnected = false
        if (!signal.aborted) onFailure()
      }
      isConnected = false
      if (signal.aborted) return
      await woken.promise
      woken = Promise.withResolvers()
    }
  }

  const work = follow()
  return {
    /** Whether a change would be known at once. */
    isConnected: () => isConnected,
    /** Begins anew after another service was set. */
    restart() {
      isConnected = false
      asking.abort()
      asking = new AbortController()
    },
    /** Wakes the follower after a change that decides whether it can follow. */
    wake: () => woken.resolve(),
    /** Waits until the follower has ended; the signal must be aborted before. */
    async end() {
      woken.resolve()
      await work
    },
  }
}
