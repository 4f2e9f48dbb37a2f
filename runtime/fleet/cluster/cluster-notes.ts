/** What a server remembers of the database that it shares: its own id there, and which secrets were the same. */
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { Fault, ifMissing } from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { replaceFile } from '#kit/host/folders.ts'
import type { SharedFileName, SharedFileNote } from './rules/lease.ts'

const NotesSchema = z.object({
  id: z.string(),
  cluster: z.string(),
  files: z.record(z.string(), z.object({ version: z.string(), digest: z.string() })),
})

/** `netboot`: the version of the live systems' row that this server last had whole. */
type NotedName = SharedFileName | 'netboot'

export type ClusterNotes = Awaited<ReturnType<typeof openNotes>>

/** `<state_dir>/cluster.json`, made if missing. A damaged one is a Fault `input-invalid`. */
export async function openNotes(path: string) {
  let kept = (await readNotes(path)) ?? { id: randomUUID(), cluster: '', files: {} }
  await replaceFile(path, JSON.stringify(kept), 0o600)
  return {
    id: kept.id,
    /** Null: in this database the file and its row were never the same. */
    find: (cluster: string, name: NotedName): SharedFileNote | null =>
      kept.cluster === cluster ? (kept.files[name] ?? null) : null,
    async keep(cluster: string, name: NotedName, note: SharedFileNote): Promise<void> {
      const files = kept.cluster === cluster ? kept.files : {}
      kept = { id: kept.id, cluster, files: { ...files, [name]: note } }
      await replaceFile(path, JSON.stringify(kept), 0o600)
    },
  }
}

async function readNotes(path: string): Promise<z.infer<typeof NotesSchema> | null> {
  const text = await readFile(path, 'utf8').catch(ifMissing(null))
  if (text === null) return null
  const read = NotesSchema.safeParse(parseJson(text))
  if (read.success) return read.data
  throw new Fault('input-invalid', `${path} is damaged`, {
    hint: 'Delete it. This server then gets the keys of the other servers.',
  })
}
