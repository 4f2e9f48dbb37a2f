/** The fleet's records: one JSON document per machine, by MAC. */
import { parseJson } from '../../kit/foundation/json-reader.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { MachineBase } from '../../engine/inventory/rules/machine.ts'
import type { Database } from './database.ts'
import {
  findHardware,
  packHardware,
  removeHardware,
  saveHardware,
  type Hardware,
  type PackedHardware,
} from './hardware-trees.ts'
import { createMachineSightings, type Sighting } from './machine-sightings.ts'
import { readText, readTextOrNull, type Row, type Sql } from './sqlite.ts'

type Change<Machine> = (before: Machine | null) => Machine | null

interface MachineChange<Machine> {
  readonly mac: Mac
  change(before: Machine | null): Machine
  /** Null: what is there stays. */
  readonly hardware: Hardware | null
}

export type Machines<Machine extends MachineBase> = ReturnType<typeof createMachines<Machine>>

interface MachinesOptions<Machine> {
  /** A stored record, perhaps of an older release; null when it cannot be one. */
  parseRecord(stored: unknown): Machine | null
  /** Called with records that could not be read; they stay as they are. */
  onUnreadable?(mac: string): void
  /** Milliseconds of a clock that nobody sets; the process's own unless said. */
  elapsed?(): number
}

/** The whole fleet is kept in memory (some 4 KiB a machine), the database is written through. */
export function createMachines<Machine extends MachineBase>(
  database: Database,
  options: MachinesOptions<Machine>,
) {
  const { elapsed = () => performance.now() } = options
  const sightings = createMachineSightings(database, elapsed)
  const decode = createDecoder(options, sightings.merge)
  const fleet = createFleet(database, decode, sightings)
  const { apply } = fleet
  /** Readers must not see what could not be stored. */
  const distrust = (thrown: unknown): never => {
    fleet.forget()
    throw thrown
  }
  return {
    find: async (mac: Mac): Promise<Machine | null> => fleet.current().get(mac)?.machine ?? null,
    /** The same from memory, for rules that ask for many at a time. */
    peek: (mac: Mac): Machine | null => fleet.current().get(mac)?.machine ?? null,
    count: async (): Promise<number> => fleet.current().size,
    /** All of them, by MAC. The same array as before when nothing changed. */
    list: async (): Promise<readonly Machine[]> => fleet.list(),
    /** The same at once, so that nothing changes while it is looked at. */
    peekAll: (): readonly Machine[] => fleet.list(),
    /**
     * Reads a record, lets `change` make the next one (null: leave it), and stores it, with nothing in
     * between; returns what is stored now. On disk before it resolves. `before` has the newest
     * sighting merged in, and is the object that readers have where the record is the same.
     */
    async update(mac: Mac, change: Change<Machine>): Promise<Machine | null> {
      let epoch = 0
      const stored = await database
        .write((sql) => {
          epoch = database.epoch()
          return apply(sql, mac, change)
        })
        .catch(distrust)
      // What another process has written since is newer than what was stored here.
      if (database.epoch() === epoch) fleet.publish(mac, stored)
      else fleet.forget()
      return stored?.machine ?? null
    },
    /** All of the changes in one transaction, or none. */
    async updateMany(changes: readonly MachineChange<Machine>[]): Promise<void> {
      const trees = new Map<Mac, PackedHardware>()
      for (const { mac, hardware } of changes) {
        if (hardware !== null) trees.set(mac, await packHardware(hardware))
      }
      const store = (sql: Sql) => {
        for (const { mac, change } of changes) apply(sql, mac, change)
        for (const [mac, tree] of trees) saveHardware(sql, mac, tree)
      }
      await database.write(store).finally(fleet.forget)
    },
    /** Notes `last_seen_at` and `last_seen_ip`: seen by every reader at once, on disk within a second. */
    see(mac: Mac, sighting: Sighting): void {
      sightings.note(mac, sighting)
      fleet.see(mac)
    },
    /** Milliseconds since `see` was called for it, whatever the clock says; null: not in this process. */
    silenceOf: sightings.silenceOf,
    /** False when there was none. */
    async remove(mac: Mac): Promise<boolean> {
      const remove = (sql: Sql) => {
        removeHardware(sql, mac)
        database.noteChange()
        return sql.run('DELETE FROM machines WHERE mac = ?', mac) > 0
      }
      const removed = await database.write(remove).catch(distrust)
      sightings.forget(mac)
      fleet.publish(mac, null)
      return removed
    },
    /** The hardware tree as JSON text (`lshw -json`), and when it was posted. */
    findHardware: (mac: Mac): Promise<Hardware | null> => findHardware(database.sql, mac),
    async saveHardware(mac: Mac, json: string | Uint8Array, at: string): Promise<void> {
      const packed = await packHardware({ json, at })
      await database.write((sql) => saveHardware(sql, mac, packed))
    },
  }
}

/** A stored record as a machine; null where it cannot be read. */
const createDecoder =
  <Machine extends MachineBase>(
    { parseRecord, onUnreadable }: MachinesOptions<Machine>,
    merge: (machine: Machine) => Machine,
  ) =>
  (row: Row): Machine | null => {
    const machine = parseRecord(parseJson(readText(row, 'record')))
    if (machine === null) {
      onUnreadable?.(readText(row, 'mac'))
      return null
    }
    const last_seen_at = readTextOrNull(row, 'last_seen_at')
    const last_seen_ip = readTextOrNull(row, 'last_seen_ip')
    return merge({ ...machine, last_seen_at, last_seen_ip })
  }

interface Entry<Machine> {
  machine: Machine
  /** As which it is stored: a row that still says so need not be parsed. */
  readonly text: string
}

const COLUMNS = 'mac, record, last_seen_at, last_seen_ip'
const FIND = `SELECT ${COLUMNS} FROM machines WHERE mac = ?`
const SAVE = `INSERT INTO machines (${COLUMNS}) VALUES (?, ?, ?, ?)
  ON CONFLICT (mac) DO UPDATE SET record = excluded.record,
  last_seen_at = excluded.last_seen_at, last_seen_ip = excluded.last_seen_ip`

/** All records in memory, read again when another process changed the file. */
function createFleet<Machine extends MachineBase>(
  database: Database,
  decode: (row: Row) => Machine | null,
  { merge, outdate }: ReturnType<typeof createMachineSightings>,
) {
  const entries = new Map<Mac, Entry<Machine>>()
  /** The latest records that were written and are not published yet. */
  const written = new Map<Mac, Entry<Machine>>()
  let listed: readonly Machine[] | null = null
  let epoch: number | null = null

  const take = takeWith(decode)
  const current = () => {
    const present = database.epoch()
    if (present === epoch) return entries
    entries.clear()
    listed = null
    for (const row of database.sql.all(`SELECT ${COLUMNS} FROM machines`)) {
      const entry = take(row)
      if (entry !== null) entries.set(entry.machine.mac, entry)
    }
    epoch = present
    return entries
  }
  /** The machine of a row: the very object that readers have, where the record is the same. */
  const find = (row: Row | null, mac: Mac): Entry<Machine> | null => {
    if (row === null) return null
    const text = readText(row, 'record')
    const known = entries.get(mac)
    if (known?.text === text) return known
    const pending = written.get(mac)
    return pending?.text === text ? { machine: merge(pending.machine), text } : take(row)
  }
  /** The next change of a machine need not parse what was just written. */
  const remember = (mac: Mac, entry: Entry<Machine>, before: Machine | null) => {
    outdate(before, entry.machine)
    if (written.size >= MAX_WRITTEN) written.clear()
    written.set(mac, entry)
    return entry
  }
  // Now rather than at the first contact: a large fleet takes a moment.
  current()
  return {
    current,
    list(): readonly Machine[] {
      current()
      return (listed ??= [...entries.values()].map(({ machine }) => machine).toSorted(byMac))
    },
    /** In a transaction, where the row is the truth: another process, or a change before, may have written it. */
    apply(sql: Sql, mac: Mac, change: Change<Machine>): Entry<Machine> | null {
      const before = find(sql.get(FIND, mac), mac)
      const next = change(before?.machine ?? null)
      if (next === null || next === before?.machine) return before
      const text = JSON.stringify(next)
      database.noteChange()
      sql.run(SAVE, mac, text, next.last_seen_at, next.last_seen_ip)
      return remember(mac, { machine: next, text }, before?.machine ?? null)
    },
    publish(mac: Mac, stored: Entry<Machine> | null) {
      listed = null
      if (stored === null) {
        entries.delete(mac)
        return
      }
      const { machine, text } = stored
      if (written.get(mac)?.text === text) written.delete(mac)
      entries.set(mac, { machine: merge(machine), text })
    },
    /** What was seen of it since is merged in. */
    see(mac: Mac) {
      const entry = current().get(mac)
      if (entry === undefined) return
      listed = null
      entry.machine = merge(entry.machine)
    },
    forget: () => void (epoch = null),
  }
}

const takeWith =
  <Machine>(decode: (row: Row) => Machine | null) =>
  (row: Row): Entry<Machine> | null => {
    const machine = decode(row)
    return machine === null ? null : { machine, text: readText(row, 'record') }
  }

const MAX_WRITTEN = 2000

const byMac = (a: MachineBase, b: MachineBase) => (a.mac < b.mac ? -1 : 1)
