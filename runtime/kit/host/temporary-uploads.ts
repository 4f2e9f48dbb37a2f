/** Names uploads that are under way, and removes those that were cut off. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { removeName } from './folders.ts'

/** How their names begin: hidden, so that nobody can fetch them. */
export const UPLOAD = '.upload-'

/** Removes uploads that were cut off; it is called at start, when none can be under way. */
export async function clearUploads(dir: string): Promise<void> {
  const names = await readdir(dir)
  for (const name of names.filter((one) => one.startsWith(UPLOAD))) {
    await removeName(join(dir, name))
  }
}
