/** What a restore changes: which machines come back, go, or become what they were, and which settings. */
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { compareFields, type FieldChanges } from '#fleet/state/rules/event-changes.ts'

export interface MachineDifference {
  readonly mac: string
  /** After the restore if known then; null: only its address is known. */
  readonly name: string | null
  /** `returns`: only the backup knows it; `goes`: the backup does not know it; `changes`: both do. */
  readonly kind: 'returns' | 'goes' | 'changes'
  /** An operator's assignments, now and after; empty unless `changes`. */
  readonly changes: FieldChanges
}

export interface MachineWords<Machine extends MachineBase> {
  nameOf(machine: Machine): string | null
  describe(machine: Machine): Readonly<Record<string, unknown>>
}

const ORDER = { returns: 1, goes: 0, changes: 2 } as const

/** Machines that go come first, then returning, then changed ones, each by address. */
export function compareFleets<Machine extends MachineBase>(
  present: Iterable<Machine>,
  restored: Iterable<Machine>,
  { nameOf, describe }: MachineWords<Machine>,
): readonly MachineDifference[] {
  const rest = new Map([...present].map((machine) => [String(machine.mac), machine]))
  const found: MachineDifference[] = []
  for (const machine of restored) {
    const { mac } = machine
    const name = nameOf(machine)
    const before = rest.get(mac)
    rest.delete(mac)
    if (before === undefined) {
      found.push({ mac, name, kind: 'returns', changes: {} })
      continue
    }
    const changes = compareFields(describe(before), describe(machine))
    if (Object.keys(changes).length > 0) found.push({ mac, name, kind: 'changes', changes })
  }
  for (const machine of rest.values()) {
    found.push({ mac: machine.mac, name: nameOf(machine), kind: 'goes', changes: {} })
  }
  return found.toSorted((a, b) => ORDER[a.kind] - ORDER[b.kind] || (a.mac < b.mac ? -1 : 1))
}

export function listChangedNames(
  present: ReadonlyMap<string, string>,
  restored: ReadonlyMap<string, string>,
): readonly string[] {
  const names = new Set([...present.keys(), ...restored.keys()])
  return [...names].filter((name) => present.get(name) !== restored.get(name)).toSorted()
}
