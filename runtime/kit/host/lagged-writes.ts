/** Keeps the newest value of each key in memory for a moment, so that a storm of changes is one small write. */

/**
 * Keeps values for `lagMs` milliseconds before it hands them to `store`, which resolves once the
 * batch is on disk; where it fails, all of it waits for the next try.
 */
export function createLaggedWrites<Key, Value>(
  lagMs: number,
  store: (batch: readonly (readonly [Key, Value])[]) => Promise<void>,
) {
  const waiting = new Map<Key, Value>()
  let timer: NodeJS.Timeout | null = null

  async function flush() {
    if (timer !== null) clearTimeout(timer)
    timer = null
    const batch = [...waiting]
    if (batch.length === 0) return
    await store(batch)
    for (const [key, value] of batch) if (waiting.get(key) === value) waiting.delete(key)
  }
  const later = () => {
    timer ??= setTimeout(() => {
      timer = null
      flush().catch(later)
    }, lagMs).unref()
  }

  return {
    /** What is not stored yet. */
    find: (key: Key): Value | undefined => waiting.get(key),
    note(key: Key, value: Value): void {
      waiting.set(key, value)
      later()
    },
    forget: (key: Key) => waiting.delete(key),
    flush,
  }
}
