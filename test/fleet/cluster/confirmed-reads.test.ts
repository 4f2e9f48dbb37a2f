/** When a leader may show what is in its memory: at once while the database said so a moment ago, else it asks. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { TIMES } from '#fleet/cluster/rules/lease.ts'
import { openFreshMember } from '#test/support/cluster/members.ts'
import { lendDatabases, openWire } from '#test/support/cluster/postgres.ts'
import { SHORT_LEASE } from '#test/support/cluster/times.ts'
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

test.run()
