/** JSON that only its owner can read, in a file of its own: answered from memory, on disk before a change resolves. */
import { readFile } from 'node:fs/promises'
import type { ZodType } from 'zod'
import { Fault, ifMissing } from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { replaceFile } from './folders.ts'
import { createQueue } from './queue.ts'

/** `share` is awaited after each change, for whoever else must have it. Rejects with a Fault where the file cannot be read. */
export async function openKeptFile<Content extends object>(of: {
  readonly path: string
  readonly schema: ZodType<Content>
  readonly empty: Content
  /** `the secrets of notifications`, and what to enter again where they are lost. */
  readonly named: readonly [name: string, lost: string]
  share?: (() => Promise<void>) | undefined
}) {
  const text = await readFile(of.path, 'utf8').catch(ifMissing(null))
  const read = text === null ? of.empty : of.schema.safeParse(parseJson(text)).data
  if (read === undefined) {
    throw new Fault('input-invalid', `${of.path} cannot be read as ${of.named[0]}`, {
      hint: `Restore it from a copy, or remove it and enter the ${of.named[1]} again.`,
    })
  }
  let content = read
  const inOrder = createQueue(1)
  return {
    current: (): Content => content,
    change: (make: (before: Content) => Content): Promise<void> =>
      inOrder(async () => {
        const next = make(content)
        await replaceFile(of.path, `${JSON.stringify(next)}\n`, 0o600)
        content = next
        await of.share?.()
      }),
  }
}
