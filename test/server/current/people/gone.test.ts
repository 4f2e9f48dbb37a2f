/** What somebody began ends when they are gone: batches, tokens that tokens made, and the power of many machines. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  addPerson,
  asForm,
  createCurrentServer,
  type CurrentServer,
} from '#test/support/people/current-server.ts'
import { REF } from '#test/support/server/machine-fixture.ts'
import { asJson, readJson } from '#test/support/server/server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('what was begun by who is gone')

const MACS = ['52:54:00:00:00:01', '52:54:00:00:00:02', '52:54:00:00:00:03']

type End = readonly [string, Readonly<Record<string, string>>]

/** A change by an administrator, as a form of the page of somebody. */
const ENDS: Readonly<Record<string, End>> = {
  'who was removed': ['remove', { confirm: 'yes' }],
  'who may only look by now': ['role', { role: 'look' }],
  'whose scope has none of the machines by now': ['role', { role: 'operate', labels: 'office' }],
}

async function createScene() {
  const server = await createCurrentServer({ FLASHER_POWER_NETWORKS: '127.0.0.0/8' })
  const operator = await server.operator()
  for (const mac of MACS) {
    const body = asJson({ labels: ['lab'], bty_image_ref: REF, target_disk_serial: 'S1' }, 'PUT')
    assert.is((await operator(`/machines/${mac}`, body)).status, 200)
    // Nothing listens there: what is tried is an event at once.
    const way = { way: 'hook', on: 'http://127.0.0.1:9/on', off: 'http://127.0.0.1:9/off' }
    assert.is((await operator(`/machines/${mac}/power`, asJson(way, 'PUT'))).status, 200)
  }
  const otto = await addPerson(server, 'otto', 'operate', ['lab'])
  const id = server.state.peopleStore.findByName('otto')?.id ?? ''
  const end = async ([path, fields]: End) => {
    const { status } = await operator(`/ui/people/${id}/${path}`, asForm(fields))
    assert.is(status, 303)
  }
  return { server, operator, otto, end, [Symbol.asyncDispose]: server[Symbol.asyncDispose] }
}

const listEvents = async ({ state }: CurrentServer, kind: string) =>
  (await state.journal.list({ kind, limit: 50 })).map(({ summary }) => summary)

for (const [what, end] of Object.entries(ENDS)) {
  test(`a batch of somebody ${what} is paused, says why, and goes on with somebody else`, async () => {
    await using scene = await createScene()
    const { server, operator, otto } = scene
    const parameters = { boot_mode: 'flasher-flash-once' }
    const { batch } = await readJson(
      otto('/machines/bulk', asJson({ action: 'mode', macs: MACS, parameters })),
    )
    const isPaused = async () => server.state.batches.isPaused(batch)
    assert.is(await isPaused(), false)
    await scene.end(end)
    await waitUntil(isPaused, () => 'it is paused')
    await waitUntil(
      async () => (await listEvents(server, 'batch.pause')).length === 1,
      () => 'it is on record',
    )
    const [said = ''] = await listEvents(server, 'batch.pause')
    assert.match(
      said,
      /was paused, as (otto was removed|otto may not do this|it has machines outside)/,
    )
    assert.is((await operator(`/batches/${batch}/resume`, { method: 'POST' })).status, 200)
    assert.is(server.state.batches.find(batch)?.resumed_by, 'operator', 'who answers for it now')
  })

  test(`the power of machines is left alone that were still to come, for somebody ${what}`, async () => {
    await using scene = await createScene()
    const { server, otto } = scene
    const begun = asJson({ action: 'on', macs: MACS, stagger: 2 })
    assert.is((await readJson(otto('/power/bulk', begun))).started, 3)
    await scene.end(end)
    const words = () => listEvents(server, 'machine.power.failed')
    await waitUntil(
      async () =>
        (await words()).some((each) => /outside of the scope|before the power/.test(each)),
      () => 'it is on record',
    )
    const tried = (await words()).filter((each) => each.startsWith(MACS[1] ?? '-'))
    assert.ok(
      tried.every((each) => each.includes('outside of the scope')),
      tried.join(),
    )
  })
}

test('what goes on is on a page, with its button, and is stopped there', async () => {
  await using scene = await createScene()
  const { server, operator, otto } = scene
  await readJson(otto('/power/bulk', asJson({ action: 'on', macs: MACS, stagger: 600 })))
  const shown = await (await operator('/ui/batches')).text()
  assert.match(shown, 'of 3 machines to go, begun by otto')
  const [, path = ''] = /action="(\/ui\/batches\/power\/\w+\/stop)"/.exec(shown) ?? []
  const lea = await addPerson(server, 'lea', 'look')
  assert.is((await lea(path, { method: 'POST' })).status, 403)
  assert.not.match(await (await lea('/ui/batches')).text(), path)
  const other = await addPerson(server, 'ria', 'operate', ['office'])
  assert.not.match(await (await other('/ui/batches')).text(), 'begun by otto')
  assert.match((await other(path, { method: 'POST' })).headers.get('location') ?? '', 'error=')
  assert.is((await operator(path, { method: 'POST' })).status, 303)
  await waitUntil(
    async () =>
      (await listEvents(server, 'machine.power.failed')).some((each) =>
        each.includes('stopped it'),
      ),
    () => 'it is on record',
  )
  assert.not.match(await (await operator('/ui/batches')).text(), 'begun by otto')
})

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()

test('a token makes none that outlives or outranks it', async () => {
  await using scene = await createScene()
  const { server, operator } = scene
  const wish = { name: 'short', scopes: ['admin'], expires_at: inSeconds(60) }
  const { token } = await (await operator('/tokens', asJson(wish))).json()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const make = async (more: object) => {
    const body = JSON.stringify({ name: 'child', scopes: ['admin'], ...more })
    return await server.request('/tokens', { method: 'POST', headers, body })
  }
  assert.equal(
    [(await make({})).status, (await make({ expires_at: inSeconds(61) })).status],
    [422, 422],
  )
  const child = await (await make({ expires_at: inSeconds(30) })).json()
  const use = (text: string) =>
    server.request('/tokens', { headers: { authorization: `Bearer ${text}` } })
  assert.is((await use(child.token)).status, 200)
  const [made] = (await readJson(operator('/tokens'))).filter(
    ({ name }: { name: string }) => name === 'short',
  )
  assert.is((await operator(`/tokens/${made.id}`, { method: 'DELETE' })).status, 204)
  assert.equal([(await use(token)).status, (await use(child.token)).status], [401, 401])
})

test.run()
