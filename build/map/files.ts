/** Reads the files that the map lists. */
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { MappedFile } from './overview.ts'

const SHOWN = [
  'appliance/**/*.ts',
  'build/**/*.ts',
  'runtime/**/*.{ts,mjs}',
  'test/support/**/*.ts',
  'test/bench/**/*.ts',
]

/** Reads the text of each file of the map; paths are relative to the checkout. */
export const readMapped = (checkout: string): Promise<readonly MappedFile[]> =>
  Promise.all(
    globSync(SHOWN, { cwd: checkout })
      .toSorted()
      .map(async (path) => ({ path, text: await readFile(`${checkout}/${path}`, 'utf8') })),
  )
