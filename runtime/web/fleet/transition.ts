/** A machine's record before and after one request, and what is put on record of it. */
import type { Note } from '../http/event-note.ts'
import type { InventoryDisk } from '../../core/machine/machine.ts'

/** What a rule may know of one request of a machine (or of an operator, where it renders a script). */
export interface Contact {
  /** ISO time. */
  readonly now: string
  /** `http://host:port`, checked: it goes into scripts and kernel command lines. */
  readonly baseUrl: string
  readonly ip: string | null
  /** What it shows as `Authorization: Bearer`: hostile, bounded in length. */
  readonly bearer: string | null
  /** What the box says of itself in the query (`buildarch`, `platform`…): hostile, bounded in length. */
  readonly query: Readonly<Record<string, string>>
}

/** A record after something happened to it. The same object as before: nothing to store. */
export interface Transition<M> {
  readonly machine: M
  readonly notes: readonly Note[]
}

export interface ScriptTransition<M> extends Transition<M> {
  /** The whole iPXE script. */
  readonly script: string
  /** Which offer it is, from a short closed list: a metric's label. */
  readonly offer: string
}

export interface PlanTransition<M> extends Transition<M> {
  /** As it is answered. */
  readonly plan: Readonly<Record<string, unknown>>
  readonly mode: string
}

/** Body of `POST /pxe/{mac}/inventory`, checked. */
export interface Inventory {
  readonly disks: readonly InventoryDisk[]
  /** The hardware tree as JSON text; null: absent, or over the limit. */
  readonly hardware: string | null
}

/** What a machine comes for: to be told what to do, to list its disks, to begin a run, to tell of one. */
export type MachineRequest = 'plan' | 'inventory' | 'begin' | 'report'
