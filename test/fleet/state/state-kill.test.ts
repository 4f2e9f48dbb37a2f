import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { runIdOf } from '#test/support/server/runs.ts'
import {
  AT,
  createStateFolder,
  faultOf,
  machineOf,
  macOf,
  RELEASE,
  type StateServices,
} from '#test/support/server/state.ts'

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

const RUN_WRITER = join(import.meta.dirname, '../../support/server/run-writer.ts')

/** What it said until it was killed, `ms` after the `done`th run was (0: after it had opened the state). */
async function runWriterUntilKilled(
  path: string,
  { first = 0, done = 0, ms = 0 },
): Promise<readonly string[]> {
  const child = spawn(process.execPath, [RUN_WRITER, path, RELEASE, String(first)], {
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
    for (const line of await runWriterUntilKilled(folder.path, kill)) {
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

/** How many machines a copy of the one file holds. */
async function countInCopy(path: string): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-copy-'))
  try {
    await copyFile(path, join(folder, 'state.db'))
    using copy = new DatabaseSync(join(folder, 'state.db'), { readOnly: true })
    return Number(copy.prepare('SELECT count(*) AS n FROM machines').get()?.['n'])
  } finally {
    await rm(folder, { recursive: true })
  }
}

test('a copy of it alone is whole once the server was quiet for a moment', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  for (let n = 1; n <= 40; n += 1) await state.machines.update(macOf(n), () => machineOf(n))
  assert.is(await countInCopy(folder.path), 0)
  const until = performance.now() + 30_000
  while ((await countInCopy(folder.path)) < 40 && performance.now() < until) await sleep(200)
  assert.is(await countInCopy(folder.path), 40)
})

test('one without tables, like a copy of an earlier release, is put aside with an event', async () => {
  await using folder = await createStateFolder()
  {
    using bare = new DatabaseSync(folder.path)
    bare.exec('PRAGMA journal_mode = WAL')
  }
  assert.is((await stat(folder.path)).size, 4096)
  await using state = await folder.open()
  const [event, ...more] = await state.journal.list({ limit: 5 })
  assert.is(event?.kind, 'system.schema.reset')
  assert.match(event?.summary ?? '', /^state\.db had no tables, .*state\.db-wal.*moved to/)
  assert.equal(more, [])
  assert.equal(state.database.reset?.from_version, 'pre-versioning')
  assert.ok((await readdir(folder.dir)).includes(state.database.reset?.archived_at ?? '-'))
})

test('what was written ahead of a file that was moved away is kept, and read by no other', async () => {
  await using folder = await createStateFolder()
  const ahead = join(folder.dir, 'ahead')
  {
    await using state = await folder.open()
    await state.machines.update(macOf(1), () => machineOf(1))
    await copyFile(`${folder.path}-wal`, ahead)
  }
  await rm(folder.path)
  await rename(ahead, `${folder.path}-wal`)
  await using state = await folder.open()
  assert.is(await state.machines.count(), 0)
  const kept = (await readdir(folder.dir)).filter((name) => name.startsWith('state.db-wal.lost.'))
  assert.is(kept.length, 1)
})

test('while another program has it open it is not replaced, and goes on', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  await state.machines.update(macOf(1), () => machineOf(1))
  const other = join(folder.dir, 'other.db')
  await state.database.copyTo(other)
  const script = `const { DatabaseSync } = require('node:sqlite')
    const file = new DatabaseSync(process.argv[1])
    file.prepare('SELECT count(*) FROM machines').get()
    console.log('open')
    setTimeout(() => {}, 60000)`
  const program = spawn(process.execPath, ['-e', script, folder.path], { stdio: 'pipe' })
  try {
    await once(program.stdout, 'data')
    const fault = await faultOf(state.database.replaceWith(other))
    assert.is(fault.code, 'busy')
    assert.match(
      fault.message,
      new RegExp(`^process ${program.pid} \\(.*\\) has .*state\\.db open$`),
    )
    await state.machines.update(macOf(2), () => machineOf(2))
    assert.is(await state.machines.count(), 2)
  } finally {
    program.kill()
    await once(program, 'close')
  }
  await state.database.replaceWith(other)
  assert.is(await state.machines.count(), 1)
})

test('a damaged one is replaced by a database that is whole, and stays as it was otherwise', async () => {
  await using folder = await createStateFolder()
  const other = join(folder.dir, 'other.db')
  {
    await using state = await folder.open()
    await state.machines.update(macOf(1), () => machineOf(1))
    await state.database.copyTo(other)
  }
  const damaged = Buffer.alloc(8192, 'no database at all')
  await writeFile(folder.path, damaged)
  await writeFile(`${folder.path}-wal`, 'of the damaged one')
  assert.match((await faultOf(folder.open())).message, /damaged or not a database/)
  {
    await using state = await folder.open({ replacesDamaged: true })
    assert.ok(state.database.isStandIn())
    const broken = join(folder.dir, 'broken.db')
    await writeFile(broken, damaged)
    await faultOf(state.database.replaceWith(broken))
  }
  assert.equal(await readFile(folder.path), damaged)
  assert.equal(
    (await readdir(folder.dir)).filter((name) => name.includes('stand-in')),
    [],
  )
  {
    await using state = await folder.open({ replacesDamaged: true })
    const archive = await state.database.replaceWith(other)
    assert.match(archive, /^state\.db\.damaged\./)
    assert.not(state.database.isStandIn())
    assert.is(await state.machines.count(), 1)
    assert.equal(await readFile(join(folder.dir, archive)), damaged)
  }
  await using state = await folder.open()
  assert.is(await state.machines.count(), 1)
})

test.run()
