/** What several servers promise together (docs/several-servers.md): changes by way of all of them while leaders die, hang and stop. */
import { readdir } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { lendDatabases, openWire, startPostgres } from '../support/cluster/postgres.ts'
import { askAs, startServer, until, type ClusterServer } from '../support/cluster/servers.ts'
import { readProcessorTimes } from '../support/processor-times.ts'
import { macOf } from '../support/server/state.ts'

const test = suite('contract, several servers')
const postgres = lendDatabases(test)

/** Somebody who names one machine after the other by way of a server, until asked to end. */
function changeMachines(ask: Awaited<ReturnType<typeof askAs>>, from: number) {
  const acknowledged: string[] = []
  let next = from
  const leaving = new AbortController()
  const work = async (): Promise<void> => {
    while (!leaving.signal.aborted) {
      const mac = macOf((next += 1))
      const put = { method: 'PUT', body: '{"labels":["kept"]}' }
      const answer = await ask(`/machines/${mac}`, put).catch(() => null)
      if (answer?.status === 200) acknowledged.push(mac)
      else await sleep(50)
    }
  }
  const ended = Promise.all([work(), work()])
  return {
    acknowledged,
    async end() {
      leaving.abort()
      await ended
    },
  }
}

const macsIn = async (name: string) =>
  new Set(
    (await postgres.query(name, 'SELECT mac FROM flasher.machines')).map(({ mac }) => String(mac)),
  )

const editTo = (label: string) => ({ method: 'PUT', body: JSON.stringify({ labels: [label] }) })

interface Departure {
  readonly signal: NodeJS.Signals
  /** Within how many seconds another one leads, but for what it waits for a processor. */
  readonly seconds: number
  /** What the next one says of it. */
  readonly why: string
}

/** What makes a leader leave. */
const DEPARTURES: Readonly<Record<string, Departure>> = {
  'a kill': { signal: 'SIGKILL', seconds: 2, why: 'the session of the server that led has ended' },
  'a process that hangs': {
    signal: 'SIGSTOP',
    seconds: 7,
    why: 'the server that led has not renewed it for 5.',
  },
  'a clean stop': { signal: 'SIGTERM', seconds: 2, why: 'nobody led' },
}

/** Milliseconds since `before` for which these processes waited while others had all processors. */
const waitsSince = (before: readonly number[], pids: readonly (number | undefined)[]) =>
  pids.reduce((sum: number, pid, at) => sum + readProcessorTimes(pid).waited - (before[at] ?? 0), 0)

for (const [fault, { signal, seconds, why }] of Object.entries(DEPARTURES)) {
  test(`1, 2, 5, 6: ${fault} of the leader loses nothing that was acknowledged by way of the others`, async () => {
    const name = await postgres.create()
    const url = postgres.urlOf(name)
    await using leader = await startServer(url)
    await leader.leads()
    await using second = await startServer(url)
    await using third = await startServer(url)
    const others: readonly ClusterServer[] = [second, third]
    for (const other of others) await other.standsBy()
    const machine = macOf(500_000)
    assert.is((await fetch(`${second.url}/pxe/${machine}`)).status, 200)
    const people = await Promise.all(
      others.map(async (other, at) => changeMachines(await askAs(other), at * 100_000)),
    )
    await until(async () => people.every(({ acknowledged }) => acknowledged.length > 10))
    const pids = [process.pid, ...others.map((other) => other.process().child.pid)]
    const waited = pids.map((pid) => readProcessorTimes(pid).waited)
    const before = performance.now()
    leader.kill(signal)
    // A machine reports its end once, in that very moment, and is held and answered.
    const done = fetch(`${third.url}/pxe/${machine}/done`, { method: 'POST' })
    await Promise.race(others.map((other) => other.leads()))
    const took = performance.now() - before
    const own = took - waitsSince(waited, pids)
    assert.ok(own < seconds * 1000, `another one led after ${took} ms, ${own} of its own`)
    await Promise.any(others.map((other) => other.process().saw(`takes the lease: ${why}`)))
    assert.is((await done).status, 204)
    await sleep(1000)
    for (const each of people) await each.end()
    const stored = await macsIn(name)
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
    const count = (await macsIn(name)).size
    leader.kill('SIGCONT')
    assert.is((await leader.process().ended).code, 1)
    assert.is((await macsIn(name)).size, count)
  })
}

test('2: a leader that does not reach the database shows nothing that another one has changed', async () => {
  const name = await postgres.create()
  await using wire = await openWire(postgres, name)
  await using first = await startServer(wire.url)
  await first.leads()
  await using second = await startServer(postgres.urlOf(name))
  await second.standsBy()
  const machine = `/machines/${macOf(1)}`
  const askFirst = await askAs(first)
  assert.is((await askFirst(machine, editTo('old'))).status, 200)
  assert.is((await askFirst(machine)).status, 200)
  wire.hold()
  await second.leads()
  const askSecond = await askAs(second)
  assert.is((await askSecond(machine, editTo('new'))).status, 200)
  const reads = await Promise.all(
    [machine, '/machines', '/ui/machines'].map((path) => askFirst(path)),
  )
  assert.equal(
    reads.map(({ status }) => status),
    [503, 503, 503],
  )
  // What says how the server itself is remains to be seen.
  assert.match(await (await askFirst('/metrics')).text(), /^flasher_database_up 0$/m)
  wire.mend()
  assert.is((await first.process().ended).code, 1)
})

const backupsOf = ({ home }: ClusterServer) => readdir(home.at('state/backups')).catch(() => [])

test("10: only the leader's backup schedule runs, and the next leader goes on from its row", async () => {
  const name = await postgres.create()
  const url = postgres.urlOf(name)
  const daily = { FLASHER_BACKUP_ENABLED: 'true', FLASHER_BACKUP_CADENCE: 'daily' }
  await using leader = await startServer(url, daily)
  await leader.leads()
  await using standby = await startServer(url, daily)
  await standby.standsBy()
  const rows = () =>
    postgres.query(name, "SELECT 1 FROM flasher.settings WHERE name = 'backup.last_run_at'")
  await until(async () => (await rows()).length === 1)
  const made = await backupsOf(leader)
  assert.ok(made.length > 0)
  assert.equal(await backupsOf(standby), [])
  leader.kill('SIGTERM')
  await standby.leads()
  await sleep(1500)
  // Today's was made.
  assert.equal(await backupsOf(standby), [])
})

test('4, 5: without a leader reports are held and then refused, and only a machine without an order leaves', async () => {
  await using own = await startPostgres()
  const name = await own.create()
  await using leader = await startServer(own.urlOf(name))
  await leader.leads()
  await using standby = await startServer(own.urlOf(name))
  await standby.standsBy()
  const ask = await askAs(standby)
  const [plain, armed, unknown] = [macOf(1), macOf(2), macOf(3)]
  for (const [mac, mode] of [
    [plain, 'ipxe-exit'],
    [armed, 'flasher-inventory'],
  ]) {
    const put = { method: 'PUT', body: JSON.stringify({ boot_mode: mode }) }
    assert.is((await ask(`/machines/${mac}`, put)).status, 200)
  }
  // Its copy is at most so old.
  await sleep(1000)
  await own.stop('SIGQUIT')
  leader.kill('SIGKILL')
  await until(async () => (await fetch(`${standby.url}/healthz?ready`)).status === 503)
  const begun = performance.now()
  const report = fetch(`${standby.url}/pxe/${armed}/done`, { method: 'POST' })
  const edit = ask(`/machines/${plain}`, { method: 'PUT', body: '{"labels":["x"]}' })
  // Six rounds, and the one in which it leaves; each is held as long as the others.
  const roundsOf = async (mac: string) => {
    const asked = Array.from({ length: 7 }, () => fetch(`${standby.url}/pxe/${mac}`))
    return await Promise.all(asked.map(async (each) => await (await each).text()))
  }
  const scripts = Promise.all([plain, armed, unknown].map(roundsOf))
  for (const each of [report, edit]) {
    const answer = await each
    assert.is(answer.status, 503)
    assert.is(answer.headers.get('retry-after'), '2')
  }
  const took = performance.now() - begun
  assert.ok(took > 10_000 && took < 14_500, `${took} ms`)
  const waits = (await scripts).map(
    (rounds) => rounds.filter((script) => script.includes('no server leads this fleet')).length,
  )
  assert.equal(waits, [6, 7, 6])
  assert.is((await fetch(`${standby.url}/healthz`)).status, 200)
  // Once the database is back, the one that stood by leads, and takes the report.
  await own.start()
  await standby.leads()
  const again = await fetch(`${standby.url}/pxe/${armed}/done`, { method: 'POST' })
  assert.is(again.status, 204)
})

test.run()
