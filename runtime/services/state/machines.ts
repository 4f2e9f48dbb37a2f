/** The fleet's records: one JSON document a machine, kept by MAC. */
import { parseJson } from '../../core/foundation/json-text.ts'
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

interface MachineChange<Machine> {
  readonly mac: Mac
  change(before: Machine | null): Machine
  /** Null: what is there stays. */
  readonly hardware: Hardware | null
}

export interface Machines<Machine extends MachineBase> {
  find(mac: Mac): Promise<Machine | null>
  /** The same from memory, for rules that ask for many at a time. */
  peek(mac: Mac): Machine | null
  /** All of them, by MAC. The same array as before when nothing changed. */
  list(): Promise<readonly Machine[]>
  count(): Promise<number>
  /**
   * Reads a record, lets `change` make the next one (null: leave it), and stores it, with nothing in
   * between; returns what is stored now. On disk before it resolves. `before` has the newest
   * sighting merged in.
   */
  update(mac: Mac, change: (before: Machine | null) => Machine | null): Promise<Machine | null>
  /** All of the changes in one transaction, or none. */
  updateMany(changes: readonly MachineChange<Machine>[]): Promise<void>
  /** Notes `last_seen_at` and `last_seen_ip`: seen by every reader at once, on disk within a second. */
  see(mac: Mac, sighting: Sighting): void
  /** False when there was none. */
  remove(mac: Mac): Promise<boolean>
  /** The hardware tree as JSON text (`lshw -json`), and when it was posted. */
  findHardware(mac: Mac): Promise<Hardware | null>
  saveHardware(mac: Mac, json: string, at: string): Promise<void>
}

interface MachinesOptions<Machine> {
  /** A stored record, perhaps of an older release; null when it cannot be one. */
  parseRecord(stored: unknown): Machine | null
  /** Told of records that could not be read; they stay as they are. */
  onUnreadable?(mac: string): void
}

/** The whole fleet is kept in memory (some 4 KiB a machine), the database is written through. */
export function createMachines<Machine extends MachineBase>(
  database: Database,
  { parseRecord, onUnreadable }: MachinesOptions<Machine>,
): Machines<Machine> {
  const sightings = createMachineSightings(database)
  /** Stored in a transaction that is not on disk yet; null: removed there. Readers do not see them. */
  const unpublished = new Map<Mac, Machine | null>()
  const fleet = new Map<Mac, Machine>()
  let listed: readonly Machine[] | null = null
  let epoch: number | null = null
  let version: unknown = null

  const decode = (row: Row): Machine | null => {
    const machine = parseRecord(parseJson(readText(row, 'record')))
    if (machine === null) {
      onUnreadable?.(readText(row, 'mac'))
      return null
    }
    const [last_seen_at, last_seen_ip] = [
      readTextOrNull(row, 'last_seen_at'),
      readTextOrNull(row, 'last_seen_ip'),
    ]
    return sightings.merge({ ...machine, last_seen_at, last_seen_ip })
  }

  const publish = (mac: Mac, machine: Machine | null) => {
    if (unpublished.get(mac) === machine) unpublished.delete(mac)
    if (machine === null) fleet.delete(mac)
    else fleet.set(mac, sightings.merge(machine))
    listed = null
  }

  /** Reads everything anew when somebody else changed the file. */
  const current = () => {
    const now = database.epoch()
    if (now === epoch) return fleet
    version = readVersion(database.sql)
    const rows = database.sql.all(`SELECT ${COLUMNS} FROM machines`)
    fleet.clear()
    for (const machine of rows.map(decode)) {
      if (machine !== null) fleet.set(machine.mac, machine)
    }
    listed = null
    epoch = now
    return fleet
  }

  /** In a transaction: from memory, unless another process has changed the file since it was read. */
  const newest = (sql: Sql, mac: Mac): Machine | null => {
    const present = current().get(mac) ?? null
    const pending = unpublished.get(mac)
    if (pending !== undefined) return pending === null ? null : sightings.merge(pending)
    if (readVersion(sql) === version) return present
    const row = sql.get(FIND, mac)
    return row === null ? null : decode(row)
  }

  /** What could not be stored is not what readers shall see. */
  const distrust =
    (mac: Mac) =>
    (thrown: unknown): never => {
      unpublished.delete(mac)
      epoch = null
      throw thrown
    }

  // Now rather than at the first contact: a large fleet takes a moment.
  current()

  return {
    find: async (mac) => current().get(mac) ?? null,
    peek: (mac) => current().get(mac) ?? null,
    count: async () => current().size,
    async list() {
      const machines = current()
      return (listed ??= [...machines.values()].toSorted((a, b) => (a.mac < b.mac ? -1 : 1)))
    },
    async update(mac, change) {
      const stored = await database
        .write((sql) => {
          const before = newest(sql, mac)
          const next = change(before)
          if (next === null || next === before) return before
          store(sql, next)
          unpublished.set(mac, next)
          return next
        })
        .catch(distrust(mac))
      publish(mac, stored)
      return stored
    },
    async updateMany(changes) {
      const trees = new Map<Mac, PackedHardware>()
      for (const { mac, hardware } of changes) {
        if (hardware !== null) trees.set(mac, await packHardware(hardware))
      }
      await database
        .write((sql) => {
          for (const { mac, change } of changes) {
            const next = change(newest(sql, mac))
            store(sql, next)
            unpublished.set(mac, next)
            const hardware = trees.get(mac)
            if (hardware !== undefined) saveHardware(sql, mac, hardware)
          }
        })
        .finally(() => {
          for (const { mac } of changes) unpublished.delete(mac)
          epoch = null
        })
    },
    see(mac, sighting) {
      sightings.note(mac, sighting)
      const machine = current().get(mac)
      if (machine !== undefined) publish(mac, machine)
    },
    async remove(mac) {
      const removed = await database
        .write((sql) => {
          removeHardware(sql, mac)
          unpublished.set(mac, null)
          return sql.run('DELETE FROM machines WHERE mac = ?', mac) > 0
        })
        .catch(distrust(mac))
      sightings.forget(mac)
      publish(mac, null)
      return removed
    },
    findHardware: (mac) => findHardware(database.sql, mac),
    async saveHardware(mac, json, at) {
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

const store = (sql: Sql, machine: MachineBase) =>
  sql.run(SAVE, machine.mac, JSON.stringify(machine), machine.last_seen_at, machine.last_seen_ip)

/** Another number after another process has committed. */
const readVersion = (sql: Sql) => sql.get('PRAGMA data_version')?.['data_version']
