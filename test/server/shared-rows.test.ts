/** The rows that both specifications have in the same words, against the servers of both lines. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { LINES, type LineServer } from '#test/support/lines/both-lines.ts'
import { readEvents } from '#test/support/server/event-reader.ts'
import { cookieOf, PASSWORD } from '#test/support/server/assembled.ts'
import { asJson } from '#test/support/server/server.ts'

const MAC = '52:54:00:12:34:56'
const post: RequestInit = { method: 'POST' }

for (const line of LINES) {
  const test = suite(`rows of both lines: ${line.name}`)
  const with_ = (work: (server: LineServer) => Promise<void>) => async () => {
    await using server = await line.create()
    await work(server)
  }

  test(
    'GET /healthz and GET /version',
    with_(async ({ request }) => {
      assert.equal(await (await request('/healthz')).json(), { status: 'ok' })
      assert.equal(await (await request('/version')).json(), { version: '1.2.3' })
    }),
  )

  test(
    'GET /pxe-bootstrap.ipxe: one chain command, to the host that was asked',
    with_(async ({ request }) => {
      const answer = await request('/pxe-bootstrap.ipxe', { headers: { host: '10.0.0.7:8080' } })
      assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/)
      const chains = (await answer.text()).match(/^chain .*$/gm) ?? []
      assert.is(chains.length, 1)
      assert.match(chains[0] ?? '', /^chain http:\/\/10\.0\.0\.7:8080\/pxe\/\$\{net0\/mac:hexhyp\}/)
    }),
  )

  test(
    'GET /pxe/{mac}: an unknown machine is recorded, and seen again',
    with_(async ({ request, operator }) => {
      const ask = await operator()
      const script = await request(`/pxe/${MAC.toUpperCase().replaceAll(':', '-')}`)
      assert.match(script.headers.get('content-type') ?? '', /^text\/plain/)
      assert.match(await script.text(), /^#!ipxe\n/)
      const first = await (await ask(`/machines/${MAC}`)).json()
      assert.is(first.mac, MAC)
      assert.ok(first.discovered_at)
      await request(`/pxe/${MAC}`)
      const again = await (await ask(`/machines/${MAC}`)).json()
      assert.is(again.discovered_at, first.discovered_at)
      assert.ok(again.last_seen_at >= first.last_seen_at)
      assert.is((await request('/pxe/not-a-mac')).status, 400)
    }),
  )

  test(
    'POST /pxe/{mac}/done: last_flashed_at is set; nothing is made of an unknown machine',
    with_(async ({ request, operator, machines }) => {
      const ask = await operator()
      assert.is((await request(`/pxe/${MAC}/done`, post)).status, 404)
      assert.is(await machines.count(), 0)
      await request(`/pxe/${MAC}`)
      assert.is((await request(`/pxe/${MAC}/done`, post)).status, 204)
      assert.ok((await (await ask(`/machines/${MAC}`)).json()).last_flashed_at)
    }),
  )

  test(
    'PUT, GET and DELETE /machines/{mac}',
    with_(async ({ operator }) => {
      const ask = await operator()
      assert.is((await ask(`/machines/${MAC}`)).status, 404)
      const made = await ask(`/machines/${MAC}`, asJson(line.upsert, 'PUT'))
      assert.is(made.status, 200)
      const machine = await made.json()
      assert.equal(await (await ask(`/machines/${MAC}`)).json(), machine)
      assert.equal(await (await ask('/machines')).json(), [machine])
      assert.is(machine.discovered_at, null)
      const refused = await ask(`/machines/${MAC}`, asJson(line.wrong, 'PUT'))
      assert.is(refused.status, 422)
      const [field] = (await refused.json()).detail
      assert.equal(field.loc, ['body', ...Object.keys(line.wrong)])
      assert.is((await ask('/machines/zz', asJson(line.upsert, 'PUT'))).status, 400)
      assert.is((await ask(`/machines/${MAC}`, { method: 'DELETE' })).status, 204)
      assert.is((await ask(`/machines/${MAC}`, { method: 'DELETE' })).status, 404)
    }),
  )

  test(
    'protected routes: 401 as JSON, pages lead to the login',
    with_(async ({ request, machines }) => {
      for (const [method, path] of [
        ['GET', '/machines'],
        ['GET', `/machines/${MAC}`],
        ['PUT', `/machines/${MAC}`],
        ['DELETE', `/machines/${MAC}`],
        ['PUT', '/boot/x'],
        ['GET', '/events/machines'],
      ] as const) {
        const answer = await request(path, { method })
        assert.is(answer.status, 401, `${method} ${path}`)
        assert.equal(await answer.json(), { detail: 'login required' })
      }
      const page = await request('/ui/dashboard')
      assert.is(page.status, 303)
      assert.match(page.headers.get('location') ?? '', /^\/ui\/login/)
      assert.is((await request('/ui')).headers.get('location'), '/ui/dashboard')
      assert.is(await machines.count(), 0)
    }),
  )

  test(
    'the session: its cookie, a wrong password, the end of it',
    with_(async ({ request }) => {
      const login = (password: string) =>
        request('/ui/login', { method: 'POST', body: new URLSearchParams({ password }) })
      const wrong = await login('wrong')
      assert.equal([wrong.status, cookieOf(wrong)], [401, ''])
      const right = await login(PASSWORD)
      const header = right.headers.getSetCookie().join()
      for (const part of ['flasher-token=', 'SameSite=Strict', 'HttpOnly', 'Max-Age=604800']) {
        assert.match(header.toLowerCase(), part.toLowerCase())
      }
      const headers = { cookie: cookieOf(right) }
      assert.is((await request('/machines', { headers })).status, 200)
      const out = await request('/ui/logout', { method: 'POST', headers })
      assert.match(out.headers.getSetCookie().join(), /flasher-token=;/)
      assert.is((await request('/machines', { headers })).status, 401)
      assert.is(
        (await request('/machines', { headers: { cookie: 'flasher-token=x' } })).status,
        401,
      )
    }),
  )

  test(
    'GET /boot/{name}: open, in parts, and never outside its folder',
    with_(async ({ request, operator, putBootFile }) => {
      await putBootFile('vmlinuz', '0123456789')
      const part = await request('/boot/vmlinuz', { headers: { range: 'bytes=1-3' } })
      assert.equal([part.status, await part.text()], [206, '123'])
      const head = await request('/boot/vmlinuz', { method: 'HEAD' })
      assert.equal([head.status, head.headers.get('content-length')], [200, '10'])
      assert.is((await request('/boot/none')).status, 404)
      assert.is((await request('/boot/%2e%2e%2fstate.db')).status, 400)
      const ask = await operator()
      assert.is((await ask('/boot/new', { method: 'PUT', body: 'bytes' })).status, 200)
      assert.is(await (await request('/boot/new')).text(), 'bytes')
    }),
  )

  test(
    'GET /events/machines: the table on connect, and after every change',
    with_(async ({ request, operator }) => {
      const ask = await operator()
      const answer = await ask('/events/machines')
      assert.match(answer.headers.get('content-type') ?? '', /^text\/event-stream/)
      const events = readEvents(answer)
      const row = MAC.replaceAll(':', '-')
      const isShown = ({ name, data }: { name: string; data: string }) =>
        name === 'machines-update' && (data.includes(MAC) || data.includes(row))
      assert.is((await events.next())?.name, 'machines-update')
      await request(`/pxe/${MAC}`)
      assert.ok(await events.until(isShown), 'discovery')
      await ask(`/machines/${MAC}`, { method: 'DELETE' })
      assert.ok(await events.until((event) => !isShown(event)), 'DELETE')
      await ask(`/machines/${MAC}`, asJson(line.upsert, 'PUT'))
      assert.ok(await events.until(isShown), 'PUT')
      await events.close()
    }),
  )

  test(
    'an InfiniBand card and a processor without a live system get the disk',
    with_(async ({ request, machines }) => {
      const port = '00-02-c9-03-00-29-26-df'
      const cards = [port, `80-00-02-08-fe-80-00-00-00-00-00-00-${port}`]
      for (const card of [
        ...cards,
        ...cards.map((each) => each.replaceAll('-', ':').toUpperCase()),
      ]) {
        for (const path of [`/pxe/${card}`, `/pxe/${card}?buildarch=x86_64`]) {
          const answer = await request(path)
          assert.is(answer.status, 200, path)
          assert.match(await answer.text(), /^#!ipxe\n[^]*sanboot .*\|\| exit\n$/)
        }
        assert.match(await (await request(`/pxe/${card}.grub`)).text(), 'chainloader')
      }
      assert.is(await machines.count(), 0)
      assert.is((await request(`/pxe/${cards[0]}-00`)).status, 400)
      for (const arch of ['riscv64', 'riscv32', 'arm32', 'loong64']) {
        const script = await (await request(`/pxe/${MAC}?buildarch=${arch}`)).text()
        assert.match(script, 'boots its own disk', arch)
        assert.not.match(script, /^kernel /m)
      }
    }),
  )

  test(
    'another site can send no form, and a bad Host gets no script',
    with_(async ({ request, operator, machines }) => {
      const ask = await operator()
      const put = asJson(line.upsert, 'PUT')
      const headers = { ...put.headers, origin: 'http://evil.test' }
      assert.is((await ask(`/machines/${MAC}`, { ...put, headers })).status, 403)
      for (const host of ['x y', 'x;reboot', 'evil@x', '${net0/mac}']) {
        assert.is((await request(`/pxe/${MAC}`, { headers: { host } })).status, 400, host)
      }
      assert.is(await machines.count(), 0)
    }),
  )

  test(
    'HEAD answers wherever GET does, but for plans',
    with_(async ({ routes, request, operator, putBootFile }) => {
      const ask = await operator()
      await request(`/pxe/${MAC}`)
      await putBootFile('vmlinuz', 'bytes')
      for (const { method, path, answersHead } of routes) {
        if (method !== 'GET' || answersHead === false) continue
        const target = path.replace(':mac', MAC).replace(':name', 'vmlinuz')
        const [head, got] = [await ask(target, { method: 'HEAD' }), await ask(target)]
        await got.body?.cancel()
        assert.is(head.status, got.status, path)
        assert.is(await head.text(), '', path)
      }
    }),
  )

  test(
    'the API document names every route that is no page, and schemas that are there',
    with_(async ({ routes, request }) => {
      const document = await (await request('/openapi.json')).json()
      for (const { method, path, doc } of routes) {
        if (doc === undefined) continue
        const entry = document.paths[path.replaceAll(/:(\w+)/g, '{$1}')]
        assert.is(entry?.[method.toLowerCase()]?.summary, doc.summary, `${method} ${path}`)
      }
      for (const [, name = ''] of JSON.stringify(document).matchAll(
        /#\/components\/schemas\/(\w+)/g,
      )) {
        assert.ok(document.components.schemas[name], name)
      }
    }),
  )

  test(
    'no body and no path makes any route fail',
    with_(async ({ routes, log, operator }) => {
      const ask = await operator()
      const names = fc.oneof(fc.constant(MAC), fc.string({ unit: 'binary', maxLength: 12 }))
      const bodies = fc.oneof(fc.json(), fc.string({ unit: 'binary' }))
      const rows = routes.filter(({ path }) => !/logout|\*\*|events\/machines/.test(path))
      await fc.assert(
        fc.asyncProperty(fc.constantFrom(...rows), names, bodies, async (route, name, body) => {
          const path = route.path.replaceAll(/:\w+/g, () => encodeURIComponent(name.toWellFormed()))
          const headers =
            route.takes === 'json' ? { 'content-type': 'application/json' } : undefined
          const init: RequestInit = {
            method: route.method,
            ...(route.method === 'GET' ? {} : { body, ...(headers && { headers }) }),
          }
          const answer = await ask(path, init)
          await answer.body?.cancel()
          assert.ok(answer.status < 500, `${route.method} ${path}: ${answer.status}`)
        }),
        { numRuns: 300 },
      )
      assert.equal(
        log.filter((text) => text.includes('a bug')),
        [],
      )
    }),
  )

  test.run()
}
