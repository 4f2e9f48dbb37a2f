/** For how long nothing was heard of each of many: counted while the cache runs, whatever its clock says. */
import type { Storage } from 'unstorage'
import { z } from 'zod'

export type Silences = Awaited<ReturnType<typeof createSilences>>

/** Milliseconds by name. */
const StoredSchema = z.array(z.tuple([z.string(), z.number().min(0)])).catch([])

/**
 * Reads how long each was silent. `key` is where that is kept across restarts; a stop adds nothing
 * to it. `elapsed` returns milliseconds, of a clock that nobody sets.
 */
export async function createSilences(records: Storage, key: string, elapsed: () => number) {
  const started = elapsed()
  const before = new Map(StoredSchema.parse(await records.getItem(key)))
  const heardAt = new Map<string, number>()

  const read = (name: string): number =>
    (before.get(name) ?? 0) + elapsed() - (heardAt.get(name) ?? started)

  return {
    read,
    /** It was heard of just now. */
    end(name: string) {
      before.delete(name)
      heardAt.set(name, elapsed())
    },
    /** Forgets all others. Best effort: what is not stored takes longer. */
    async save(names: readonly string[]) {
      for (const known of [before, heardAt]) {
        for (const name of known.keys()) if (!names.includes(name)) known.delete(name)
      }
      const stored = names.map((name) => [name, Math.round(read(name))] as const)
      await records.setItem(key, JSON.stringify(stored)).catch(() => undefined)
    },
  }
}
