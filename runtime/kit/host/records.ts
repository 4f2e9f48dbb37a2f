/** Stores small JSON records by key, one atomic file each, through unstorage. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createStorage, defineDriver, type Storage } from 'unstorage'
import type { ZodType } from 'zod'
import { ifMissing } from '#kit/foundation/fault.ts'
import { makeFolder, removeName, replaceFile } from './folders.ts'

/** Keys are `kind:name`; a name may hold letters, digits, `.`, `_` and `-`. */
export const createRecords = (folder: string): Storage =>
  createStorage({ driver: atomicFiles({ folder }) })

export type RecordsOf<Value> = ReturnType<typeof selectRecords<Value>>

/** Those whose keys begin with `kind:`, checked when read; a damaged one counts as none. */
export function selectRecords<Value>(records: Storage, kind: string, schema: ZodType<Value>) {
  const keyOf = (name: string) => `${kind}:${name}`
  const read = async (name: string): Promise<Value | null> =>
    schema.safeParse(await records.getItem(keyOf(name))).data ?? null
  return {
    read,
    async list(): Promise<readonly (readonly [name: string, value: Value])[]> {
      const keys = (await records.getKeys()).filter((key) => key.startsWith(keyOf('')))
      const found = await Promise.all(
        keys.map(async (key) => {
          const name = key.slice(keyOf('').length)
          const value = await read(name)
          return value === null ? [] : [[name, value] as const]
        }),
      )
      return found.flat()
    },
    /** The record is on disk when it resolves. */
    write: (name: string, value: Value) => records.setItem(keyOf(name), JSON.stringify(value)),
    remove: (name: string) => records.removeItem(keyOf(name)),
  }
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
    removeItem: (key) => removeName(pathOf(key)),
    async getKeys() {
      await makeFolder(folder, 0o700)
      const names = await readdir(folder)
      return names
        .filter((name) => name.endsWith(SUFFIX))
        .map((name) => name.slice(0, -SUFFIX.length).replaceAll('+', ':'))
        .filter((key) => KEY.test(key))
    },
  }
})
