/** Every route of the cache, asked by everybody: by people of the server that has its key, by programs, and by who is nobody there. */
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
import { EXPECTED, listUnmatched } from '#test/support/people/expected-routes.ts'
import { askEverything, askWith, openPeople, type Ask } from '#test/support/people/rights-matrix.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'
import { TOKEN } from '#test/support/server/image-cache.ts'

const test = suite('cache: matrix of rights')

/** `shares`: the state directory of the server, too; else its key alone. */
async function openScene(shares: boolean) {
  await using undo = new AsyncDisposableStack()
  const server = undo.use(await createCurrentServer())
  const other = undo.use(await createCurrentServer())
  const lab = undo.use(
    await openCaptureLab({
      ...(shares && { beside: join(server.dir, 'state.db') }),
      prepare(folder) {
        mkdirSync(dirname(secretOf(folder)), { recursive: true })
        copyFileSync(join(server.dir, 'session-secret'), secretOf(folder))
      },
    }),
  )
  const { base, cache, routes } = lab
  const request: Ask = (path, init) => fetch(`${base}${path}`, { redirect: 'manual', ...init })
  const people = (await openPeople(server, request)).map((one) =>
    // A token of the server is none of the cache.
    one.isToken ? { ...one, scopes: null, isScoped: false } : one,
  )
  const { cookie: foreign } = await other.logIn({ password: PASSWORD })
  await addPerson(server, 'lea', 'administrate')
  const { cookie } = await server.logIn({ username: 'lea', password: PERSON_PASSWORD })
  await server.state.peopleStore.remove(server.state.peopleStore.findByName('lea')?.id ?? '')
  const key = askWith(request, 'authorization', `Bearer ${TOKEN}`)
  const one = { isToken: false, isScoped: false, scopes: null } as const
  const wrong = `Bearer ${lab.sign('canary.img.zst')}`
  await cache.add({ src: 'https://images.invalid/debian-13.img.zst' })
  const token = lab.sign('canary-outside.img.zst')
  const source = { ...SOURCE, hostname: 'canary-host' }
  const begun = await lab.machine(token).begin('canary-outside.img.zst', source)
  const upload = { name: 'other.img', sha256: 'a'.repeat(64), size_bytes: 9 }
  const sent = await lab.operator.post('/uploads', upload)
  const [capture = '', uploaded = ''] = [begun, sent].map(({ body }) => String(body['id']))
  const held = undo.move()
  return {
    routes,
    askers: [
      { ...one, name: 'nobody', ask: request },
      { ...one, name: 'a wrong key', ask: askWith(request, 'authorization', wrong) },
      { ...one, name: 'its key', isToken: true, scopes: ['admin'], ask: key },
      ...people,
      { ...one, name: 'of another server', ask: askWith(request, 'cookie', foreign) },
      // Who has the key alone learns nothing of a removal, and ends as the session says.
      ...(shares
        ? [{ ...one, name: 'who was removed', ask: askWith(request, 'cookie', cookie) }]
        : []),
    ],
    expected: EXPECTED.cache,
    outside: {
      macs: [MAC],
      ids: [
        ['/uploads/', [uploaded]],
        ['', [capture]],
      ],
      fields: { id: capture },
    },
    snapshot: async () => [cache.rows(), cache.captures.list(), cache.uploads.list()],
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  } as const
}

for (const [what, shares] of [
  ['key', false],
  ['key and its state', true],
] as const) {
  test(`with the ${what} of a server: people do what their role says, and see nothing outside`, async () => {
    await using scene = await openScene(shares)
    assert.equal(listUnmatched(EXPECTED.cache, scene.routes), [])
    const { wrong, asked } = await askEverything(scene, null)
    assert.equal(wrong, [])
    assert.ok(asked > 400, `${asked}`)
  })
}

test.run()
