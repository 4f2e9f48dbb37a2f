/** Which version was fetched last under each address: it counts while the followed cache is away, and after a kill. */
import type { Storage } from 'unstorage'
import { z } from 'zod'
import { selectRecords } from '../../kit/host/records.ts'

const NameSchema = z.object({
  /** Where the followed cache has it. */
  url: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  /** What it is called, in messages. */
  name: z.string(),
})
export type NameRecord = Readonly<z.infer<typeof NameSchema>>

export type KeptNames = Awaited<ReturnType<typeof openKeptNames>>

const MAX_NAMES = 10_000

/** Opens the names, and forgets those of which nothing is here. `most`: so many are kept. */
export async function openKeptNames(
  records: Storage,
  isHere: (sha256: string) => Promise<boolean> | boolean,
  most = MAX_NAMES,
) {
  const stored = selectRecords(records, 'name', NameSchema)
  const names = new Map<string, NameRecord>(await stored.list())

  async function forgetAbsent() {
    for (const [key, record] of names) {
      if (await isHere(record.sha256)) continue
      names.delete(key)
      await stored.remove(key)
    }
  }

  await forgetAbsent()
  return {
    find: (key: string): NameRecord | null => names.get(key) ?? null,
    findVersion: (sha256: string): NameRecord | null =>
      names.values().find((record) => record.sha256 === sha256) ?? null,
    /**
     * The name is on disk when it resolves. Where there are too many, those go of which nothing is
     * here; a name for which there is still no place counts for now only.
     */
    async save(key: string, record: NameRecord) {
      if (names.get(key)?.sha256 === record.sha256) return
      if (!names.has(key) && names.size >= most) await forgetAbsent()
      if (!names.has(key) && names.size >= most) return
      await stored.write(key, record)
      names.set(key, record)
    },
  }
}
