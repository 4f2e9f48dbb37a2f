/** Waits for first boots, kept with their runs in a real database. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createProofs } from '#fleet/proof/proofs.ts'
import { findRun, saveRun } from '#fleet/run/run-rows.ts'
import { createDatabase } from '#fleet/state/database.ts'
import { createRun, type Run } from '#engine/inventory/rules/run.ts'
import { createChanges } from '#kit/host/changes.ts'
import { MAC } from '#test/support/server/machine-fixture.ts'
import { originOf } from '#test/support/server/runs.ts'

const test = suite('waits for first boots')

const START = Date.parse('2026-11-26T08:00:00.000Z')
const ID = 'run-00000001'
const DONE: Run = {
  ...createRun(ID, originOf(MAC), new Date(START).toISOString()),
  result: 'done',
  phase: 'done',
}

const LATER = { ...DONE, id: 'run-00000002' }
const CALL = '2026-11-26T07:59:00.000Z'

async function open() {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-proofs-'))
  const real = await createDatabase({ path: join(dir, 'state.db'), release: '1', line: 'current' })
  const clock = { ms: 0, isFull: false }
  const database: typeof real = {
    ...real,
    write: (work) => (clock.isFull ? Promise.reject(new Error('no space')) : real.write(work)),
  }
  await real.write((sql) => saveRun(sql, DONE))
  const changes = createChanges()
  const restart = () =>
    createProofs({
      database,
      changes,
      log: console,
      settings: () => ({ enabled: true, limit: 60 }),
      findCall: () => CALL,
      now: () => new Date(START + clock.ms),
      elapsed: () => clock.ms,
      findAnswers: async () => new Map([[MAC, clock.ms > 20_000]]),
    })
  return {
    clock,
    changes,
    restart,
    store: (run: Run) => real.write((sql) => saveRun(sql, run)),
    /** Until what was begun before is on disk, and has been told. */
    settle: async () => {
      await real.write(() => undefined)
      await new Promise(setImmediate)
    },
    stored: (id = ID) => findRun(real.sql, MAC, id)?.run.proof?.state,
    async [Symbol.asyncDispose]() {
      await real[Symbol.asyncDispose]()
      await rm(dir, { recursive: true })
    },
  }
}

test('a wait outlives the server, and ends at its limit once the disk takes it', async () => {
  await using site = await open()
  await site.restart().begin(DONE)
  site.clock.ms = 61_000
  const again = site.restart()
  const ended: string[] = []
  again.onEnd(async ({ proof }) => void ended.push(proof.state))
  site.clock.isFull = true
  await again.sweep().catch(() => undefined)
  assert.equal([site.stored(), ended], ['watching', []])
  site.clock.isFull = false
  await again.sweep()
  await again.sweep()
  assert.equal([site.stored(), ended], ['not-seen', ['not-seen']])
})

test('a network card that falls silent and answers again is seen at the limit', async () => {
  await using site = await open()
  const proofs = site.restart()
  await proofs.begin(DONE)
  await proofs.look()
  site.clock.ms = 30_000
  await proofs.look()
  assert.is(site.stored(), 'watching')
  site.clock.ms = 60_000
  await proofs.sweep()
  assert.is(site.stored(), 'seen')
})

test('the late end of an earlier run is not waited for, and ends no other wait', async () => {
  await using site = await open()
  await site.store(LATER)
  const proofs = site.restart()
  await proofs.begin(LATER)
  await proofs.begin(DONE)
  assert.equal([site.stored(), site.stored(LATER.id)], [undefined, 'watching'])
})

test('two signs at the same time end the wait twice, each with its own word', async () => {
  await using site = await open()
  const proofs = site.restart()
  const ended: string[] = []
  proofs.onEnd(async ({ proof }) => void ended.push(proof.state))
  await proofs.begin(DONE)
  const boot = async () => {
    site.changes.announce({ topic: 'boot', mac: MAC, isToDisk: true })
    await site.settle()
  }
  for (let boots = 0; boots < 2; boots += 1) {
    await boot()
    site.clock.ms += 10_000
  }
  await Promise.all([boot(), proofs.call(MAC, CALL)])
  await site.settle()
  assert.equal([site.stored(), ended], ['booted', ['failed', 'booted']])
})

test('who waits is answered when a backup is restored that knows no such wait', async () => {
  await using site = await open()
  const ordered = { ...DONE, order: 'order-1' }
  await site.store(ordered)
  const proofs = site.restart()
  await proofs.begin(ordered)
  const ended = proofs.awaitEnd(MAC, 'order-1', AbortSignal.timeout(5000))
  await site.store(ordered)
  site.changes.announce({ topic: 'settings' })
  assert.is(await ended, null)
  assert.is(site.stored(), undefined)
})

test.run()
