/** Takes the orders out of a database whose machines may have carried them out since (docs/decisions/0032). */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { silence } from '#fleet/notify/messages.ts'
import { readText, type Sql } from '#fleet/state/sqlite.ts'
import type { MachineWords } from './rules/backup.ts'

export interface OrderRules<Machine extends MachineBase> extends MachineWords<Machine> {
  parseRecord(stored: unknown): Machine | null
  /** The same object if there is no order. */
  disarm(machine: Machine, now: string): Machine
  /**
   * The record to store if, by `present`, the disk may be half written; null: `restored` stays.
   * `restored` null: that state has no such machine.
   */
  keepHeldBack(restored: Machine | null, present: Machine, now: string): Machine | null
}

/** It was to be flashed or captured, or its disk may be half written. */
export interface DisarmedMachine {
  readonly mac: string
  readonly name: string | null
}

const ListSchema = z.object({
  disarmed: z.array(z.object({ mac: z.string(), name: z.string().nullable() })),
})

export const parseDisarmed = (details: unknown): readonly DisarmedMachine[] =>
  ListSchema.safeParse(details).data?.disarmed ?? []

/** Skips unreadable records: they arm nothing. */
export function* readRecords<Machine extends MachineBase>(
  sql: Sql,
  { parseRecord }: Pick<OrderRules<Machine>, 'parseRecord'>,
): Generator<Machine> {
  for (const row of sql.all('SELECT record FROM machines ORDER BY mac')) {
    const machine = parseRecord(parseJson(readText(row, 'record')))
    if (machine !== null) yield machine
  }
}

export const listArmed = <Machine extends MachineBase>(
  sql: Sql,
  rules: OrderRules<Machine>,
  now: string,
): readonly DisarmedMachine[] =>
  [...readRecords(sql, rules)]
    .filter((machine) => rules.disarm(machine, now) !== machine)
    .map((machine) => ({ mac: machine.mac, name: rules.nameOf(machine) }))

/**
 * Removes all orders and pending deliveries in the caller's transaction; `now` is ISO 8601.
 * `present`: the machines before this database took over. Returns the changed ones, by address.
 */
export function disarmAll<Machine extends MachineBase>(
  sql: Sql,
  rules: OrderRules<Machine>,
  now: string,
  present: Iterable<Machine> = [],
): readonly DisarmedMachine[] {
  const restored = new Map([...readRecords(sql, rules)].map((machine) => [machine.mac, machine]))
  const changed = new Map<string, Machine>()
  for (const machine of restored.values()) {
    const disarmed = rules.disarm(machine, now)
    if (disarmed !== machine) changed.set(machine.mac, disarmed)
  }
  for (const machine of present) {
    const before = changed.get(machine.mac) ?? restored.get(machine.mac) ?? null
    const held = rules.keepHeldBack(before, machine, now)
    if (held !== null) changed.set(machine.mac, held)
  }
  for (const machine of changed.values()) store(sql, machine)
  silence(sql)
  return [...changed.values()]
    .map((machine) => ({ mac: machine.mac, name: rules.nameOf(machine) }))
    .toSorted((a, b) => (a.mac < b.mac ? -1 : 1))
}

const STORE = `INSERT INTO machines (mac, record, last_seen_at, last_seen_ip) VALUES (?, ?, ?, ?)
  ON CONFLICT (mac) DO UPDATE SET record = excluded.record`

const store = (sql: Sql, machine: MachineBase) =>
  sql.run(STORE, machine.mac, JSON.stringify(machine), machine.last_seen_at, machine.last_seen_ip)

export const nameDisarmed = ({ mac, name }: DisarmedMachine): string =>
  name === null ? mac : `${printable(name)} (${mac})`

/** A sentence for an event, whose details have all machines; empty if there are none. */
export function renderDisarmed(machines: readonly DisarmedMachine[]): string {
  if (machines.length === 0) return ''
  const named = machines.slice(0, MAX_NAMED).map(nameDisarmed)
  const more = machines.length - named.length
  const list = more > 0 ? `${named.join(', ')} and ${more} more` : named.join(', ')
  return `Disarmed; arm them again when you are ready: ${list}.`
}

const MAX_NAMED = 20
