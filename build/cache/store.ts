/** The cache of outcomes, by step and key. An outcome that was changed counts as absent. */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { digestListing, digestPath, measurePath } from './digest.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'

/** The record of one file or folder that a step made. */
interface Made {
  /** The digest of the content; it is part of the keys of steps that read it. */
  readonly digest: string
  readonly listing: string
  /** The bytes of all files in it. */
  readonly bytes: number
}

export interface Entry {
  readonly folder: string
  readonly made: Readonly<Record<string, Made>>
}

/** `listing` is quick and reads only what seems touched; `content` reads everything. */
export type Proof = 'listing' | 'content'

/** Outcomes kept for each step; the least recently used is dropped first. */
const KEPT = 3

/**
 * Opens the cache in the folder `root`; `proof` says how an outcome is verified before it is used.
 */
export function createStore(root: string, proof: Proof = 'listing') {
  const placeOf = (name: string, key: string) => join(root, name, key)
  const recordOf = (name: string, key: string) => `${placeOf(name, key)}.json`

  /** Null when it was never made, or has changed since. */
  async function find(name: string, key: string): Promise<Entry | null> {
    const made = await readRecord(recordOf(name, key))
    if (made === null) return null
    const folder = placeOf(name, key)
    const seen: Record<string, Made> = {}
    for (const [path, before] of Object.entries(made)) {
      const now = await lookAt(join(folder, path), before, proof).catch(() => null)
      if (now === null) return null
      seen[path] = now
    }
    if (JSON.stringify(seen) === JSON.stringify(made)) {
      const now = new Date()
      await utimes(recordOf(name, key), now, now)
    } else await writeRecord(recordOf(name, key), seen)
    return { folder, made }
  }

  /** An empty folder beside its final place, so that one rename completes it. */
  async function open(name: string, key: string): Promise<string> {
    const folder = `${placeOf(name, key)}.${process.pid}.part`
    await rm(folder, { recursive: true, force: true })
    await mkdir(folder, { recursive: true })
    return folder
  }

  /** Moves `part` into the cache. A text when something that the step promised is missing. */
  async function keep(
    name: string,
    key: string,
    part: string,
    makes: readonly string[],
  ): Promise<Entry | string> {
    const missing = makes.filter((path) => !existsSync(join(part, path)))
    if (missing.length > 0) return `did not make ${missing.join(', ')}`
    const made = await describeAll(part, makes)
    // Another builder was faster, and its outcome may be in use.
    const before = await find(name, key)
    if (before !== null) {
      await rm(part, { recursive: true })
      return before
    }
    const folder = placeOf(name, key)
    const record = recordOf(name, key)
    await rm(record, { force: true })
    await rm(folder, { recursive: true, force: true })
    await rename(part, folder)
    await writeRecord(record, made)
    return { folder, made }
  }

  /** Drops the least recently used outcomes of a step, and what unfinished builds left behind. */
  async function prune(name: string): Promise<void> {
    const entries = await readdir(join(root, name)).catch(() => [])
    const records = entries.filter((entry) => entry.endsWith('.json'))
    const used = await Promise.all(
      records.map(async (record) => ({
        key: record.slice(0, -'.json'.length),
        at: (await stat(join(root, name, record))).mtimeMs,
      })),
    )
    for (const { key } of used.toSorted((a, b) => b.at - a.at).slice(KEPT)) {
      await rm(recordOf(name, key), { force: true })
      await rm(placeOf(name, key), { recursive: true, force: true })
    }
    for (const part of entries.filter(isLeftOver)) {
      await rm(join(root, name, part), { recursive: true, force: true })
    }
  }

  return { find, open, keep, prune }
}

/** What a step has made, as it is recorded. */
async function describeAll(part: string, makes: readonly string[]): Promise<Record<string, Made>> {
  const made: Record<string, Made> = {}
  for (const path of makes) {
    const place = join(part, path)
    made[path] = {
      digest: await digestPath(place),
      listing: await digestListing(place),
      bytes: measurePath(place),
    }
  }
  return made
}

/**
 * @returns the record with its current listing, because a copy of the cache has other times; null when
 * the content has changed.
 */
async function lookAt(place: string, before: Made, proof: Proof): Promise<Made | null> {
  const listing = await digestListing(place)
  if (listing === before.listing && proof === 'listing') return before
  return (await digestPath(place)) === before.digest ? { ...before, listing } : null
}

/** Whether it is the folder of a builder that is no longer running. */
function isLeftOver(entry: string): boolean {
  const pid = /\.(\d+)\.part$/.exec(entry)?.[1]
  return pid !== undefined && !existsSync(`/proc/${pid}`)
}

async function writeRecord(record: string, made: Readonly<Record<string, Made>>): Promise<void> {
  await writeFile(`${record}.${process.pid}`, JSON.stringify(made))
  await rename(`${record}.${process.pid}`, record)
}

async function readRecord(path: string): Promise<Readonly<Record<string, Made>> | null> {
  const text = await readFile(path, 'utf8').catch(() => null)
  const value = text === null ? null : parseJson(text)
  return isMade(value) ? value : null
}

const isMade = (value: unknown): value is Readonly<Record<string, Made>> =>
  typeof value === 'object' &&
  value !== null &&
  Object.values(value).every(
    (made: unknown) =>
      typeof made === 'object' &&
      made !== null &&
      'digest' in made &&
      'listing' in made &&
      typeof made.digest === 'string' &&
      typeof made.listing === 'string' &&
      'bytes' in made &&
      typeof made.bytes === 'number',
  )
