/**
 * How long each test file took: the record of this machine's last run, in the folder of its caches, and
 * where there is none the one beside this file, of a run that was asked to `--record` it.
 */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** Files that took fewer seconds are in no record. */
const MIN_RECORDED = 2

export interface FileDuration {
  /** The file, or several that shared a process. */
  readonly file: string
  readonly seconds: number
  /** The processor's seconds; null where it was ended. */
  readonly processorSeconds: number | null
}

const COMMITTED = path.join(import.meta.dirname, 'durations.json')

function findLatest(): string {
  const { FLASHER_TEST_CACHE: chosen, XDG_CACHE_HOME: home } = process.env
  const folder = chosen ?? path.join(home ?? path.join(os.homedir(), '.cache'), 'flasher-tests')
  return path.join(folder, 'durations.json')
}

/** Seconds by file; an unreadable record is none, for it only decides an order. */
export function readDurations(): ReadonlyMap<string, number> {
  const [committed = {}, latest = {}] = [COMMITTED, findLatest()].map(readRecord)
  return new Map(Object.entries({ ...committed, ...latest }))
}

function readRecord(file: string): Readonly<Record<string, number>> {
  try {
    const record: unknown = JSON.parse(fs.readFileSync(file, 'utf8'))
    const rows = Object.entries(record ?? {})
    return Object.fromEntries(rows.filter(([, seconds]) => Number.isFinite(seconds)))
  } catch {
    return {}
  }
}

/** Keeps what this run found beside what others found; files that are gone are forgotten. */
export function writeDurations(
  found: ReadonlyMap<string, number>,
  { files, isRecord }: { readonly files: readonly string[]; readonly isRecord: boolean },
) {
  const known = new Map([...readDurations(), ...found])
  const rows = [...known]
    .filter(([file, seconds]) => files.includes(file) && seconds >= MIN_RECORDED)
    .map(([file, seconds]): [string, number] => [file, Math.round(seconds)])
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
  const text = `${JSON.stringify(Object.fromEntries(rows), null, 2)}\n`
  const latest = findLatest()
  fs.mkdirSync(path.dirname(latest), { recursive: true })
  for (const file of isRecord ? [latest, COMMITTED] : [latest]) {
    // Two runs at once must leave one whole record.
    fs.writeFileSync(`${file}.${process.pid}`, text)
    fs.renameSync(`${file}.${process.pid}`, file)
  }
}

/** The slowest `count` files, as lines; none where all of them were quick. */
export function describeSlowest(durations: readonly FileDuration[], count: number): string[] {
  const slow = durations
    .filter(({ seconds }) => seconds >= 1)
    .toSorted((one, other) => other.seconds - one.seconds)
  return slow.slice(0, count).map(({ file, seconds, processorSeconds }) => {
    const cpu = processorSeconds === null ? '?' : processorSeconds.toFixed(0)
    return `${seconds.toFixed(0).padStart(5)} s ${cpu.padStart(5)} s CPU  ${file}`
  })
}
