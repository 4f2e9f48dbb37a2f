import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { runIdOf } from '#test/support/server/runs.ts'
import {
  createStateFolder,
  macOf,
  RELEASE,
  type StateServices,
} from '#test/support/server/state.ts'

const test = suite('runs and kill -9')
const WRITER = join(import.meta.dirname, '../../support/server/run-writer.ts')

/** What it said until it was killed, `ms` after the `done`th run was (0: after it had opened the state). */
async function runUntilKilled(
  path: string,
  { first = 0, done = 0, ms = 0 },
): Promise<readonly string[]> {
  const child = spawn(process.execPath, [WRITER, path, RELEASE, String(first)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const said: string[] = []
    let ended = 0
    for await (const line of createInterface(child.stdout)) {
      said.push(line)
      if (line.startsWith('done ')) ended += 1
      else if (line !== 'open') continue
      if (ended === done) void sleep(ms).then(() => child.kill('SIGKILL'))
    }
    return said
  } finally {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
}

test('every phase that was acknowledged is there, and every end with its last figures', async () => {
  await using folder = await createStateFolder()
  const newest = new Map<number, string>()
  const random = createSeededRandom(4)
  for (let round = 0; round < KILLS; round += 1) {
    const first = Math.max(0, ...newest.keys()) + 100
    // The first time it has hardly begun.
    const kill = { first, done: round === 0 ? 0 : 20, ms: random() * 100 }
    for (const line of await runUntilKilled(folder.path, kill)) {
      const [phase = '', n] = line.split(' ')
      if (n !== undefined) newest.set(Number(n), phase)
    }
    await using state = await folder.open()
    assert.is(state.database.sql.get('PRAGMA integrity_check')?.['integrity_check'], 'ok')
    for (const [n, phase] of newest) check(state, n, phase)
  }
  assert.ok([...newest.values()].filter((phase) => phase === 'done').length > 50, 'few were done')
})

function check({ runs }: StateServices, n: number, phase: string): void {
  const run = runs.find(macOf(n), runIdOf(n))
  const reached = run?.steps.map((step) => step.phase) ?? []
  assert.ok(reached.includes(toPhase(phase)), `run ${n}: ${phase} was lost, ${reached.join()}`)
  if (phase !== 'done') return
  assert.equal([run?.result, run?.bytes_written], ['done', n + 3])
  assert.is(runs.findRunning(macOf(n)), null)
}

const PHASES = ['started', 'write', 'verify', 'done'] as const
const toPhase = (said: string) => PHASES.find((phase) => phase === said) ?? 'started'

test.run()
