/** Takes the orders out of a database whose machines may have carried them out since (docs/decisions/0032). */
import { z } from 'zod'
import { parseJson } from '../../kit/foundation/json-reader.ts'
import { printable } from '../../kit/foundation/printable.ts'
import type { MachineBase } from '../../engine/inventory/rules/machine.ts'
import { silence } from '../notify/messages.ts'
import { readText, type Sql } from '../state/sqlite.ts'
import type { MachineWords } from './rules/differences.ts'

/** What a release line says of orders; pure. */
export interface OrderRules<Machine extends MachineBase> extends MachineWords<Machine> {
  parseRecord(stored: unknown): Machine | null
  /** The very same record where there is no order. */
  disarm(machine: Machine, now: string): Machine
  /**
   * What is stored of a machine of a restored state (null: it has none) whose disk may be half written
   * by what is known now; null: what is restored stays.
   */
  keepHeldBack(restored: Machine | null, present: Machine, now: string): Machine | null
}

/** A machine that was to be flashed or captured, or whose disk may be half written. */
export interface DisarmedMachine {
  readonly mac: string
  readonly name: string | null
}

const ListSchema = z.object({
  disarmed: z.array(z.object({ mac: z.string(), name: z.string().nullable() })),
})

/**
 * Reads the disarmed machines from the details of an event; the list is empty where it names none.
 */
export const parseDisarmed = (details: unknown): readonly DisarmedMachine[] =>
  ListSchema.safeParse(details).data?.disarmed ?? []

/** Reads every record; those that cannot be read arm nothing. */
export function* readRecords<Machine extends MachineBase>(
  sql: Sql,
  { parseRecord }: Pick<OrderRules<Machine>, 'parseRecord'>,
): Generator<Machine> {
  for (const row of sql.all('SELECT record FROM machines ORDER BY mac')) {
    const machine = parseRecord(parseJson(readText(row, 'record')))
    if (machine !== null) yield machine
  }
}

/** Those that `disarmAll` would disarm. */
export const listArmed = <Machine extends MachineBase>(
  sql: Sql,
  rules: OrderRules<Machine>,
  now: string,
): readonly DisarmedMachine[] =>
  [...readRecords(sql, rules)]
    .filter((machine) => rules.disarm(machine, now) !== machine)
    .map((machine) => ({ mac: machine.mac, name: rules.nameOf(machine) }))

/**
 * Takes the orders out of all machines, and what waits to be sent, as a part of the caller's transaction at `now` (ISO 8601).
 * `present` holds the machines as they were before this database took its place. Returns those that
 * were changed, by address.
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

/** Names a machine for people: `rack-1 (aa:bb:cc:dd:ee:ff)`. Both parts come from a stored record. */
export const nameDisarmed = ({ mac, name }: DisarmedMachine): string =>
  name === null ? mac : `${printable(name)} (${mac})`

/**
 * Renders a sentence for an event, which has all of the machines in its details; empty where there
 * are none.
 */
export function renderDisarmed(machines: readonly DisarmedMachine[]): string {
  if (machines.length === 0) return ''
  const named = machines.slice(0, MAX_NAMED).map(nameDisarmed)
  const more = machines.length - named.length
  const list = more > 0 ? `${named.join(', ')} and ${more} more` : named.join(', ')
  return `Disarmed until an operator chooses Flash again: ${list}.`
}

const MAX_NAMED = 20
