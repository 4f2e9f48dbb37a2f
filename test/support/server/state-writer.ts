/** Started as a program by tests that kill it: writes without end, and says on descriptor 1 what was acknowledged. */
import { writeSync } from 'node:fs'
import { createDatabase } from '#fleet/state/database.ts'
import { createJournal } from '#fleet/state/journal.ts'
import { createMachines } from '#fleet/state/machines.ts'
import { parseRecord, type Machine } from '#server/current/machines/rules/machine.ts'
import { machineOf, macOf, noteOf } from './state.ts'

const [path = '', release = '', first = '0'] = process.argv.slice(2)
writeSync(1, 'begun\n')
const database = await createDatabase({ path, release, line: 'current' })
const machines = createMachines<Machine>(database, { parseRecord })
const journal = createJournal(database)
writeSync(1, 'open\n')

let next = Number(first)
const LANES = 8

async function write(): Promise<never> {
  for (;;) {
    const n = next
    next += 1
    const mac = macOf(n % 64)
    await machines.update(mac, (before) => ({
      ...(before ?? machineOf(n % 64)),
      labels: [...(before?.labels ?? []), String(n)].slice(-16),
    }))
    writeSync(1, `machine ${n}\n`)
    machines.see(mac, { at: new Date().toISOString(), ip: '192.0.2.1' })
    await journal.record(noteOf({ summary: `event ${n}`, details: { x: 'y'.repeat(n % 4000) } }))
    writeSync(1, `event ${n}\n`)
  }
}

await Promise.all(Array.from({ length: LANES }, write))
