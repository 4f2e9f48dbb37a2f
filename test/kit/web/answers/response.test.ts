/** HEAD: the headers of a GET, and nothing that happens. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { diskOf, entryOf, REF, setOf } from '#test/support/server/machine-fixture.ts'
import { codeOf, exchange } from '#test/support/http/raw-http.ts'
import {
  asJson,
  checkUp,
  createTestServer,
  listen,
  type TestServer,
} from '#test/support/server/server.ts'

const MAC = '52:54:00:12:34:56'
const test = suite('HEAD')

/** With a live system, and a machine that is armed for it. */
async function createArmed() {
  const server = await createTestServer({ catalog: [entryOf(REF)] })
  const { vmlinuz, initrd, squashfs } = setOf('x86_64')
  for (const name of [vmlinuz, initrd, squashfs]) await server.putBootFile(name, 'bytes')
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  await server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [diskOf('S1')] }))
  const armed = await ask(
    `/machines/${MAC}`,
    asJson(
      { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' },
      'PUT',
    ),
  )
  assert.is(armed.status, 200)
  return { server, ask }
}

const head = (server: TestServer, path: string) => server.request(path, { method: 'HEAD' })
const recordsOf = async (server: TestServer) => ({
  machines: await server.machines.list(),
  events: await server.journal.list({ limit: 100 }),
})

test('of a script: its length, and no offer, however often', async () => {
  const { server } = await createArmed()
  await using _ = server
  const before = await recordsOf(server)
  for (let times = 0; times < 8; times += 1) {
    const answer = await head(server, `/pxe/${MAC}?buildarch=x86_64`)
    assert.is(answer.status, 200)
    assert.is(await answer.text(), '')
    assert.ok(Number(answer.headers.get('content-length')) > 100)
  }
  assert.equal(await recordsOf(server), before)
  const asked = await head(server, `/pxe/${MAC}?buildarch=x86_64`)
  const script = await (await server.request(`/pxe/${MAC}?buildarch=x86_64`)).text()
  assert.is(asked.headers.get('content-length'), String(Buffer.byteLength(script)))
  assert.match(script, 'vmlinuz')
  assert.not.match(script, 'loop')
  const [machine] = await server.machines.list()
  assert.is(machine?.cycle.offers, 1)
  await checkUp(server)
})

test('of a script: nobody is discovered', async () => {
  await using server = await createTestServer()
  const asked = await head(server, `/pxe/${MAC}`)
  assert.is(asked.status, 200)
  assert.is(await server.machines.count(), 0)
  const script = await (await server.request(`/pxe/${MAC}`)).text()
  assert.is(asked.headers.get('content-length'), String(Buffer.byteLength(script)))
  const nobody = await head(server, '/pxe/ff:ff:ff:ff:ff:ff')
  const exit = await (await server.request('/pxe/ff:ff:ff:ff:ff:ff')).text()
  assert.is(nobody.headers.get('content-length'), String(Buffer.byteLength(exit)))
  assert.is((await head(server, '/pxe/nonsense')).status, 400)
})

test('of a boot file: the machine is not taken for one that boots', async () => {
  const { server } = await createArmed()
  await using _ = server
  const before = await recordsOf(server)
  const asked = await head(server, `/boot/${setOf('x86_64').vmlinuz}?mac=${MAC}`)
  assert.equal([asked.status, asked.headers.get('content-length')], [200, '5'])
  assert.equal(await recordsOf(server), before)
  await server.request(`/boot/${setOf('x86_64').vmlinuz}?mac=${MAC}`)
  assert.is((await server.machines.list())[0]?.saw_flasher_boot, true)
})

test('of a plan: not with this method', async () => {
  const { server } = await createArmed()
  await using _ = server
  const before = await recordsOf(server)
  const asked = await head(server, `/pxe/${MAC}/plan`)
  assert.equal([asked.status, asked.headers.get('allow')], [405, 'GET'])
  assert.equal(await recordsOf(server), before)
})

test('of everything else: the headers that a GET has, over a socket too', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  await server.putBootFile('vmlinuz', 'bytes')
  await server.request(`/pxe/${MAC}`)
  const headersOf = async (method: string, path: string) => {
    const text = await exchange(
      http.port,
      `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    )
    const [top = '', body = ''] = text.split('\r\n\r\n')
    if (method === 'HEAD') assert.is(body, '')
    const [, ...headers] = top.split('\r\n').filter((line) => !line.startsWith('Date:'))
    return { code: codeOf(text), headers: headers.toSorted() }
  }
  const paths = [
    ['/healthz', '/version', '/pxe-bootstrap.ipxe', `/pxe/${MAC}`, '/boot/vmlinuz'],
    ['/boot/autoexec.ipxe', '/boot/none', '/docs/api', '/openapi.json', '/ui', '/ui/login'],
    ['/machines', '/ui/nothing', '/nothing', '/pxe/nonsense', '/a/../b', '/ui/dashboard?q=1'],
  ].flat()
  for (const path of paths) {
    const got = await headersOf('GET', path)
    assert.equal(await headersOf('HEAD', path), got, path)
    assert.ok(
      got.headers.some((line) => /^content-length: \d+$/i.test(line)),
      path,
    )
  }
})

test.run()
