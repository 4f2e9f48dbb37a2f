/** Keeps what opens receivers in a file of its own: it is in no export and no backup. */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { Fault } from '../../kit/foundation/fault.ts'
import { parseJson } from '../../kit/foundation/json-reader.ts'
import { ifMissing } from '../../kit/foundation/system-error.ts'
import { replaceFile } from '../../kit/host/atomic-file.ts'
import { createQueue } from '../../kit/host/queue.ts'

export type ReceiverSecrets = Awaited<ReturnType<typeof openReceiverSecrets>>

const SecretsSchema = z.record(z.string(), z.string())
type Secrets = z.infer<typeof SecretsSchema>

/**
 * Opens the file. What it answers comes from memory; a change is on disk before it resolves, and
 * `share` is awaited after it, for whoever else must have it.
 *
 * Rejects with a Fault where the file is there and cannot be read.
 */
export async function openReceiverSecrets(path: string, share?: () => Promise<void>) {
  let secrets = await readSecrets(path)
  const inOrder = createQueue(1)

  const change = (make: (before: Secrets) => Secrets): Promise<void> =>
    inOrder(async () => {
      const next = make(secrets)
      await replaceFile(path, `${JSON.stringify(next)}\n`, 0o600)
      secrets = next
      await share?.()
    })

  return {
    /** Returns the secret of a receiver, by its id; null: it has none. */
    find: (id: string): string | null =>
      Object.hasOwn(secrets, id) ? (secrets[id] ?? null) : null,
    save: (id: string, secret: string): Promise<void> =>
      change((before) => ({ ...before, [id]: secret })),
    async remove(id: string): Promise<void> {
      if (!Object.hasOwn(secrets, id)) return
      await change((before) =>
        Object.fromEntries(Object.entries(before).filter(([each]) => each !== id)),
      )
    },
  }
}

async function readSecrets(path: string): Promise<Secrets> {
  const text = await readFile(path, 'utf8').catch(ifMissing(null))
  if (text === null) return {}
  const parsed = SecretsSchema.safeParse(parseJson(text))
  if (parsed.success) return parsed.data
  throw new Fault('input-invalid', `${path} cannot be read as the secrets of notifications`, {
    hint: 'Put a copy of it in its place, or remove it and enter the secrets again.',
  })
}
