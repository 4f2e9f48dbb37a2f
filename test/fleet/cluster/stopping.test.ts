/** A leader that is asked to end: whatever hangs or fails there, another one leads within seconds. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openFreshMember } from '#test/support/cluster/members.ts'
import { lendDatabases, openWire } from '#test/support/cluster/postgres.ts'
import { machineOf, macOf } from '#test/support/server/state.ts'

const test = suite('a leader that stops')
const postgres = lendDatabases(test)

/** What is under way has four of them. */
const MAX_MS = 8000

type Member = Awaited<ReturnType<typeof openFreshMember>>

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
