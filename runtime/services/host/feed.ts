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

export interface Feed {
  announce(change: Change): void
  /** Returns a function that stops listening. Listeners are called at once and must not block. */
  listen(listener: (change: Change) => void): () => void
}

export function createFeed(): Feed {
  const listeners = new Set<(change: Change) => void>()
  return {
    announce(change) {
      for (const listener of listeners) listener(change)
    },
    listen(listener) {
      listeners.add(listener)
      return () => {
        listeners.delete(listener)
      }
    },
  }
}
