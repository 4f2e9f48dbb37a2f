import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { REF } from '#test/support/server/machine-fixture.ts'
import { exchange } from '#test/support/http/raw-http.ts'
import { cookieOf, PASSWORD } from '#test/support/server/assembled.ts'
import { asJson, createTestServer, listen, type TestServer } from '#test/support/server/server.ts'

/** What a streamed body asks for; the DOM's types know it not. */
const HALF: object = { duplex: 'half' }
const MAC = '52:54:00:12:34:56'
const test = suite('boot files')

test('an upload with a condition, which this route does not support, replaces nothing', async () => {
  await using server = await createTestServer()
  await server.putBootFile('vmlinuz', 'before')
  const ask = await server.operator()
  const put = (headers: Record<string, string>) =>
    ask('/boot/vmlinuz', { method: 'PUT', headers, body: 'after' })
  for (const name of ['If-None-Match', 'If-Match']) {
    const refused = await put({ [name]: '*' })
    assert.is(refused.status, 412)
    assert.match(await refused.text(), name)
  }
  assert.is(await (await server.request('/boot/vmlinuz')).text(), 'before')
  assert.ok((await put({})).ok)
  assert.is(await (await server.request('/boot/vmlinuz')).text(), 'after')
})

test('whole files, parts, and what one has already', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  await server.putBootFile('vmlinuz', 'abcdefghij')
  const get = (headers: Record<string, string> = {}, method = 'GET') =>
    fetch(`${http.url}/boot/vmlinuz`, { method, headers })
  const whole = await get({ 'accept-encoding': 'gzip, br' })
  assert.is(whole.status, 200)
  assert.is(await whole.text(), 'abcdefghij')
  assert.is(whole.headers.get('content-length'), '10')
  assert.is(whole.headers.get('content-encoding'), null)
  assert.is(whole.headers.get('accept-ranges'), 'bytes')
  assert.match(whole.headers.get('content-disposition') ?? '', /^attachment/)
  const etag = whole.headers.get('etag') ?? ''
  const modified = whole.headers.get('last-modified') ?? ''
  const head = await get({}, 'HEAD')
  assert.is(head.headers.get('content-length'), '10')
  assert.is(head.headers.get('etag'), etag)
  const rows = [
    [{ range: 'bytes=0-3' }, 206, 'abcd', 'bytes 0-3/10'],
    [{ range: 'bytes=7-' }, 206, 'hij', 'bytes 7-9/10'],
    [{ range: 'bytes=-2' }, 206, 'ij', 'bytes 8-9/10'],
    [{ range: 'bytes=5-99' }, 206, 'fghij', 'bytes 5-9/10'],
    [{ range: 'bytes=10-' }, 416, '', 'bytes */10'],
    [{ range: 'bytes=-0' }, 416, '', 'bytes */10'],
    [{ range: 'bytes=3-1' }, 200, 'abcdefghij', null],
    [{ range: 'bytes=0-1,3-4' }, 200, 'abcdefghij', null],
    [{ range: 'lines=1-2' }, 200, 'abcdefghij', null],
    [{ range: 'bytes=0-3', 'if-range': etag }, 206, 'abcd', 'bytes 0-3/10'],
    [{ range: 'bytes=0-3', 'if-range': modified }, 206, 'abcd', 'bytes 0-3/10'],
    [{ range: 'bytes=0-3', 'if-range': '"other"' }, 200, 'abcdefghij', null],
    [{ 'if-none-match': etag }, 304, '', null],
    [{ 'if-none-match': `"x", W/${etag}` }, 304, '', null],
    [{ 'if-none-match': '"x"' }, 200, 'abcdefghij', null],
    [{ 'if-modified-since': modified }, 304, '', null],
  ] as const
  for (const [headers, status, text, range] of rows) {
    const answer = await get(headers)
    assert.is(answer.status, status, JSON.stringify(headers))
    assert.is(await answer.text(), text, JSON.stringify(headers))
    assert.is(answer.headers.get('content-range'), range)
  }
})

test('large files arrive whole, also when they are replaced meanwhile', async () => {
  await using server = await createTestServer({
    env: { FLASHER_TUNING_MAX_UPLOAD_BYTES: String(16 * 1024 * 1024) },
  })
  await using http = await listen(server)
  const bytes = Buffer.alloc(8 * 1024 * 1024, 'a')
  await server.putBootFile('squashfs', bytes)
  const answer = await fetch(`${http.url}/boot/squashfs`)
  const ask = await server.operator()
  const put = await ask('/boot/squashfs', { method: 'PUT', body: Buffer.alloc(100, 'b') })
  assert.is(put.status, 200)
  assert.ok(Buffer.from(await answer.arrayBuffer()).equals(bytes))
  assert.is(await (await fetch(`${http.url}/boot/squashfs`)).text(), 'b'.repeat(100))
})

test('uploads are streamed, capped and put on record', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const put = (name: string, body: RequestInit['body']) =>
    ask(`/boot/${name}`, { method: 'PUT', body: body ?? null, ...HALF })
  const done = await put('initrd', 'bytes')
  assert.equal(await done.json(), { name: 'initrd', size_bytes: 5 })
  assert.is(await (await server.request('/boot/initrd')).text(), 'bytes')
  assert.equal(await (await put('empty', '')).json(), { name: 'empty', size_bytes: 0 })
  assert.is(await (await server.request('/boot/empty')).text(), '')
  const tooLong = await put('initrd', new Uint8Array(1024 * 1024 + 1))
  assert.is(tooLong.status, 413)
  assert.type((await tooLong.json()).detail, 'string')
  const endless = new ReadableStream({
    pull(controller) {
      controller.enqueue(new Uint8Array(64 * 1024))
    },
  })
  const cut = await put('initrd', endless)
  assert.is(cut.status, 413)
  assert.equal((await readdir(server.boot)).toSorted(), ['empty', 'initrd'])
  assert.is(await (await server.request('/boot/initrd')).text(), 'bytes')
  const [event] = await server.journal.list({ subject_kind: 'netboot', limit: 9 })
  assert.is(event?.kind, 'netboot.artifacts.uploaded')
  assert.is((await put('autoexec.ipxe', 'x')).status, 400)
})

test('nothing outside the folder is served or written, however it is spelled', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  await writeFile(join(server.dir, 'secret'), 'secret')
  await mkdir(join(server.boot, 'folder'))
  await symlink(join(server.dir, 'secret'), join(server.boot, 'link'))
  await symlink('/dev/zero', join(server.boot, 'zero'))
  await server.putBootFile('.hidden', 'secret')
  const names = [
    '../secret',
    '..%2fsecret',
    '..%2Fsecret',
    '%2e%2e%2fsecret',
    '%2e%2e/secret',
    '..%5csecret',
    '..\\secret',
    '%252e%252e%252fsecret',
    '..%252fsecret',
    '..%c0%afsecret',
    '..;/secret',
    'folder/../../secret',
    'folder',
    'folder/',
    '.',
    '..',
    '%2e',
    '',
    '.hidden',
    '%2ehidden',
    'link',
    'zero',
    'x%00',
    'vmlinuz%0d%0aset-cookie:a=b',
    `${'x'.repeat(300)}`,
    '%2Fetc%2Fpasswd',
    '/etc/passwd',
    'C:%5cx',
  ]
  const ask = await server.operator()
  const cookie = await sessionOf(server)
  for (const name of names) {
    for (const method of ['GET', 'HEAD', 'PUT']) {
      const status = await raw(http.port, method, `/boot/${name}`, method === 'PUT' ? cookie : '')
      const isSafe = status.code >= 300 && status.code < 500
      assert.ok(isSafe || isOverwrite(method, name), `${method} ${name}: ${status.code}`)
      assert.not.match(status.text, 'secret')
      assert.not.match(status.text, 'set-cookie: a')
    }
  }
  assert.equal(
    (await readdir(server.dir)).filter((name) => !name.startsWith('state.db')).toSorted(),
    ['backup-jobs', 'backups', 'boot', 'fetches', 'secret', 'session-secret'],
  )
  assert.is((await ask('/machines')).status, 200)
})

/** A plain name in the folder, which an operator may replace. */
const isOverwrite = (method: string, name: string) =>
  method === 'PUT' && ['link', 'zero', 'C:%5cx'].includes(name)

test('a machine that fetches a file is seen', async () => {
  await using server = await createTestServer()
  await server.putBootFile('vmlinuz', 'bytes')
  const ask = await server.operator()
  await ask(
    `/machines/${MAC}`,
    asJson(
      { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' },
      'PUT',
    ),
  )
  await server.request(`/boot/none?mac=${MAC}`)
  const isMarked = async () => (await server.machines.list())[0]?.saw_flasher_boot
  assert.is(await isMarked(), false)
  assert.is((await server.request(`/boot/vmlinuz?mac=${MAC}`)).status, 200)
  assert.is(await isMarked(), true)
  assert.ok((await (await ask(`/machines/${MAC}`)).json()).last_seen_at)
  assert.is((await server.request('/boot/vmlinuz?mac=nonsense')).status, 200)
  assert.is((await server.request('/boot/vmlinuz?mac=52:54:00:00:00:99')).status, 200)
  assert.is(await server.machines.count(), 1)
})

test('autoexec.ipxe names this server', async () => {
  await using server = await createTestServer()
  const script = await (await server.request('/boot/autoexec.ipxe')).text()
  assert.match(script, 'http://flasher.test:8080/pxe-bootstrap.ipxe')
})

test.run()

async function sessionOf(server: TestServer): Promise<string> {
  const body = new URLSearchParams({ password: PASSWORD })
  return cookieOf(await server.request('/ui/login', { method: 'POST', body }))
}

/** The path goes out as it is written: no client tidies it up. */
async function raw(port: number, method: string, path: string, cookie: string) {
  const text = await exchange(
    port,
    `${method} ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 0\r\ncookie: ${cookie}\r\n\r\n`,
  )
  return { code: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0), text }
}
