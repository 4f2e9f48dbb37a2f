import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { fileSource } from '#engine/catalog/rules/cache-entry.ts'
import { createWaitingCaptures } from '#server/current/captures/waiting-captures.ts'
import { makeCapture, openCaptureLab, uploadCapture } from '#test/support/capture/uploads.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import {
  addPerson,
  createCurrentServer,
  PERSON_PASSWORD,
} from '#test/support/people/current-server.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'
import { TOKEN } from '#test/support/server/image-cache.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('captures that wait')
const NAME = 'web-42.img.zst'
const IMAGE = await makeCapture(100_000)

const BADGE = /<span class="count" title="Captured images to review">(\d+)<\/span>/
const badgeOf = async (answer: Promise<Response>) => BADGE.exec(await (await answer).text())?.[1]

test('those who may decide on captures see how many wait, and nobody else does', async () => {
  await using lab = await openCaptureLab()
  await using server = await createCurrentServer({
    FLASHER_WITHCACHE_URL: lab.base,
    FLASHER_WITHCACHE_TOKEN: TOKEN,
  })
  await lab.machine().begin(NAME)
  const operator = await server.operator()
  const unfinished = createWaitingCaptures({
    url: () => lab.base,
    token: async () => TOKEN,
    env: {},
  })
  assert.is(await unfinished(), 0, 'what is still uploaded waits for nobody')
  await uploadCapture(
    lab.machine(lab.sign('other.img.zst', { order: 'order-0002' })),
    'other.img.zst',
    IMAGE,
  )
  for (const path of ['/ui/machines', '/ui/events']) {
    assert.is(await badgeOf(operator(path)), '1', path)
  }
  const seen = {
    administrate: await addPerson(server, 'anna', 'administrate'),
    operate: await addPerson(server, 'otto', 'operate'),
    look: await addPerson(server, 'lea', 'look'),
    scoped: await addPerson(server, 'sam', 'operate', ['lab']),
  }
  assert.is(await badgeOf(seen.administrate('/ui/machines')), '1')
  for (const ask of [seen.operate, seen.look, seen.scoped]) {
    assert.is(await badgeOf(ask('/ui/machines')), undefined)
  }
})

test('the pages of the cache show it to the same people', async () => {
  await using lab = await openCaptureLab()
  const key = (await readFile(join(lab.folder, '.cache/secret'), 'utf8')).trim()
  await using server = await createCurrentServer({ FLASHER_SERVER_SESSION_SECRET: key })
  await uploadCapture(lab.machine(), NAME, IMAGE)
  await addPerson(server, 'anna', 'administrate')
  await addPerson(server, 'otto', 'operate')
  await addPerson(server, 'sam', 'operate', ['lab'])
  // The cache's first start ends the sessions of that second and before.
  await wait(1000 - (Date.now() % 1000))
  const badge = async (fields: Readonly<Record<string, string>>) => {
    const { cookie } = await server.logIn(fields)
    const answer = await fetch(`${lab.base}/ui/dashboard`, { headers: { cookie } })
    assert.is(answer.status, 200)
    return await badgeOf(Promise.resolve(answer))
  }
  assert.is(await badge({ password: PASSWORD }), '1')
  assert.is(await badge({ username: 'anna', password: PERSON_PASSWORD }), '1')
  for (const username of ['otto', 'sam']) {
    assert.is(await badge({ username, password: PERSON_PASSWORD }), undefined, username)
  }
})

test('a count follows what is decided, and is of the cache that is set', async () => {
  await using lab = await openCaptureLab()
  const id = await uploadCapture(lab.machine(), NAME, IMAGE)
  const place: { url: string | null } = { url: lab.base }
  const count = createWaitingCaptures({
    url: () => place.url,
    token: async () => TOKEN,
    env: {},
    freshMs: 0,
  })
  assert.is(await count(), 1)
  assert.is((await lab.operator.ask('DELETE', `/captures/${id}`)).status, 204)
  assert.is(await count(), 0)
  await uploadCapture(lab.machine(lab.sign(NAME, { order: 'order-0003' })), NAME, IMAGE)
  assert.is(await count(), 1)
  place.url = null
  assert.is(await count(), 0)
})

test('pages share one request, and wait for no silent cache twice', async () => {
  let asked = 0
  await using server = await startHostileServer(() => {
    asked += 1
  })
  const parts = { url: () => server.origin, env: {}, waitMs: 50 }
  const count = createWaitingCaptures({ ...parts, token: async () => TOKEN })
  assert.equal(await Promise.all([count(), count(), count()]), [0, 0, 0])
  assert.is(asked, 1)
  const unknown = createWaitingCaptures({ ...parts, token: async () => null })
  assert.is(await unknown(), 0)
  assert.is(asked, 1, 'without a token nothing is asked')
})

const [MINE, TOO, OTHER] = ['52:54:00:00:00:01', '52:54:00:00:00:02', '52:54:00:00:00:03']

test('an order outside is not noticed, one inside is, and a name that is assigned outside says nothing', async () => {
  await using server = await createCurrentServer({ FLASHER_WITHCACHE_URL: 'http://127.0.0.1:9' })
  const operator = await server.operator()
  const anna = await addPerson(server, 'anna', 'operate', ['lab'])
  const capture = async (ask: typeof anna, mac: string, name: string) => {
    const asked = { name, disk_serial: 'S1' }
    const answer = await ask(`/machines/${mac}/capture`, asJson(asked))
    const detail: string = answer.status === 200 ? '' : (await answer.json()).detail
    if (answer.status === 200) await operator(`/machines/${MINE}/capture`, { method: 'DELETE' })
    return [answer.status, detail] as const
  }
  const removed = refOf(fileSource('removed.img.zst'))
  assert.ok(removed.ok)
  for (const [mac, labels, bty_image_ref] of [
    [MINE, ['lab'], null],
    [TOO, ['lab'], null],
    [OTHER, ['rack'], removed.value],
  ] as const) {
    const body = { boot_mode: 'ipxe-exit', labels, bty_image_ref }
    assert.is((await operator(`/machines/${mac}`, asJson(body, 'PUT'))).status, 200)
  }
  assert.is((await capture(operator, OTHER, 'outside.img.zst'))[0], 200)
  assert.is((await capture(operator, TOO, 'inside.img.zst'))[0], 200)
  assert.equal(await capture(anna, MINE, 'outside.img.zst'), [200, ''])
  const [inside, words] = await capture(anna, MINE, 'inside.img.zst')
  assert.is(inside, 409)
  assert.match(words, /same image name/i)
  assert.equal(await capture(anna, MINE, 'removed.img.zst'), [
    409,
    'removed.img.zst is not a valid name for a capture. Choose another.',
  ])
  for (const name of ['outside.img.zst', 'removed.img.zst']) {
    assert.is((await capture(operator, MINE, name))[0], 409, 'whoever sees all learns it')
  }
})

test.run()
