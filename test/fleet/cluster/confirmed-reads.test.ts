/** When a leader may show what is in its memory: at once while the database said so a moment ago, else it asks. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { mkdtempDisposable, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { catchUp } from '#fleet/cluster/joining.ts'
import { openSession, type PgSession } from '#fleet/cluster/postgres.ts'
import { TIMES } from '#fleet/cluster/rules/lease.ts'
import { openSqlite } from '#fleet/state/sqlite.ts'
import { openFreshMember, openMember } from '#test/support/cluster/members.ts'
import { lendDatabases, openWire } from '#test/support/cluster/postgres.ts'
import { SHORT_LEASE } from '#test/support/cluster/times.ts'
import { opened } from '#test/support/opened.ts'
import { askForPostgres, openSlot, type Slot } from '#test/support/runner/slots.ts'
import { createStateFolder, machineOf, macOf } from '#test/support/server/state.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('confirmed reads')
const postgres = lendDatabases(test)

const times = { ...TIMES, ...SHORT_LEASE }

type Member = Awaited<ReturnType<typeof openFreshMember>>

const isSure = ({ database }: Pick<Member, 'database'>) => {
  const confirmed = database.confirmRead()
  if (confirmed instanceof Promise) confirmed.catch(() => undefined)
  return confirmed === true
}

const sureInTheEnd = (member: Member) =>
  waitUntil(
    async () => isSure(member),
    () => 'the leader is sure',
  )

test('a state that stands alone is never asked', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  assert.is(state.database.confirmRead(), true)
})

test('a renewal is enough for a moment; a silent database is not, and a lost session even less', async () => {
  const name = await postgres.create()
  await using wire = await openWire(postgres, name)
  await using leader = await openFreshMember(wire.url, { times })
  await sureInTheEnd(leader)
  wire.hold()
  await waitUntil(
    async () => !isSure(leader),
    () => 'the leader is sure no more',
  )
  const asked = leader.database.confirmRead()
  wire.mend()
  assert.is(await asked, true)
  await sureInTheEnd(leader)
  wire.hold()
  wire.cut()
  await sleep(100)
  assert.is(isSure(leader), false, 'who waits may have its claim by now')
  wire.mend()
  await sureInTheEnd(leader)
})

test('a leader that is silent is not sure at any moment at which another one leads, nor afterwards', async () => {
  const name = await postgres.create()
  await using wire = await openWire(postgres, name)
  await using leader = await openFreshMember(wire.url, { times })
  await leader.machines.commit(macOf(1), null, machineOf(1))
  let [isReplaced, wrong] = [false, 0]
  const watch = setInterval(() => {
    const wasReplaced = isReplaced
    if (isSure(leader) && wasReplaced) wrong += 1
  }, 20)
  wire.hold()
  await using next = await openFreshMember(postgres.urlOf(name), { patience: 'wait', times })
  isReplaced = true
  const known = next.machines.peek(macOf(1))
  await next.machines.commit(macOf(1), known, { ...machineOf(1), name: 'new' })
  wire.mend()
  await waitUntil(
    async () => leader.ended.length > 0,
    () => 'the former leader has ended',
  )
  await sleep(200)
  clearInterval(watch)
  assert.is(wrong, 0)
  assert.match(String(await Promise.resolve(leader.database.confirmRead()).catch(String)), 'leads')
})

/** The fleet made many changes of which no row is left. */
const MANY = `WITH last AS (SELECT seq FROM flasher.lease),
  noted AS (INSERT INTO flasher.change (seq, id, keys)
    SELECT seq + n, 'many-' || n, '{}' FROM last, generate_series(1, 2500) AS n)
  UPDATE flasher.lease SET seq = seq + 2500`

test('thousands of changes are read in parts, and the first and the last of them count', async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using old = await createStateFolder()
  await using folder = await createStateFolder()
  {
    await using member = await openMember(folder, url)
    await member.machines.commit(macOf(1), null, machineOf(1))
  }
  copyFileSync(folder.path, old.path)
  {
    await using member = await openMember(folder, url)
    await member.machines.commit(macOf(2), null, machineOf(2))
  }
  await postgres.query(name, MANY)
  {
    await using member = await openMember(folder, url)
    await member.machines.remove(macOf(1))
    await member.machines.commit(macOf(3), null, machineOf(3))
  }
  await using session = await openSession(url)
  let most = 0
  const counted = async (rows: ReturnType<PgSession['query']>) => {
    most = Math.max(most, (await rows).length)
    return await rows
  }
  const counting: PgSession = {
    ...session,
    query: (text, values) => counted(session.query(text, values)),
    repeat: (text, values) => counted(session.repeat(text, values)),
  }
  using file = openSqlite(old.path)
  await catchUp(counting, file, 'usual')
  const macs = file.all('SELECT mac FROM machines ORDER BY mac').map((row) => row['mac'])
  assert.equal(macs, [macOf(2), macOf(3)])
  assert.ok(most <= 1000, `${most} rows at once`)
})

const URLS = ['../../support/cluster/postgres.ts', 'uvu'].map((name) => import.meta.resolve(name))
const slot = opened(test, async (stack) => {
  const it = await openSlot()
  stack.defer(it.close)
  return it
})
const lend = ({ environment }: Slot) => askForPostgres(environment.FLASHER_TEST_SLOT)

/** Runs a test file with this body in the slot; what it printed. */
async function runFile(body: string): Promise<string> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-lent-'))
  const file = join(folder.path, 'x.test.ts')
  const text = `import { lendDatabases } from '${URLS[0]}'
    import { suite } from '${URLS[1]}'
    const test = suite('x')
    const postgres = lendDatabases(test)
    test('x', async () => { ${body} })
    test.run()`
  await writeFile(file, text)
  const env = { ...process.env, ...slot().environment }
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], { env, encoding: 'utf8' })
  assert.is(status, 0, `${stdout}${stderr}`)
  return stdout
}

const NAME = /database (\S+) of (\S+)/
const SAY = "console.log('database', await postgres.create(), 'of', postgres.dir)"

test('files get databases of their own on one server, and leave none behind', async () => {
  const [, one, dir] = NAME.exec(await runFile(SAY)) ?? []
  assert.is(await slot().check(), '')
  const [, other, again] = NAME.exec(await runFile(SAY)) ?? []
  assert.is(await slot().check(), '')
  assert.ok(one !== undefined && dir !== undefined)
  assert.is(again, dir)
  assert.is.not(other, one)
})

test('what a file leaves behind is named, and gone for the next one', async () => {
  await runFile(`await postgres.query('postgres', 'CREATE DATABASE forgotten')
    await postgres.query('postgres', 'CREATE ROLE nobody')`)
  assert.is(await slot().check(), 'It left behind: database forgotten, role nobody')
  assert.is(await slot().check(), '')
})

/** The file with its process, which PostgreSQL removes at its end. */
const pidFileOf = (dir: string) => join(dir, 'data/postmaster.pid')
const waitForEnd = (dir: string) => waitUntil(async () => !existsSync(pidFileOf(dir)), String)

test('a server that a file ended is named, and the next file gets another one', async () => {
  const { dir } = await lend(slot())
  process.kill(Number.parseInt(readFileSync(pidFileOf(dir), 'utf8')), 'SIGQUIT')
  await waitForEnd(dir)
  assert.is(await slot().check(), 'It left behind: a PostgreSQL that has ended')
  assert.is.not((await lend(slot())).dir, dir)
})

test('the server ends with its slot, whatever ends that', async () => {
  for (const signal of ['SIGTERM', 'SIGKILL', null] as const) {
    const own = await openSlot()
    const { dir } = await lend(own)
    assert.ok(existsSync(pidFileOf(dir)))
    if (signal !== null) own.child.kill(signal)
    await own.close()
    await waitForEnd(dir)
    if (signal === 'SIGKILL') await rm(dir, { recursive: true })
  }
})

/** What is under way has four of them. */
const MAX_MS = 8000

/** Asks a leader to end, and resolves to the next one and to how long that took, in milliseconds. */
async function replace(
  name: string,
  leader: Member,
  ask: AbortController,
): Promise<{ next: Member; took: number; ended: Promise<unknown> }> {
  const next = openFreshMember(postgres.urlOf(name), { patience: 'wait' })
  const begun = performance.now()
  ask.abort()
  const ended = leader[Symbol.asyncDispose]().catch((thrown: unknown) => thrown)
  return { next: await next, took: performance.now() - begun, ended }
}

test('work at the end that never ends keeps no lease', async () => {
  const name = await postgres.create()
  const ask = new AbortController()
  const leader = await openFreshMember(postgres.urlOf(name), { signal: ask.signal })
  await leader.machines.commit(macOf(1), null, machineOf(1))
  const { promise, resolve } = Promise.withResolvers<void>()
  leader.database.beforeClosing(() => promise)
  const { next, took, ended } = await replace(name, leader, ask)
  assert.ok(took < MAX_MS, `${took} ms`)
  assert.is(next.machines.peek(macOf(1))?.mac, macOf(1))
  resolve()
  await ended
  await next[Symbol.asyncDispose]()
})

test('work at the end that fails hands over too', async () => {
  const name = await postgres.create()
  const leader = await openFreshMember(postgres.urlOf(name))
  leader.database.beforeClosing(() => Promise.reject(new Error('no space left')))
  const { next, took, ended } = await replace(name, leader, new AbortController())
  assert.ok(took < MAX_MS, `${took} ms`)
  assert.match(String(await ended), 'no space left')
  await next[Symbol.asyncDispose]()
})

const sessionsOf = async (name: string) =>
  (await postgres.query(name, 'SELECT application_name AS who FROM pg_stat_activity')).filter(
    ({ who }) => who === 'flasher-web',
  ).length

test('a connection that was being made at the end is not left open', async () => {
  const name = await postgres.create()
  await using wire = await openWire(postgres, name)
  const leader = await openFreshMember(wire.url)
  await leader.machines.commit(macOf(1), null, machineOf(1))
  wire.hold()
  wire.cut()
  // The next renewal finds the session lost, and begins another one.
  await sleep(2000)
  await leader[Symbol.asyncDispose]()
  wire.mend()
  await sleep(1000)
  assert.is(await sessionsOf(name), 0)
})

test.run()
