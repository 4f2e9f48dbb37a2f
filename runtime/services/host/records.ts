/** Stores small JSON records by key, one atomic file each, through unstorage. */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createStorage, defineDriver, type Storage } from 'unstorage'
import { ifMissing } from '../../core/foundation/system-error.ts'
import { replaceFile } from './atomic-file.ts'

/** Keys are `kind:name`; a name may hold letters, digits, `.`, `_` and `-`. */
export function createRecords(folder: string): Storage {
  return createStorage({ driver: atomicFiles({ folder }) })
}

/** The records of one kind, by the rest of their keys. `parse`: null for what is none. */
export async function listRecords<Record>(
  records: Storage,
  kind: string,
  parse: (stored: unknown) => Record | null,
): Promise<readonly (readonly [name: string, record: Record])[]> {
  const keys = (await records.getKeys()).filter((key) => key.startsWith(kind))
  const found = await Promise.all(
    keys.map(async (key) => [key.slice(kind.length), parse(await records.getItem(key))] as const),
  )
  return found.flatMap(([name, record]) => (record === null ? [] : [[name, record] as const]))
}

const SUFFIX = '.json'
const KEY = /^[\w.:-]{1,200}$/

const atomicFiles = defineDriver(({ folder }: { readonly folder: string }) => {
  const pathOf = (key: string) => {
    if (!KEY.test(key)) throw new Error(`not a key of records: ${key}`)
    return join(folder, `${key.replaceAll(':', '+')}${SUFFIX}`)
  }
  const read = async (key: string) => readFile(pathOf(key), 'utf8').catch(ifMissing(null))
  return {
    name: 'atomic-files',
    hasItem: async (key) => (await read(key)) !== null,
    getItem: read,
    setItem: (key, value) => replaceFile(pathOf(key), value),
    removeItem: (key) => rm(pathOf(key), { force: true }),
    async getKeys() {
      await mkdir(folder, { recursive: true })
      const names = await readdir(folder)
      return names
        .filter((name) => name.endsWith(SUFFIX))
        .map((name) => name.slice(0, -SUFFIX.length).replaceAll('+', ':'))
        .filter((key) => KEY.test(key))
    },
  }
})
