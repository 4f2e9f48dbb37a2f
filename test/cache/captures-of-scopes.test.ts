/** Who has a scope sees the captures of their machines at the cache, as far as a server has said whose these are, and no other. */
import { copyFileSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { MAC, openCaptureLab, secretOf, SOURCE } from '#test/support/capture/uploads.ts'
import {
  addPerson,
  createCurrentServer,
  PERSON_PASSWORD,
} from '#test/support/people/current-server.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'

const test = suite('captures of scopes')

const MINE = '52:54:00:00:00:01'
const [OTHER_NAME, OWN_NAME] = ['canary-outside.img.zst', 'inside.img.zst']

async function openScene() {
  const server = await createCurrentServer()
  const lab = await openCaptureLab({
    prepare(folder) {
      mkdirSync(dirname(secretOf(folder)), { recursive: true })
      copyFileSync(join(server.dir, 'session-secret'), secretOf(folder))
    },
  })
  await addPerson(server, 'anna', 'operate', ['lab'])
  await addPerson(server, 'otto', 'look')
  const begin = async (mac: string, name: string, order: string) => {
    const token = lab.sign(name, { mac, order })
    const source = { ...SOURCE, mac, hostname: `host-of-${name}` }
    const begun = await lab.machine(token).begin(name, source)
    assert.is(begun.status, 201)
    return String(begun.body['id'])
  }
  const read = (fields: Readonly<Record<string, string>>) => {
    const cookie = server.logIn(fields).then((session) => session.cookie)
    return async (path: string) =>
      await fetch(`${lab.base}${path}`, { headers: { cookie: await cookie }, redirect: 'manual' })
  }
  return {
    lab,
    ids: {
      outside: await begin(MAC, OTHER_NAME, 'order-0001'),
      inside: await begin(MINE, OWN_NAME, 'order-0002'),
    },
    anna: read({ username: 'anna', password: PERSON_PASSWORD }),
    otto: read({ username: 'otto', password: PERSON_PASSWORD }),
    operator: read({ password: PASSWORD }),
    async [Symbol.asyncDispose]() {
      await lab[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

test('only those that a server says are of machines in the scope, in lists and by their address', async () => {
  await using scene = await openScene()
  const { lab, ids, anna, otto, operator } = scene
  const seen = async (ask: typeof anna) => {
    const page = await ask('/ui/dashboard')
    assert.is(page.status, 200)
    const text = await page.text()
    const statuses = await Promise.all(
      [ids.inside, ids.outside].map(async (id) => (await ask(`/ui/capture?id=${id}`)).status),
    )
    return [text.includes('inside.img'), text.includes('canary'), ...statuses]
  }
  const [all, own, none] = [
    [true, true, 200, 200],
    [true, false, 200, 404],
    [false, false, 404, 404],
  ]
  assert.equal(await seen(otto), all)
  assert.equal(await seen(anna), none, 'no server has said whose they are')
  const say = async (holder: string, labels: readonly string[]) => {
    const captured = [
      { mac: MINE, labels },
      { mac: MAC, labels: ['rack'] },
    ]
    const body = { holder, refs: ['a'.repeat(64)], machines: [7], captured }
    assert.is((await lab.operator.post('/pins', body)).status, 204)
  }
  await say('one', ['lab', 'rack'])
  assert.equal([await seen(anna), await seen(otto), await seen(operator)], [own, all, all])
  await say('two', ['rack'])
  assert.equal(await seen(anna), none, 'another server says something else')
  await say('two', ['lab'])
  assert.equal(await seen(anna), own)
  await say('one', ['rack'])
  assert.equal(await seen(anna), none, 'its labels have changed')
  assert.is((await anna('/captures')).status, 403)
})

test.run()
