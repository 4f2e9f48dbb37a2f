/** What a server promises of its state, alone and with a database (docs/several-servers.md). */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openSession } from '#fleet/cluster/postgres.ts'
import { readLease, takeLease } from '#fleet/cluster/tables.ts'
import { lendDatabases, openWire, type Databases } from '#test/support/cluster/postgres.ts'
import { until } from '#test/support/cluster/servers.ts'
import { timesOf } from '#test/support/cluster/times.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'

const PASSWORD = 'a password of the tests'
const MAC = '52:54:00:12:34:56'
/** Those of the product are in test/server/real. */
const HOLD_MS = 5000

interface Store {
  readonly env: Readonly<Record<string, string>>
  /** Null: this server stands alone. */
  readonly wire: Awaited<ReturnType<typeof openWire>> | null
  readonly name: string
}

const STORES: Readonly<Record<string, (postgres: Databases) => Promise<Store>>> = {
  'SQLite alone': async () => ({ env: {}, wire: null, name: '' }),
  'PostgreSQL, one server': async (postgres) => {
    const name = await postgres.create()
    const wire = await openWire(postgres, name)
    return { env: { FLASHER_DATABASE_URL: wire.url, ...timesOf({ holdMs: HOLD_MS }) }, wire, name }
  },
}

async function open({ env }: Store) {
  const home = await createServerHome()
  const more = { ...env, FLASHER_ADMIN_PASSWORD: PASSWORD }
  return {
    ...home,
    start: async () => {
      const server = await home.start([], more)
      const { cookie } = await login(server.url, PASSWORD)
      const ask = (path: string, init: RequestInit = {}) =>
        fetch(`${server.url}${path}`, {
          ...init,
          headers: { cookie, 'content-type': 'application/json', ...init.headers },
        })
      return { ...server, ask }
    },
    run: (argv: readonly string[], extra = {}) => home.run(argv, { ...more, ...extra }),
    runApart: (argv: readonly string[]) => home.run(argv, { FLASHER_ADMIN_PASSWORD: PASSWORD }),
  }
}

for (const [where, openStore] of Object.entries(STORES)) {
  const test = suite(`contract, ${where}`)
  const postgres = lendDatabases(test)

  test('1: what was acknowledged outlives a kill, and with a database the whole host', async () => {
    const store = await openStore(postgres)
    await using home = await open(store)
    {
      await using server = await home.start()
      const put = {
        method: 'PUT',
        body: JSON.stringify({ boot_mode: 'ipxe-exit', labels: ['kept'] }),
      }
      assert.is((await server.ask(`/machines/${MAC}`, put)).status, 200)
      server.child.kill('SIGKILL')
      await server.ended
    }
    // The next server has nothing of the first one's, where there is a database.
    await using elsewhere = store.wire === null ? home : await open(store)
    await using next = await elsewhere.start()
    const machine = await (await next.ask(`/machines/${MAC}`)).json()
    assert.equal(machine.labels, ['kept'])
    await store.wire?.[Symbol.asyncDispose]()
  })

  test('3: an answer that changes nothing is given only by who still leads', async () => {
    const store = await openStore(postgres)
    await using home = await open(store)
    await using server = await home.start()
    const plan = () => server.ask(`/pxe/${MAC}/plan`)
    assert.is((await plan()).status, 200)
    if (store.wire !== null) {
      await using other = await openSession(postgres.urlOf(store.name))
      const next = { name: 'b', release: '', url: '' }
      while (!(await takeLease(other, await readLease(other), 'another', next)));
      const refused = await plan().catch(() => null)
      assert.not.equal(refused?.status, 200)
      const { code, stderr } = await server.ended
      assert.is(code, 1)
      assert.match(stderr, 'another server leads this fleet now')
    } else assert.is((await plan()).status, 200)
    await store.wire?.[Symbol.asyncDispose]()
  })

  test('5: reports of machines wait for the database, but not for ever', async () => {
    const store = await openStore(postgres)
    if (store.wire === null) return
    await using home = await open(store)
    await using server = await home.start()
    const done = () => server.ask(`/pxe/${MAC}/done`, { method: 'POST' })
    await server.ask(`/pxe/${MAC}`)
    store.wire.sever()
    const waiting = done()
    await until(async () => (await server.ask('/healthz?ready')).status === 503)
    assert.is((await server.ask('/healthz')).status, 200)
    assert.is(await Promise.race([waiting, null]), null)
    store.wire.mend()
    assert.is((await waiting).status, 204)
    assert.is((await server.ask('/healthz?ready')).status, 200)

    store.wire.sever()
    const begun = performance.now()
    const put = { method: 'PUT', body: JSON.stringify({ labels: ['later'] }) }
    const [refused, script] = await Promise.all([
      server.ask(`/machines/${MAC}`, put),
      server.ask(`/pxe/${MAC}`),
    ])
    assert.is(refused.status, 503)
    assert.is(refused.headers.get('retry-after'), '2')
    assert.ok(performance.now() - begun < HOLD_MS + 3000)
    // The machine waits rather than booting what may be half written.
    const text = await script.text()
    assert.is(script.status, 200)
    assert.match(text, 'no server leads this fleet')
    assert.match(text, 'goto wait')
    store.wire.mend()
    await until(async () => (await server.ask(`/machines/${MAC}`, put)).status === 200)
    await store.wire[Symbol.asyncDispose]()
  })

  test('8: a state of a database is not served without it until it is detached; import is the way back', async () => {
    const store = await openStore(postgres)
    await using home = await open(store)
    {
      await using server = await home.start()
      const put = {
        method: 'PUT',
        body: JSON.stringify({ boot_mode: 'flasher-inventory', labels: ['x'] }),
      }
      assert.is((await server.ask(`/machines/${MAC}`, put)).status, 200)
    }
    if (store.wire === null) {
      const other = await STORES['PostgreSQL, one server']?.(postgres)
      const env = other?.env ?? {}
      const port = String(await findPort())
      const refused = await home.run([], { ...env, FLASHER_SERVER_PORT: port })
      assert.is(refused.code, 2)
      assert.match(refused.stderr, 'database import')
      const brought = await home.run(['database', 'import'], env)
      assert.is(brought.code, 0, brought.stderr)
      assert.match((await home.run(['database', 'status'], env)).stdout, 'has every change')
      await other?.wire?.[Symbol.asyncDispose]()
    } else {
      assert.match((await home.run(['database', 'status'])).stdout, 'has every change')
    }
    const apart = await home.runApart([])
    assert.is(apart.code, 2)
    assert.match(apart.stderr, 'database detach')
    const detached = await home.runApart(['database', 'detach'])
    assert.is(detached.code, 0, detached.stderr)
    assert.is((await home.runApart(['export', home.at('out')])).code, 0)
    assert.match(await home.text('out/inventory.json'), MAC)
    await store.wire?.[Symbol.asyncDispose]()
  })

  test('10: a backup is restored under the database, and nothing is armed', async () => {
    const store = await openStore(postgres)
    await using home = await open(store)
    const labelMachine = async (label: string) => {
      await using server = await home.start()
      const put = { method: 'PUT', body: JSON.stringify({ labels: [label] }) }
      assert.is((await server.ask(`/machines/${MAC}`, put)).status, 200)
    }
    await labelMachine('before')
    const backup = await home.run(['backup'])
    assert.is(backup.code, 0, backup.stderr)
    const id = /Backup (\S+)/.exec(backup.stdout)?.[1] ?? ''
    await labelMachine('after')
    const restored = await home.run(['restore', id])
    assert.is(restored.code, 0, restored.stderr)
    await using elsewhere = store.wire === null ? home : await open(store)
    await using next = await elsewhere.start()
    const machine = await (await next.ask(`/machines/${MAC}`)).json()
    assert.equal(machine.labels, ['before'])
    await store.wire?.[Symbol.asyncDispose]()
  })

  test.run()
}
