/** Notifies listeners in this process of changes; they read the new state themselves. */

/** What changed. A listener reads the rest where it is kept. */
export type Change =
  | { readonly topic: 'machine'; readonly mac: string }
  /** How far a machine's flash is. */
  | { readonly topic: 'run'; readonly mac: string }
  | { readonly topic: 'catalog' }
  | { readonly topic: 'event' }
  | { readonly topic: 'fetch'; readonly key: string }
  | { readonly topic: 'backup'; readonly key: string }
  | { readonly topic: 'settings' }

export type Feed = ReturnType<typeof createFeed>

export function createFeed() {
  const listeners = new Set<(change: Change) => void>()
  return {
    announce(change: Change) {
      for (const listener of listeners) listener(change)
    },
    /** Returns a function that stops listening. Listeners are called at once and must not block. */
    listen(listener: (change: Change) => void): () => void {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
