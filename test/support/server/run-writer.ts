/** Started as a program by tests that kill it: machines flash without end, and what was acknowledged is said on descriptor 1. */
import { writeSync } from 'node:fs'
import { createDatabase } from '#fleet/state/database.ts'
import { createRuns } from '#fleet/run/runs.ts'
import { originOf, postOf, runIdOf } from './runs.ts'
import { macOf } from './state.ts'

const [path = '', release = '', first = '0'] = process.argv.slice(2)
const database = await createDatabase({ path, release, line: 'current' })
const runs = createRuns(database)
writeSync(1, 'open\n')

let next = Number(first)
const LANES = 32
const PHASES = ['started', 'write', 'verify', 'done'] as const

/** Each machine flashes once: one that began again and again would be turned away. */
async function flash(): Promise<never> {
  for (;;) {
    const n = next
    next += 1
    const run = runIdOf(n)
    for (const phase of PHASES) {
      for (const bytes_written of phase === 'write' ? [1, 2, 3] : [n + 3]) {
        const taken = await runs.take(postOf({ run, phase, bytes_written }), originOf(macOf(n)))
        if (!taken.ok) throw new Error(taken.refusal)
      }
      writeSync(1, `${phase} ${n}\n`)
    }
  }
}

await Promise.all(Array.from({ length: LANES }, flash))
