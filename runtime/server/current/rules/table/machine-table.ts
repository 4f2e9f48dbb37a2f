/** The columns of machines as CSV, of which names and labels can be read back. */
import { renderCsvRow, type Cell } from '#kit/foundation/csv.ts'
import { renderIdentity } from './identity.ts'
import type { Machine } from '../machine.ts'

interface TabledMachine {
  readonly machine: Machine
  /** Of the machine itself; null: not reported. */
  readonly serial: string | null
  readonly image: string | null
  readonly state: string
}

const FACTS = {
  serial: ({ serial }) => serial,
  image: ({ image }) => image,
  disk: ({ machine }) => machine.target_disk_serial,
  mode: ({ machine }) => machine.boot_mode,
  state: ({ state }) => state,
} as const satisfies Readonly<Record<string, (facts: TabledMachine) => Cell>>

export const MACHINES_CSV_HEAD = renderCsvRow([
  'mac',
  'name',
  'labels',
  'rack',
  'slot',
  ...Object.keys(FACTS),
])

export function renderMachineCsv(facts: TabledMachine): string {
  const { name, labels, rack, slot } = renderIdentity(facts.machine)
  const others = Object.values(FACTS).map((read) => read(facts))
  return renderCsvRow([facts.machine.mac, name, labels, rack, slot, ...others])
}
