/** Records when and from where each machine was last seen: in memory at once, on disk within a second. */
import type { Mac } from '#kit/net/rules/mac.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { createLaggedWrites } from '#kit/host/lagged-writes.ts'
import type { Database } from './database.ts'

export interface Sighting {
  /** ISO time. */
  readonly at: string
  readonly ip: string
}

/** A storm of contacts costs two small writes a second. */
const LAG_MS = 500

/** `elapsed`: milliseconds of a steady clock. */
export function createMachineSightings(database: Database, elapsed: () => number) {
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
