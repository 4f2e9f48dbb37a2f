/** Notifies listeners in this process of changes; they read the new state themselves. */

/** What changed. A listener reads the rest where it is kept. */
export type Change =
  | { readonly topic: 'machine'; readonly mac: string }
  /** It asked for its script or plan; what that changed in its record is a change of the machine as well. */
  | { readonly topic: 'contact'; readonly mac: string }
  /** It was led to its disk or elsewhere; at each request that does not say what it was offered before. */
  | { readonly topic: 'boot'; readonly mac: string; readonly isToDisk: boolean }
  /** How far a machine's flash is. */
  | { readonly topic: 'run'; readonly mac: string }
  | { readonly topic: 'catalog' }
  | { readonly topic: 'event' }
  | { readonly topic: 'fetch'; readonly key: string }
  | { readonly topic: 'backup'; readonly key: string }
  | { readonly topic: 'batch'; readonly id: string }
  | { readonly topic: 'settings' }

type Topic = Change['topic']
const TOPICS = [
  'machine',
  'contact',
  'boot',
  'run',
  'catalog',
  'event',
  'fetch',
  'backup',
  'batch',
  'settings',
] as const satisfies readonly Topic[]
type ChangeListener = (change: Change) => void

export type Changes = ReturnType<typeof createChanges>

export function createChanges() {
  const listeners = new Map<Topic, Set<ChangeListener>>(TOPICS.map((topic) => [topic, new Set()]))
  return {
    announce(change: Change) {
      for (const listener of listeners.get(change.topic) ?? []) listener(change)
    },
    /**
     * Calls `listener` at once with each change of these topics (all, unless said), in the order of the
     * calls of `listen`; it must not block. Returns a function that stops it.
     */
    listen(listener: ChangeListener, topics: readonly Topic[] = TOPICS): () => void {
      for (const topic of topics) listeners.get(topic)?.add(listener)
      return () => {
        for (const topic of topics) listeners.get(topic)?.delete(listener)
      }
    },
  }
}
