/** How a leader leaves, and what is promised of that (docs/several-servers.md). */
import { setTimeout as sleep } from 'node:timers/promises'
import * as assert from 'uvu/assert'
import { startWaits } from '../processor-times.ts'
import { macOf } from '../server/state.ts'
import type { Databases } from './postgres.ts'
import { askAs, startServer, until, type ClusterServer } from './servers.ts'

/** Somebody who names one machine after the other by way of a server, until asked to end. */
function changeMachines(ask: Awaited<ReturnType<typeof askAs>>, from: number) {
  const acknowledged: string[] = []
  let [next, answered] = [from, 0]
  const leaving = new AbortController()
  const work = async (): Promise<void> => {
    while (!leaving.signal.aborted) {
      const mac = macOf((next += 1))
      const put = { method: 'PUT', body: '{"labels":["kept"]}' }
      const answer = await ask(`/machines/${mac}`, put).catch(() => null)
      if (answer !== null) answered += 1
      if (answer?.status === 200) acknowledged.push(mac)
      else await sleep(50)
    }
  }
  const ended = Promise.all([work(), work()])
  return {
    acknowledged,
    /** Answers so far, of any kind. */
    answered: () => answered,
    async end() {
      leaving.abort()
      await ended
    },
  }
}

const macsIn = async (postgres: Pick<Databases, 'query'>, name: string) =>
  new Set(
    (await postgres.query(name, 'SELECT mac FROM flasher.machines')).map(({ mac }) => String(mac)),
  )

export const editTo = (label: string) => ({
  method: 'PUT',
  body: JSON.stringify({ labels: [label] }),
})

export interface Departure {
  readonly signal: NodeJS.Signals
  /**
   * Within how many seconds another one leads, but for what it waits for a processor; null where other
   * tests run beside it: only what is held and answered counts then.
   */
  readonly seconds: number | null
  /** What the next one says of it. */
  readonly why: string
}

/** Loses nothing that was acknowledged by way of the others; `env`: what the servers are started with. */
export async function proveDeparture(
  postgres: Pick<Databases, 'create' | 'urlOf' | 'query'>,
  { signal, seconds, why }: Departure,
  env: Readonly<Record<string, string>>,
): Promise<void> {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  await using leader = await startServer(url, env)
  await leader.leads()
  await using second = await startServer(url, env)
  await using third = await startServer(url, env)
  const others: readonly ClusterServer[] = [second, third]
  for (const other of others) await other.standsBy()
  const machine = macOf(500_000)
  assert.is((await fetch(`${second.url}/pxe/${machine}`)).status, 200)
  const people = await Promise.all(
    others.map(async (other, at) => changeMachines(await askAs(other), at * 100_000)),
  )
  await until(async () => people.every(({ acknowledged }) => acknowledged.length > 10))
  const pids = [process.pid, ...others.map((other) => other.process().child.pid)]
  const waited = startWaits(pids)
  const before = performance.now()
  leader.kill(signal)
  // A machine reports its end once, in that very moment, and is held and answered.
  const done = fetch(`${third.url}/pxe/${machine}/done`, { method: 'POST' })
  await Promise.race(others.map((other) => other.leads()))
  const took = performance.now() - before
  const own = took - waited()
  const isInTime = seconds === null || own < seconds * 1000
  assert.ok(isInTime, `another one led after ${took} ms, ${own} of its own`)
  await Promise.any(others.map((other) => other.process().saw(`takes the lease: ${why}`)))
  assert.is((await done).status, 204)
  // They go on under the next one, who may want another login.
  const counts = people.map(({ answered }) => answered())
  await until(async () => people.every(({ answered }, at) => answered() > (counts[at] ?? 0) + 10))
  for (const each of people) await each.end()
  const stored = await macsIn(postgres, name)
  for (const { acknowledged } of people) {
    assert.equal(
      acknowledged.filter((mac) => !stored.has(mac)),
      [],
    )
  }
  // Both show the same, and an edit by way of either of them at once.
  const [one, two] = [await askAs(second), await askAs(third)]
  assert.is((await one(`/machines/${machine}`, editTo('x'))).status, 200)
  assert.equal((await (await two(`/machines/${machine}`)).json()).labels, ['x'])
  if (signal !== 'SIGSTOP') return
  // 2: who wakes up appends nothing, and ends.
  const count = (await macsIn(postgres, name)).size
  leader.kill('SIGCONT')
  assert.is((await leader.process().ended).code, 1)
  assert.is((await macsIn(postgres, name)).size, count)
}
