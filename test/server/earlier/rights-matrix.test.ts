/** Every route of the earlier line, asked by everybody: nobody who comes from another server gets in or changes anything. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { OUTSIDE } from '#test/support/people/canaries.ts'
import { createCurrentServer } from '#test/support/people/current-server.ts'
import { EXPECTED } from '#test/support/people/expected-routes.ts'
import { askEverything, openPeople, openPrograms } from '#test/support/people/rights-matrix.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('the earlier line: matrix of rights')

/** Both servers sign with it: what tells them apart is whom they know. */
const env = { FLASHER_SERVER_SESSION_SECRET: 'a-key-that-both-of-these-servers-have' }

const put = (body: string) => ({ method: 'PUT', body })

async function openScene() {
  await using undo = new AsyncDisposableStack()
  const other = undo.use(await createCurrentServer(env))
  const server = undo.use(await createEarlierServer({ env }))
  const { state, request, routes, images, boot, dir } = server
  const operator = await server.operator()
  const fields = { hostname: 'canary-host', image: 'canary.img', provisioning_mode: 'cloud-init' }
  for (const [path, init] of [
    [`/machines/${OUTSIDE}`, asJson(fields, 'PUT')],
    [`/machines/${OUTSIDE}/provision/user-data`, put('#cloud-config\ncanary: canary-data')],
    ['/images/canary', put('canary-image')],
    ['/boot/canary', put('canary-boot')],
  ] as const) {
    assert.ok((await operator(path, init)).ok, path)
  }
  const provision = join(dir, 'state/provision')
  const snapshot = async () => [
    server.machines.peekAll().map((machine) => ({ ...machine, last_seen_at: null })),
    (await state.tokens.list()).map((token) => ({ ...token, last_used_at: null })),
    state.runs.list({ limit: 100 }),
    ...(await Promise.all([images, boot, provision].map(readAll))),
  ]
  const strangers = (await openPeople(other, request))
    .filter(({ scopes }) => scopes?.includes('admin'))
    .map((one) => ({ ...one, scopes: null }))
  const held = undo.move()
  return {
    routes,
    askers: [...(await openPrograms(state.tokens, request)), ...strangers],
    expected: EXPECTED.server,
    outside: { macs: [OUTSIDE], ids: [['', ['1']]] },
    snapshot,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  } as const
}

async function readAll(folder: string) {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = found
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name))
  return await Promise.all(files.map(async (path) => [path, await readFile(path, 'utf8')]))
}

test('a program does what its scope says, and people of a server with the same key are nobody', async () => {
  await using scene = await openScene()
  const { wrong, asked } = await askEverything(scene, null)
  assert.equal(wrong, [])
  assert.ok(asked > 500, `${asked}`)
})

test.run()
