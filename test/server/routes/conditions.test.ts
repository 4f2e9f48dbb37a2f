/** A condition that does not hold is refused by every PUT and DELETE that there is, and nothing is changed. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Route } from '#kit/web/answers/route.ts'
import { asOperator, makeFolder, serveCache } from '#test/support/server/image-cache.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { entryOf, MAC, REF } from '#test/support/server/machine-fixture.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'

const test = suite('conditions')

/** What is there before, for the routes that look at conditions themselves. */
const THERE: Readonly<Record<string, object>> = {
  '/machines/:mac': {},
  '/channels/:name': { bty_image_ref: REF },
  '/first-boot/:name': {},
}
const CONDITIONS = [
  ['if-match', '"wrong"'],
  ['if-none-match', '*'],
] as const

const fill = (path: string) => path.replace(/:(?!mac)\w+/g, 'x').replace(':mac', MAC)

interface Asked {
  readonly routes: readonly Route[]
  readonly ask: (path: string, init?: RequestInit) => Promise<Response>
}

async function listOthers({ routes, ask }: Asked): Promise<readonly string[]> {
  const there = Object.entries(THERE).filter(([path]) => routes.some((each) => each.path === path))
  const read = () => Promise.all(there.map(async ([path]) => (await ask(fill(path))).text()))
  for (const [path, body] of there) {
    assert.is((await ask(fill(path), asJson(body, 'PUT'))).status, 200, path)
  }
  const before = await read()
  const others: string[] = []
  for (const { method, path } of routes) {
    if (method !== 'PUT' && method !== 'DELETE') continue
    for (const [name, value] of CONDITIONS) {
      const sent = method === 'PUT' ? asJson(THERE[path] ?? {}, method) : { method }
      const headers = new Headers(sent.headers)
      headers.set(name, value)
      const { status } = await ask(fill(path), { ...sent, headers })
      if (status !== 412) others.push(`${method} ${path} with ${name}: ${status}`)
      assert.equal(await read(), before, `${method} ${path} with ${name}`)
    }
  }
  return others
}

test('by the routes of both lines and of the cache', async () => {
  await using server = await createTestServer({ catalog: [entryOf(REF)] })
  await using earlier = await createEarlierServer()
  await using folder = await makeFolder()
  await using cache = await serveCache(folder.path)
  const asked: readonly Asked[] = [
    { routes: server.routes, ask: await server.operator() },
    { routes: earlier.routes, ask: await earlier.operator() },
    {
      routes: cache.routes,
      ask: (path, init = {}) => {
        const headers = new Headers([...new Headers(init.headers), ...Object.entries(asOperator)])
        return fetch(`${cache.base}${path}`, { ...init, headers })
      },
    },
  ]
  const own = asked.flatMap(({ routes }) => routes.filter(({ doc }) => doc?.refuses?.includes(412)))
  assert.ok(own.length >= 7, `${own.length}`)
  for (const each of asked) assert.equal(await listOthers(each), [])
})

test.run()
