/** For how long nothing was heard of each of many: counted while the cache runs, whatever its clock says. */
import type { Storage } from 'unstorage'
import { z } from 'zod'

export type Silences = Awaited<ReturnType<typeof createSilences>>

/** Milliseconds by name. */
const StoredSchema = z.array(z.tuple([z.string(), z.number().min(0)])).catch([])

/** `elapsed`: monotonic milliseconds. Time in which the process does not run does not count. */
export async function createSilences(records: Storage, key: string, elapsed: () => number) {
  const started = elapsed()
  const before = new Map(StoredSchema.parse(await records.getItem(key)))
  const heardAt = new Map<string, number>()

  const read = (name: string): number =>
    (before.get(name) ?? 0) + elapsed() - (heardAt.get(name) ?? started)

  return {
    read,
    end(name: string) {
      before.delete(name)
      heardAt.set(name, elapsed())
    },
    /** Forgets all others. Best effort: after a failure they take longer to expire. */
    async save(names: readonly string[]) {
      for (const known of [before, heardAt]) {
        for (const name of known.keys()) if (!names.includes(name)) known.delete(name)
      }
      const stored = names.map((name) => [name, Math.round(read(name))] as const)
      await records.setItem(key, JSON.stringify(stored)).catch(() => undefined)
    },
  }
}
