import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { AT, createStateFolder, machineOf, macOf, RELEASE } from '#test/support/server/state.ts'

const test = suite('state and kill -9')
const WRITER = join(import.meta.dirname, '../../support/server/state-writer.ts')

interface Kill {
  readonly release?: string
  /** The number that the writer begins with. */
  readonly first: number
  readonly after?: string
  readonly times?: number
  readonly ms: number
}

/** Runs the writer until it is killed `ms` after it said that for the `times`th time; what it said by then. */
async function runUntilKilled(
  path: string,
  { release = RELEASE, first, after = 'open', times = 1, ms }: Kill,
): Promise<readonly string[]> {
  const child = spawn(process.execPath, [WRITER, path, release, String(first)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  try {
    const said: string[] = []
    let left = times
    for await (const line of createInterface(child.stdout)) {
      said.push(line)
      if (line.startsWith(after) && (left -= 1) === 0)
        void sleep(ms).then(() => child.kill('SIGKILL'))
    }
    return said
  } finally {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
}

const numbersOf = (said: readonly string[], what: string) =>
  said.flatMap((line) => (line.startsWith(`${what} `) ? [Number(line.slice(what.length + 1))] : []))

test('nothing that was acknowledged is lost, however often it is killed', async () => {
  await using folder = await createStateFolder()
  const events = new Set<number>()
  const newest = new Map<number, number>()
  let first = 0
  const random = createSeededRandom(1)
  for (let round = 0; round < KILLS; round += 1) {
    // The first time it has hardly begun.
    const moment = round === 0 ? {} : { after: 'event', times: 50 }
    const said = await runUntilKilled(folder.path, { first, ...moment, ms: random() * 100 })
    for (const n of numbersOf(said, 'event')) events.add(n)
    for (const n of numbersOf(said, 'machine')) newest.set(n % 64, n)
    first = Math.max(first, ...events, ...newest.values()) + 100
    await using state = await folder.open()
    assert.is(state.database.sql.get('PRAGMA integrity_check')?.['integrity_check'], 'ok')
    const stored = new Set(
      state.database.sql
        .all('SELECT summary FROM events')
        .map((row) => Number(String(row['summary']).slice('event '.length))),
    )
    assert.equal(
      [...events].filter((n) => !stored.has(n)),
      [],
    )
    for (const [index, n] of newest) {
      const machine = await state.machines.find(macOf(index))
      assert.ok(machine?.labels.includes(String(n)), `machine ${index} lacks ${n}`)
    }
  }
  assert.ok(events.size > 100, `only ${events.size} events were acknowledged`)
})

test('an upgrade that is killed at any moment leaves the old fleet or the new one', async () => {
  await using folder = await createStateFolder()
  {
    await using state = await folder.open()
    await state.machines.updateMany(
      Array.from({ length: 64 }, (_, n) => ({
        mac: macOf(n),
        change: () => ({ ...machineOf(n), labels: ['kept'] }),
        hardware: { json: JSON.stringify({ n, text: 'x'.repeat(20_000) }), at: AT },
      })),
    )
  }
  const random = createSeededRandom(2)
  for (let round = 0; round < KILLS; round += 1) {
    const release = `2.${round}.0`
    const ms = random() * 40
    await runUntilKilled(folder.path, { release, after: 'begun', ms, first: 1_000_000 })
    const file = new DatabaseSync(folder.path)
    const machines = file.prepare('SELECT count(*) AS n FROM machines').get()?.['n']
    const hardware = file.prepare('SELECT count(*) AS n FROM hardware').get()?.['n']
    file.close()
    assert.equal([machines, hardware], [64, 64], `after round ${round}`)
  }
  await using state = await folder.open({ release: '3.0.0' })
  assert.is(await state.machines.count(), 64)
  assert.is(JSON.parse((await state.machines.findHardware(macOf(7)))?.json ?? '{}').n, 7)
})

test.run()
