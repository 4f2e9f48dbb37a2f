/** "GET /images", "GET /images/{name}" and "PUT /images/{name}", and the same of /boot. */
import { readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'

const test = suite('the earlier line: images')
const bytes = (text: string): RequestInit => ({ method: 'PUT', body: text })

test('the catalog has the fields of the table, sorted by name, and only what can be served', async () => {
  await using server = await createEarlierServer()
  await server.putImage('b.qcow2', 'QFI')
  await server.putImage('A.IMG', 'one')
  await server.putImage('notes.txt', 'no image')
  await server.putImage('.hidden.img', 'hidden')
  await writeFile(join(server.dir, 'outside.img'), 'secret')
  await symlink(join(server.dir, 'outside.img'), join(server.images, 'link.img'))
  const answer = await server.request('/images')
  assert.is(answer.status, 200)
  assert.equal(await answer.json(), [
    { name: 'A.IMG', path: join(server.images, 'A.IMG'), format: 'img', size_bytes: 3 },
    { name: 'b.qcow2', path: join(server.images, 'b.qcow2'), format: 'qcow2', size_bytes: 3 },
  ])
  assert.is((await server.request('/images/link.img')).status, 404)
})

test('Raspberry Pi Imager lists what it can write, with absolute addresses, and without a login', async () => {
  await using server = await createEarlierServer()
  await server.putImage('b.qcow2', 'QFI')
  await server.putImage('a b.img', 'one')
  await server.putImage('c.img.xz', 'packed')
  const answer = await server.request('/imager.json')
  assert.is(answer.status, 200)
  const { os_list: list } = Object(await answer.json())
  assert.equal(
    list.map(({ name, url, extract_size, extract_sha256 }: Readonly<Record<string, unknown>>) => [
      name,
      url,
      extract_size,
      extract_sha256,
    ]),
    [
      ['a b.img', 'http://flasher.test:8080/images/a%20b.img', 3, undefined],
      ['c.img.xz', 'http://flasher.test:8080/images/c.img.xz', undefined, undefined],
    ],
  )
  assert.match(list[0].icon, /^http:\/\/flasher\.test:8080\/static\/.*\/icon\.svg$/)
  const fetched = await server.request(new URL(list[0].url).pathname)
  assert.is(await fetched.text(), 'one')
})

const ELSEWHERE = ['a/b.img', '../b.img', '.b.img', 'a\\b.img', 'a\0b.img']

test('a percent sign in a name is one, also where it could be an escape', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const names = [
    '100%.img',
    '5% less.img',
    '%.img',
    'a%20b.img',
    'a b.img',
    '%25.img',
    'a%2520b.img',
    'a%2e.img',
    '%E9.img',
    '%ff%fe.img',
    'é+&?#;=~.img',
  ].toSorted()
  for (const name of names) {
    const path = `/images/${encodeURIComponent(name)}`
    assert.is((await ask(path, bytes(name))).status, 200, name)
    assert.is(await (await server.request(path)).text(), name)
  }
  const listed: unknown = await (await server.request('/images')).json()
  assert.equal(
    Object(listed)
      .map(({ name }: { readonly name: string }) => name)
      .toSorted(),
    names,
  )
  assert.equal((await readdir(server.images)).toSorted(), names)
  for (const name of [
    ...ELSEWHERE,
    'a%2fb.img',
    '%2e%2e.img',
    'a%252Fb.img',
    '%00.img',
    'a%5cb.img',
  ]) {
    assert.is((await ask(`/images/${encodeURIComponent(name)}`, bytes('x'))).status, 400, name)
  }
})

test('a name that reverses text is not taken', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const name = encodeURIComponent('gmi.\u202egnp.img')
  assert.is((await ask(`/images/${name}`, bytes('x'))).status, 400)
  assert.equal(await readdir(server.images), [])
})

test('an image is answered whole, in part, by its headers alone, or not at all', async () => {
  await using server = await createEarlierServer()
  await server.putImage('a b.img', '0123456789')
  const whole = await server.request('/images/a%20b.img')
  assert.equal([whole.status, await whole.text()], [200, '0123456789'])
  assert.is(whole.headers.get('accept-ranges'), 'bytes')
  const head = await server.request('/images/a%20b.img', { method: 'HEAD' })
  assert.equal(
    [head.status, head.headers.get('content-length'), await head.text()],
    [200, '10', ''],
  )
  const part = await server.request('/images/a%20b.img', { headers: { range: 'bytes=2-4' } })
  assert.equal(
    [part.status, part.headers.get('content-range'), await part.text()],
    [206, 'bytes 2-4/10', '234'],
  )
  const past = await server.request('/images/a%20b.img', { headers: { range: 'bytes=10-' } })
  assert.equal([past.status, past.headers.get('content-range')], [416, 'bytes */10'])
  assert.is((await server.request('/images/none.img')).status, 404)
})

test('hostile names lead nowhere, reading or writing', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  for (const name of [
    '.hidden.img',
    '%2e%2e%2fstate.db',
    '..%2f..%2fetc%2fpasswd',
    'a%5cb.img',
    'a%00b.img',
    'a%0ab.img',
    'x'.repeat(300),
  ]) {
    for (const folder of ['images', 'boot']) {
      const path = `/${folder}/${name}`
      for (const answer of [await ask(path), await ask(path, bytes('x'))]) {
        assert.ok([400, 404, 405].includes(answer.status), `${path}: ${answer.status}`)
        assert.not.match(await answer.text(), 'root:')
      }
    }
  }
  assert.equal(await readdir(server.images), [])
})

test('an upload needs a session, is renamed into place, and is listed at once', async () => {
  await using server = await createEarlierServer()
  assert.is((await server.request('/images/a.img', bytes('x'))).status, 401)
  const ask = await server.operator()
  await (await ask('/images')).text()
  const made = await ask('/images/a.img', bytes('first'))
  assert.equal(
    [made.status, await made.json()],
    [200, { name: 'a.img', size_bytes: 5, path: join(server.images, 'a.img') }],
  )
  await ask('/images/a.img', bytes('the second'))
  assert.is(await (await ask('/images/a.img')).text(), 'the second')
  const [listed] = await (await ask('/images')).json()
  assert.is(listed.size_bytes, 10)
  assert.equal(await readdir(server.images), ['a.img'])
  const [event] = await server.journal.list({ kind: 'images.uploaded', limit: 1 })
  assert.is(event?.summary, 'a.img was uploaded')
})

test('an upload that breaks off, or is too long, leaves what was there', async () => {
  await using server = await createEarlierServer({ env: { FLASHER_TUNING_MAX_UPLOAD_BYTES: '8' } })
  const ask = await server.operator()
  await server.putImage('a.img', 'whole')
  assert.is((await ask('/images/a.img', bytes('much too long'))).status, 413)
  const broken = new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from('part'))
      controller.error(new Error('the cable'))
    },
  })
  const init: RequestInit & { duplex: 'half' } = { method: 'PUT', body: broken, duplex: 'half' }
  assert.is((await ask('/images/a.img', init)).status, 400)
  assert.is(await (await ask('/images/a.img')).text(), 'whole')
  assert.equal(await readdir(server.images), ['a.img'])
})

test('an upload that no disk could hold is refused before it is taken', async () => {
  await using server = await createEarlierServer({
    env: { FLASHER_TUNING_MAX_UPLOAD_BYTES: '1000000 GiB' },
  })
  const ask = await server.operator()
  const headers = { 'content-length': String(900_000 * 2 ** 30) }
  const answer = await ask('/images/a.img', { ...bytes('x'), headers })
  assert.is(answer.status, 507)
  assert.match((await answer.json()).detail, 'free space')
})

test('boot files: open to read, a session to write', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const name = 'flasher-live-x86_64.vmlinuz'
  assert.is((await server.request(`/boot/${name}`)).status, 404)
  assert.is((await server.request(`/boot/${name}`, bytes('x'))).status, 401)
  assert.is((await ask(`/boot/${name}`, bytes('kernel'))).status, 200)
  assert.is(await (await server.request(`/boot/${name}`)).text(), 'kernel')
})

test.run()
