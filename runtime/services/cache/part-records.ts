/** What is known of each unfinished download, so that the next start can go on with it. */
import type { Storage } from 'unstorage'

export interface PartNote {
  /** Of the source, as its server told it; null: it told none, and the part is worth nothing. */
  readonly version: string | null
  readonly sizeBytes: number | null
  /** So many bytes are on the disk for sure. */
  readonly durableBytes: number
  /** The run of the kernel in which the rest was written. */
  readonly bootId: string | null
  /** Whether it is to go on by itself after a restart. */
  readonly isWanted: boolean
}

export interface PartNotes {
  read(key: string): Promise<PartNote | null>
  write(key: string, note: PartNote): Promise<void>
  remove(key: string): Promise<void>
}

export function createPartNotes(records: Storage): PartNotes {
  return {
    read: async (key) => parseNote(await records.getItem(`part:${key}`)),
    write: (key, note) => records.setItem(`part:${key}`, JSON.stringify(note)),
    remove: (key) => records.removeItem(`part:${key}`),
  }
}

function parseNote(found: unknown): PartNote | null {
  if (typeof found !== 'object' || found === null) return null
  const fields = new Map<string, unknown>(Object.entries(found))
  const durable = fields.get('durableBytes')
  if (typeof durable !== 'number' || !Number.isSafeInteger(durable) || durable < 0) return null
  const size = fields.get('sizeBytes')
  const textOf = (name: string) => {
    const value = fields.get(name)
    return typeof value === 'string' ? value : null
  }
  return {
    version: textOf('version'),
    sizeBytes: typeof size === 'number' ? size : null,
    durableBytes: durable,
    bootId: textOf('bootId'),
    isWanted: fields.get('isWanted') === true,
  }
}
