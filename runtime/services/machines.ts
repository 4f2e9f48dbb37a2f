/** The fleet's records: one JSON document a machine, kept by MAC. */
import type { Mac } from '../core/mac.ts'
import type { MachineBase } from '../core/machine.ts'

export interface Sighting {
  /** ISO time. */
  readonly at: string
  readonly ip: string
}

export interface Machines<Machine extends MachineBase> {
  find(mac: Mac): Promise<Machine | null>
  /** All of them, by MAC. */
  list(): Promise<readonly Machine[]>
  count(): Promise<number>
  /**
   * Reads a record, lets `change` make the next one (null: leave it), and stores it, with nothing in
   * between; returns what is stored now. On disk before it resolves. `before` has the newest
   * sighting merged in.
   */
  update(mac: Mac, change: (before: Machine | null) => Machine | null): Promise<Machine | null>
  /** Notes `last_seen_at` and `last_seen_ip`: seen by every reader at once, on disk within a second. */
  see(mac: Mac, sighting: Sighting): void
  /** False when there was none. */
  remove(mac: Mac): Promise<boolean>
  /** The hardware tree as JSON text (`lshw -json`), and when it was posted. */
  findHardware(mac: Mac): Promise<{ readonly json: string; readonly at: string } | null>
  saveHardware(mac: Mac, json: string, at: string): Promise<void>
}
