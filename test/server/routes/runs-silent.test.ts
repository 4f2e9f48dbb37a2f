/** Runs of clients that tell nothing but their end: what the history says of them. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { entryOf, MAC, REF } from '#test/support/server/machine-fixture.ts'
import { asJson, createTestServer, readJson } from '#test/support/server/server.ts'

const test = suite('silent runs')

test('a client that tells nothing but its end is in the history', async () => {
  const clock = { now: Date.parse('2027-01-01T00:00:00Z') }
  await using server = await createTestServer({
    catalog: [entryOf(REF)],
    now: () => new Date(clock.now),
  })
  const ask = await server.operator()
  const history = () => readJson(ask(`/machines/${MAC}/runs`))
  const tell = async (path: string, init: RequestInit = { method: 'POST' }) => {
    clock.now += 1000
    assert.is((await server.request(`/pxe/${MAC}${path}`, init)).status, 204)
  }
  const put = async (boot_mode: string) => {
    clock.now += 1000
    const body = { boot_mode, bty_image_ref: REF, target_disk_serial: 'S1' }
    assert.is((await ask(`/machines/${MAC}`, asJson(body, 'PUT'))).status, 200)
  }
  await put('flasher-flash-once')
  await tell('/done')
  assert.is((await history()).total, 0, 'no live boot was offered')
  await put('flasher-flash-always')
  clock.now += 1000
  const offered = new Date(clock.now).toISOString()
  await server.request(`/pxe/${MAC}`)
  await tell('/done')
  const [run] = (await history()).runs
  assert.equal([run.state, run.mode, run.reported, run.bytes_written], ['done', 'flash', false, 0])
  assert.equal([run.started_at, run.seconds, run.image.ref], [offered, 1, REF])
  await tell('/done')
  assert.is((await history()).total, 1, 'told again')
  await put('flasher-flash-once')
  await server.request(`/pxe/${MAC}`)
  await tell('/status', asJson({ status: 'failed', reason: 'no disk' }))
  await tell('/status', asJson({ status: 'failed', reason: 'no disk' }))
  clock.now += 1000
  await server.request(`/pxe/${MAC}`)
  await tell('/done')
  await tell('/done')
  const states = (await history()).runs.map(({ state }: { readonly state: string }) => state)
  assert.equal(states, ['done', 'failed', 'done'])
})

test.run()
