/** The fleet's records: one JSON document per machine, by MAC. */
import { parseJson } from '../../core/foundation/json-reader.ts'
import type { Mac } from '../../core/machine/mac.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
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
}

/** The whole fleet is kept in memory (some 4 KiB a machine), the database is written through. */
export function createMachines<Machine extends MachineBase>(
  database: Database,
  { parseRecord, onUnreadable }: MachinesOptions<Machine>,
) {
  const sightings = createMachineSightings(database)
  const decode = (row: Row): Machine | null => {
    const machine = parseRecord(parseJson(readText(row, 'record')))
    if (machine === null) {
      onUnreadable?.(readText(row, 'mac'))
      return null
    }
    const last_seen_at = readTextOrNull(row, 'last_seen_at')
    const last_seen_ip = readTextOrNull(row, 'last_seen_ip')
    return sightings.merge({ ...machine, last_seen_at, last_seen_ip })
  }
  const fleet = createFleet(database, decode, sightings.merge)
  /** In a transaction. */
  const apply = (sql: Sql, mac: Mac, change: Change<Machine>) => {
    const before = fleet.newest(sql, mac)
    const next = change(before)
    if (next === null || next === before) return before
    const { last_seen_at, last_seen_ip } = next
    sql.run(SAVE, mac, JSON.stringify(next), last_seen_at, last_seen_ip)
    fleet.expect(mac, next)
    return next
  }
  return {
    find: async (mac: Mac): Promise<Machine | null> => fleet.current().get(mac) ?? null,
    /** The same from memory, for rules that ask for many at a time. */
    peek: (mac: Mac): Machine | null => fleet.current().get(mac) ?? null,
    count: async (): Promise<number> => fleet.current().size,
    /** All of them, by MAC. The same array as before when nothing changed. */
    list: async (): Promise<readonly Machine[]> => fleet.list(),
    /**
     * Reads a record, lets `change` make the next one (null: leave it), and stores it, with nothing in
     * between; returns what is stored now. On disk before it resolves. `before` has the newest
     * sighting merged in.
     */
    async update(mac: Mac, change: Change<Machine>): Promise<Machine | null> {
      const stored = await database
        .write((sql) => apply(sql, mac, change))
        .catch((thrown: unknown) => fleet.distrust(mac, thrown))
      fleet.publish(mac, stored)
      return stored
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
      await database.write(store).finally(() => fleet.forget(changes.map(({ mac }) => mac)))
    },
    /** Notes `last_seen_at` and `last_seen_ip`: seen by every reader at once, on disk within a second. */
    see(mac: Mac, sighting: Sighting): void {
      sightings.note(mac, sighting)
      const machine = fleet.current().get(mac)
      if (machine !== undefined) fleet.publish(mac, machine)
    },
    /** False when there was none. */
    async remove(mac: Mac): Promise<boolean> {
      const remove = (sql: Sql) => {
        removeHardware(sql, mac)
        fleet.expect(mac, null)
        return sql.run('DELETE FROM machines WHERE mac = ?', mac) > 0
      }
      const removed = await database
        .write(remove)
        .catch((thrown: unknown) => fleet.distrust(mac, thrown))
      sightings.forget(mac)
      fleet.publish(mac, null)
      return removed
    },
    /** The hardware tree as JSON text (`lshw -json`), and when it was posted. */
    findHardware: (mac: Mac): Promise<Hardware | null> => findHardware(database.sql, mac),
    async saveHardware(mac: Mac, json: string, at: string): Promise<void> {
      const packed = await packHardware({ json, at })
      await database.write((sql) => saveHardware(sql, mac, packed))
    },
  }
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
  merge: (machine: Machine) => Machine,
) {
  const machines = new Map<Mac, Machine>()
  /** Stored in a transaction that is not on disk yet; null: removed there. Readers do not see them. */
  const unpublished = new Map<Mac, Machine | null>()
  let listed: readonly Machine[] | null = null
  let epoch: number | null = null
  let version: unknown = null

  const current = () => {
    const present = database.epoch()
    if (present === epoch) return machines
    version = readVersion(database.sql)
    machines.clear()
    listed = null
    for (const row of database.sql.all(`SELECT ${COLUMNS} FROM machines`)) {
      const machine = decode(row)
      if (machine !== null) machines.set(machine.mac, machine)
    }
    epoch = present
    return machines
  }
  // Now rather than at the first contact: a large fleet takes a moment.
  current()

  return {
    current,
    list(): readonly Machine[] {
      const all = current()
      return (listed ??= [...all.values()].toSorted((a, b) => (a.mac < b.mac ? -1 : 1)))
    },
    /** In a transaction: from memory, unless another process has changed the file since it was read. */
    newest(sql: Sql, mac: Mac): Machine | null {
      const present = current().get(mac) ?? null
      const pending = unpublished.get(mac)
      if (pending !== undefined) return pending === null ? null : merge(pending)
      if (readVersion(sql) === version) return present
      const row = sql.get(FIND, mac)
      return row === null ? null : decode(row)
    },
    /** The transaction stores it; readers see it once it is on disk. */
    expect(mac: Mac, machine: Machine | null) {
      unpublished.set(mac, machine)
    },
    publish(mac: Mac, machine: Machine | null) {
      if (unpublished.get(mac) === machine) unpublished.delete(mac)
      if (machine === null) machines.delete(mac)
      else machines.set(mac, merge(machine))
      listed = null
    },
    /** Readers must not see what could not be stored: it is read again from the file. */
    distrust(mac: Mac, thrown: unknown): never {
      unpublished.delete(mac)
      epoch = null
      throw thrown
    },
    forget(macs: readonly Mac[]) {
      for (const mac of macs) unpublished.delete(mac)
      epoch = null
    },
  }
}

/** Another number after another process has committed. */
const readVersion = (sql: Sql) => sql.get('PRAGMA data_version')?.['data_version']
