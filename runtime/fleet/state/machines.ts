/** The fleet's records: one JSON document per machine, by MAC. */
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import type { Database } from './database.ts'
import {
  findHardware,
  packHardware,
  removeHardware,
  saveHardware,
  type HardwareTree,
  type PackedHardware,
} from './hardware-trees.ts'
import { readText, readTextOrNull, type Row, type Sql } from './sqlite.ts'
import { createLaggedWrites } from './commits.ts'

type RecordChange<Machine> = (before: Machine | null) => Machine | null

interface MachineChange<Machine> {
  readonly mac: Mac
  change(before: Machine | null): Machine
  /** Null: what is there stays. */
  readonly hardware: HardwareTree | null
}

export type Machines<Machine extends MachineBase> = ReturnType<typeof createMachines<Machine>>

interface MachinesOptions<Machine> {
  parseRecord(stored: unknown): Machine | null
  /** Gets the MAC of each unreadable record; such records stay. */
  onUnreadable?(mac: string): void
  /** Milliseconds of a steady clock. */
  elapsed?(): number
}

/**
 * The whole fleet is in memory (some 4 KiB a machine); the database is written through. Changes of
 * one moment share a transaction and one wait for the disk; each builds on the one before.
 */
export function createMachines<Machine extends MachineBase>(
  database: Database,
  { parseRecord, onUnreadable, elapsed = () => performance.now() }: MachinesOptions<Machine>,
) {
  const sightings = createMachineSightings(database, elapsed)
  const cache = createRecordCache(database, decode, sightings.merge)
  const pending = new Map<Mac, Pending<Machine>>()

  function decode(row: Row): MachineEntry<Machine> | null {
    const text = readText(row, 'record')
    const machine = parseRecord(parseJson(text))
    if (machine === null) {
      onUnreadable?.(readText(row, 'mac'))
      return null
    }
    const last_seen_at = readTextOrNull(row, 'last_seen_at')
    const last_seen_ip = readTextOrNull(row, 'last_seen_ip')
    return { machine: sightings.merge({ ...machine, last_seen_at, last_seen_ip }), text }
  }

  const peek = (mac: Mac): Machine | null => cache.current().get(mac)?.machine ?? null

  function newestEntry(mac: Mac): MachineEntry<Machine> | null {
    const onItsWay = pending.get(mac)
    return onItsWay === undefined ? (cache.current().get(mac) ?? null) : onItsWay.entry
  }

  const newest = (mac: Mac): Machine | null => newestEntry(mac)?.machine ?? null

  function track(mac: Mac, entry: MachineEntry<Machine> | null, work: Promise<boolean>) {
    const done = work.finally(() => {
      if (pending.get(mac) === mine) pending.delete(mac)
    })
    const mine = { entry, done }
    pending.set(mac, mine)
    return done
  }

  /** True once `next` is on disk; false: `before` was no longer stored. */
  async function replace(
    mac: Mac,
    before: MachineEntry<Machine> | null,
    next: MachineEntry<Machine>,
  ): Promise<boolean> {
    let epoch = 0
    try {
      const isStored = await database.write((sql) => {
        epoch = database.epoch()
        const row = sql.get(FIND, mac)
        // An unreadable record counts as none.
        const isStill =
          before === null
            ? row === null || decode(row) === null
            : row !== null && readText(row, 'record') === before.text
        if (isStill) save(sql, next, before?.machine ?? null)
        return isStill
      })
      // Another process's write since then is newer than ours.
      if (isStored && database.epoch() === epoch) cache.publish(mac, next)
      else cache.forget()
      return isStored
    } catch (thrown) {
      return cache.distrust(thrown)
    }
  }

  function save(sql: Sql, next: MachineEntry<Machine>, before: Machine | null): void {
    const { mac, last_seen_at, last_seen_ip } = next.machine
    database.countChange()
    sql.run(SAVE, mac, next.text, last_seen_at, last_seen_ip)
    sightings.outdate(before, next.machine)
  }

  return {
    find: async (mac: Mac): Promise<Machine | null> => peek(mac),
    /** As stored, from memory: everybody may see it. */
    peek,
    count: async (): Promise<number> => cache.current().size,
    /** By MAC; the same array while nothing changed. */
    list: async (): Promise<readonly Machine[]> => cache.list(),
    peekAll: (): readonly Machine[] => cache.list(),
    /**
     * The base of the next decision, from memory: it includes a change on its way to the disk.
     * Whatever follows from the decision waits for `commit`, even if it changes nothing.
     */
    newest,
    isChanging: (mac: Mac): boolean => pending.has(mac),
    /**
     * Replaces `before`, the answer of `newest` (null: no record), by `after` (null: no change).
     * True once it is on disk, as is an unchanged `before`: without a promise if it is there
     * already and no other server may decide. False: another change came first; find, decide and
     * commit again. Throws if the disk does.
     */
    commit(mac: Mac, before: Machine | null, after: Machine | null): MaybePromise<boolean> {
      const known = newestEntry(mac)
      if ((known?.machine ?? null) !== before) return false
      // A record that could not be stored was no base for a decision.
      if (after === before || after === null)
        return pending.get(mac)?.done.catch(isRaced) ?? database.confirm()
      const entry = { machine: after, text: JSON.stringify(after) }
      return track(mac, entry, replace(mac, known, entry))
    },
    /** Commits `change` of the newest record (null: none), until no other change comes first. */
    async update(mac: Mac, change: RecordChange<Machine>): Promise<Machine | null> {
      for (;;) {
        const before = newest(mac)
        const after = change(before) ?? before
        if (await this.commit(mac, before, after)) return after
      }
    },
    /** All or nothing, in one transaction. */
    async updateMany(changes: readonly MachineChange<Machine>[]): Promise<void> {
      const trees = new Map<Mac, PackedHardware>()
      for (const { mac, hardware } of changes) {
        if (hardware !== null) trees.set(mac, await packHardware(hardware))
      }
      const store = (sql: Sql) => {
        for (const { mac, change } of changes) {
          // The row is the truth: another process may have written it.
          const row = sql.get(FIND, mac)
          const before = row === null ? null : (decode(row)?.machine ?? null)
          const machine = change(before)
          // An unchanged record is not rewritten: its row stays the same to the last letter.
          if (machine !== before) save(sql, { machine, text: JSON.stringify(machine) }, before)
        }
        for (const [mac, tree] of trees) saveHardware(sql, mac, tree)
      }
      await database.write(store).finally(cache.forget)
    },
    /** Readers see it at once; on disk within a second. */
    see(mac: Mac, sighting: Sighting): void {
      sightings.note(mac, sighting)
      cache.see(mac)
      const entry = pending.get(mac)?.entry
      if (entry) entry.machine = sightings.merge(entry.machine)
    },
    silenceOf: sightings.silenceOf,
    /** With its hardware, even if its record is unreadable. False: no such machine. */
    async remove(mac: Mac): Promise<boolean> {
      const removing = database.write((sql) => {
        removeHardware(sql, mac)
        database.countChange()
        return sql.run('DELETE FROM machines WHERE mac = ?', mac) > 0
      })
      const removed = removing.then(() => cache.publish(mac, null), cache.distrust)
      await track(mac, null, removed.then(isRemoved))
      sightings.forget(mac)
      return await removing
    },
    findHardware: (mac: Mac): Promise<HardwareTree | null> => findHardware(database.sql, mac),
    async saveHardware(mac: Mac, json: string | Uint8Array, at: string): Promise<void> {
      const packed = await packHardware({ json, at })
      await database.write((sql) => saveHardware(sql, mac, packed))
    },
  }
}

/** On its way to the disk: a record, or its removal (null). */
interface Pending<Machine> {
  readonly entry: MachineEntry<Machine> | null
  /** False: another change came first, nothing was stored. */
  readonly done: Promise<boolean>
}

const isRaced = () => false
const isRemoved = () => true

interface MachineEntry<Machine> {
  machine: Machine
  /** As stored: an equal row need not be parsed. */
  readonly text: string
}

const COLUMNS = 'mac, record, last_seen_at, last_seen_ip'
const FIND = `SELECT ${COLUMNS} FROM machines WHERE mac = ?`
const SAVE = `INSERT INTO machines (${COLUMNS}) VALUES (?, ?, ?, ?)
  ON CONFLICT (mac) DO UPDATE SET record = excluded.record,
  last_seen_at = excluded.last_seen_at, last_seen_ip = excluded.last_seen_ip`

/** What is stored, in memory. */
function createRecordCache<Machine extends MachineBase>(
  database: Database,
  decode: (row: Row) => MachineEntry<Machine> | null,
  merge: (machine: Machine) => Machine,
) {
  const entries = new Map<Mac, MachineEntry<Machine>>()
  let listed: readonly Machine[] | null = null
  let epoch: number | null = null

  const current = () => {
    const present = database.epoch()
    if (present === epoch) return entries
    entries.clear()
    listed = null
    for (const row of database.sql.all(`SELECT ${COLUMNS} FROM machines`)) {
      const entry = decode(row)
      if (entry !== null) entries.set(entry.machine.mac, entry)
    }
    epoch = present
    return entries
  }
  const forget = () => void (epoch = null)
  // Now rather than at the first contact: a large fleet takes a moment.
  current()
  return {
    current,
    list(): readonly Machine[] {
      current()
      return (listed ??= [...entries.values()].map(({ machine }) => machine).toSorted(byMac))
    },
    publish(mac: Mac, stored: MachineEntry<Machine> | null) {
      listed = null
      if (stored === null) entries.delete(mac)
      else entries.set(mac, { machine: merge(stored.machine), text: stored.text })
    },
    see(mac: Mac) {
      const entry = current().get(mac)
      if (entry === undefined) return
      listed = null
      entry.machine = merge(entry.machine)
    },
    forget,
    /** Readers must not see what could not be stored. */
    distrust(thrown: unknown): never {
      forget()
      throw thrown
    },
  }
}

const byMac = (a: MachineBase, b: MachineBase) => (a.mac < b.mac ? -1 : 1)

/** Methods that change machines are passed through. */
export function createSeenMachines<M extends MachineBase>(
  machines: Machines<M>,
  canSee: (machine: M) => boolean,
): Machines<M> {
  const only = (machine: M | null): M | null =>
    machine !== null && canSee(machine) ? machine : null
  let [all, seen]: [readonly M[], readonly M[]] = [[], []]
  /** The same array while nothing changed, as for the whole list. */
  const peekAll = (): readonly M[] => {
    const present = machines.peekAll()
    if (present !== all) [all, seen] = [present, present.filter(canSee)]
    return seen
  }
  const peek = (mac: Mac) => only(machines.peek(mac))
  return {
    ...machines,
    peek,
    peekAll,
    find: async (mac) => peek(mac),
    newest: (mac) => only(machines.newest(mac)),
    list: async () => peekAll(),
    count: async () => peekAll().length,
    findHardware: async (mac) => (peek(mac) === null ? null : await machines.findHardware(mac)),
  }
}

// Records when and from where each machine was last seen: in memory at once, on disk within a second.

interface Sighting {
  /** ISO time. */
  readonly at: string
  readonly ip: string
}

/** A storm of contacts costs two small writes a second. */
const LAG_MS = 500

/** `elapsed`: milliseconds of a steady clock. */
function createMachineSightings(database: Database, elapsed: () => number) {
  const seenAt = new Map<Mac, number>()
  const waiting = createLaggedWrites<Mac, Sighting>(LAG_MS, (batch) =>
    database.see(batch.map(([mac, { at, ip }]) => ({ mac, at, ip }))),
  )
  database.beforeClosing(waiting.flush)

  return {
    note(mac: Mac, sighting: Sighting): void {
      seenAt.set(mac, elapsed())
      waiting.note(mac, sighting)
    },
    forget(mac: Mac): void {
      seenAt.delete(mac)
      waiting.forget(mac)
    },
    /** Milliseconds; null: not seen by this process. */
    silenceOf(mac: Mac): number | null {
      const at = seenAt.get(mac)
      return at === undefined ? null : elapsed() - at
    },
    merge<Machine extends MachineBase>(machine: Machine): Machine {
      const seen = waiting.find(machine.mac)
      if (seen === undefined) return machine
      return { ...machine, last_seen_at: seen.at, last_seen_ip: seen.ip }
    },
    /** A record with its own sighting is newer than what waits. */
    outdate<Machine extends MachineBase>(before: Machine | null, next: Machine): void {
      if (next.last_seen_at !== (before?.last_seen_at ?? null)) waiting.forget(next.mac)
    },
  }
}
