/** Keeps a request open at a cache service that answers when its catalog changes. */

interface FollowerDependencies {
  canFollow(): boolean
  /** Resolves when the service has answered, and its answer counts; the signal ends it. */
  waitForNews(ending: AbortSignal): Promise<void>
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
    isConnected: () => isConnected,
    restart() {
      isConnected = false
      asking.abort()
      asking = new AbortController()
    },
    wake: () => woken.resolve(),
    /** The signal must be aborted before. */
    async end() {
      woken.resolve()
      await work
    },
  }
}
