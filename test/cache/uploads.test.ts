import { createHash } from 'node:crypto'
import { readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import * as http from 'node:http'
import { request as openRequest } from 'node:http'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blobUrl } from '#engine/catalog/rules/cache-entry.ts'
import { makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import {
  asOperator,
  bring,
  makeFolder,
  QUIET,
  serveCache,
  startCache,
  until,
} from '#test/support/server/image-cache.ts'

const test = suite('cache: uploads in parts')
const BYTES = makeBytes(1_000_000)
const SHA256 = createHash('sha256').update(BYTES).digest('hex')
const PART = 300_000

interface Asked {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

const call = (base: string, headers: Readonly<Record<string, string>> = asOperator) => {
  async function ask(method: string, path: string, body?: BodyInit, more = {}): Promise<Asked> {
    const answer = await fetch(`${base}${path}`, {
      method,
      headers: { ...headers, ...more },
      ...(body === undefined ? {} : { body }),
    })
    const text = await answer.text()
    return { status: answer.status, body: text === '' ? {} : Object(JSON.parse(text)) }
  }
  return {
    ask,
    create: (fields: object) =>
      ask('POST', '/uploads', JSON.stringify(fields), { 'content-type': 'application/json' }),
    send: (id: unknown, from: number, to: number, bytes = BYTES) =>
      ask('PATCH', `/uploads/${id}`, new Uint8Array(bytes.subarray(from, to)), {
        'content-range': `bytes ${from}-${to - 1}/${bytes.length}`,
      }),
    complete: (id: unknown) => ask('POST', `/uploads/${id}/complete`),
  }
}

const fileOf = (name: string, more: object = {}) => ({ name, size_bytes: BYTES.length, ...more })

test('a file in parts is offered at once, with the digest that was computed on the way', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path, { settleMs: 60_000 })
  const api = call(served.base)
  const name = 'Débian 13 (日本語) 100%.img.zst'
  const { status, body } = await api.create(fileOf(name, { sha256: SHA256.toUpperCase() }))
  assert.equal([status, body['offset'], body['name']], [201, 0, name])
  for (let from = 0; from < BYTES.length; from += PART) {
    const to = Math.min(BYTES.length, from + PART)
    const sent = await api.send(body['id'], from, to)
    assert.equal([sent.status, sent.body['offset']], [200, to])
    assert.is(served.cache.rows().length, 0, 'nothing is offered before all of it is here')
  }
  assert.equal(await api.complete(body['id']), {
    status: 201,
    body: { name, sha256: SHA256, size_bytes: BYTES.length },
  })
  const [row] = served.cache.rows()
  assert.equal([row?.state, row?.kind, row?.entry.sha256], ['ready', 'file', SHA256])
  assert.ok((await readFile(join(folder.path, name))).equals(BYTES))
  assert.equal((await api.ask('GET', '/uploads')).body, { uploads: [] })
  assert.equal(await readdir(join(folder.path, '.cache/uploads')), [])
})

test('a part that breaks off stays as far as it came, and the rest follows', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const api = call(served.base)
  const { body } = await api.create(fileOf('x.img'))
  const id = String(body['id'])
  const part = join(folder.path, '.cache/uploads', id)
  await breakOff(served.base, id, async () => (await stat(part).catch(() => null))?.size === PART)
  await until(() => served.cache.uploads.find(id).isReceiving === false)
  assert.is((await api.ask('GET', `/uploads/${id}`)).body['offset'], PART)
  assert.equal(await api.send(id, 0, PART), {
    status: 409,
    body: { detail: `the upload continues at byte ${PART}` },
  })
  assert.is((await api.send(id, PART, BYTES.length)).status, 200)
  assert.is((await api.complete(id)).body['sha256'], SHA256)
})

/** Sends the beginning of a part that promises all bytes; closes the connection once it has arrived. */
async function breakOff(base: string, id: string, hasArrived: () => Promise<boolean>) {
  const sending = openRequest(`${base}/uploads/${id}`, {
    method: 'PATCH',
    headers: {
      ...asOperator,
      'content-length': BYTES.length,
      'content-range': `bytes 0-${BYTES.length - 1}/${BYTES.length}`,
    },
  })
  const ended = new Promise<void>((resolve) => {
    sending.on('close', resolve).on('error', () => undefined)
  })
  sending.write(BYTES.subarray(0, PART))
  await until(hasArrived)
  sending.destroy()
  await ended
}

test('a killed cache continues at the last part that was safe, and trusts nothing behind it', async () => {
  await using state = await makeFolder()
  let id: unknown
  {
    await using program = await startCache(state.path)
    const api = call(program.base, { authorization: `Bearer ${program.token}` })
    id = (await api.create(fileOf('x.img', { version: '1' }))).body['id']
    assert.is((await api.send(id, 0, PART)).status, 200)
    await program.kill('SIGKILL')
  }
  const part = join(state.path, 'cache/.cache/uploads', String(id))
  // As if the kernel had lost what came behind the part, and left zeros.
  await truncate(part, PART + 5000)
  await using program = await startCache(state.path)
  const api = call(program.base, { authorization: `Bearer ${program.token}` })
  const again = await api.create(fileOf('x.img', { version: '1' }))
  assert.equal([again.status, again.body['id'], again.body['offset']], [200, id, PART])
  assert.is((await api.send(id, PART, BYTES.length)).status, 200)
  assert.is((await api.complete(id)).body['sha256'], SHA256)
})

test('another version of the file, or one without a version, is another upload', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const api = call(served.base)
  const ids = []
  for (const more of [{ version: '1' }, { version: '2' }, {}, {}]) {
    ids.push((await api.create(fileOf('x.img', more))).body['id'])
  }
  assert.is(new Set(ids).size, 4)
  assert.is((await api.create(fileOf('x.img', { version: '1' }))).body['id'], ids[0])
})

test('no image is ever replaced', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const api = call(served.base)
  const [one, two] = [await api.create(fileOf('x.img')), await api.create(fileOf('x.img'))]
  for (const { body } of [one, two]) await api.send(body['id'], 0, BYTES.length)
  assert.is((await api.complete(one.body['id'])).status, 201)
  const second = await api.complete(two.body['id'])
  assert.equal(second, {
    status: 409,
    body: { detail: 'an image named x.img is in the cache already' },
  })
  assert.is((await api.create(fileOf('x.img'))).status, 409)
  // One that came into the folder a moment ago, and that no scan has seen.
  const { body } = await api.create(fileOf('y.img'))
  await api.send(body['id'], 0, BYTES.length)
  await writeFile(join(folder.path, 'y.img'), 'theirs')
  assert.is((await api.complete(body['id'])).status, 409)
  assert.is(await readFile(join(folder.path, 'y.img'), 'utf8'), 'theirs')
  await served.cache.add({ name: 'z.img', src: 'https://h.invalid/z.img' })
  assert.is((await api.create(fileOf('z.img'))).status, 409)
})

test('a wrong digest keeps nothing', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const api = call(served.base)
  const { body } = await api.create(fileOf('x.img', { sha256: '0'.repeat(64) }))
  await api.send(body['id'], 0, BYTES.length)
  const ended = await api.complete(body['id'])
  assert.is(ended.status, 422)
  assert.match(String(ended.body['detail']), /has the SHA-256/)
  assert.equal(served.cache.rows(), [])
  assert.is((await api.ask('GET', `/uploads/${body['id']}`)).status, 404)
})

const HOSTILE = [
  '',
  '.img',
  '../x.img',
  'a/b.img',
  'a\\b.img',
  '.hidden.img',
  'x.img\0',
  'x\n.img',
  '\ud800.img',
  'gmi.\u202egnp.img',
  `${'é'.repeat(130)}.img`,
  'x.tar.gz',
  'x.iso',
  'x.img.sha256',
]

test('hostile names, sizes and ranges are refused, and leave nothing behind', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const api = call(served.base)
  for (const name of HOSTILE) {
    assert.is((await api.create(fileOf(name))).status, 422, JSON.stringify(name))
  }
  const bodies = [
    { size_bytes: 0 },
    { size_bytes: -1 },
    { size_bytes: 1.5 },
    { size_bytes: 2 ** 47 },
    { sha256: 'short' },
    { folder: '/etc' },
  ]
  for (const more of bodies)
    assert.is((await api.create({ ...fileOf('x.img'), ...more })).status, 422)
  assert.is((await api.create({ name: 'x.img', size_bytes: 2 ** 46 })).status, 507)
  const { body } = await api.create(fileOf('x.img'))
  const path = `/uploads/${body['id']}`
  const ranges = [
    '',
    'bytes 0-9/*',
    'bytes 0-9/10',
    'bytes 5-1/1000000',
    `bytes 0-${2 ** 40}/1000000`,
  ]
  for (const range of ranges) {
    const sent = await api.ask('PATCH', path, 'x', { 'content-range': range })
    assert.is(sent.status, 400, range)
  }
  const long = await api.ask('PATCH', path, 'xyz', { 'content-range': 'bytes 0-1/1000000' })
  assert.is(long.status, 413)
  assert.is((await api.complete(body['id'])).status, 409)
  assert.is(
    (await api.ask('PATCH', '/uploads/none', 'x', { 'content-range': 'bytes 0-0/1' })).status,
    404,
  )
  assert.is((await api.ask('DELETE', path)).status, 204)
  assert.equal(await readdir(join(folder.path, '.cache/uploads')), [])
  assert.equal(await readdir(folder.path), ['.cache'])
})

test('nobody without a session or token gets in, and no other site', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  const { body } = await call(served.base).create(fileOf('x.img'))
  const stranger = call(served.base, {})
  const path = `/uploads/${body['id']}`
  for (const [method, at] of [
    ['GET', '/uploads'],
    ['POST', '/uploads'],
    ['GET', path],
    ['PATCH', path],
    ['POST', `${path}/complete`],
    ['DELETE', path],
  ] as const) {
    assert.is((await stranger.ask(method, at)).status, 401, `${method} ${at}`)
  }
  const elsewhere = { ...asOperator, 'sec-fetch-site': 'cross-site' }
  assert.is((await call(served.base, elsewhere).create(fileOf('y.img'))).status, 403)
  assert.is(served.cache.uploads.list().length, 1)
})

test('uploads are limited in number, and removed a day after their last part', async () => {
  await using folder = await makeFolder()
  let now = new Date('2026-11-22T10:00:00Z')
  const errors: string[] = []
  const log = { ...QUIET, error: (message: string) => void errors.push(message) }
  await using served = await serveCache(folder.path, {
    now: () => now,
    elapsed: () => now.getTime(),
    log,
  })
  const api = call(served.base)
  const created = []
  for (let at = 0; at < 33; at += 1) created.push(await api.create(fileOf(`${at}.img`)))
  assert.equal([created[31]?.status, created[32]?.status], [201, 503])
  assert.equal(errors, [], 'a limit that was reached is no error of the cache')
  now = new Date('2026-11-23T09:00:00Z')
  assert.is((await api.send(created[0]?.body['id'], 0, PART)).status, 200)
  now = new Date('2026-11-23T11:00:00Z')
  await served.cache.uploads.sweep()
  assert.equal(
    served.cache.uploads.list().map(({ name, offset }) => [name, offset]),
    [['0.img', PART]],
  )
  assert.equal(await readdir(join(folder.path, '.cache/uploads')), [String(created[0]?.body['id'])])
})

const BLOB = makeBytes(700_001)
const BLOB_SHA256 = createHash('sha256').update(BLOB).digest('hex')
const origin = () => startHostileServer((request, response) => sendFile(BLOB, request, response))

test('serves a downloaded image by the token of its source, with all that clients look at', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/a/Debian%2013.img.gz?x=1`
  await bring(served.cache, { src })
  const url = blobUrl(served.base, src)
  const whole = await fetch(url)
  assert.is(whole.status, 200)
  assert.is(whole.headers.get('content-length'), '700001')
  assert.is(whole.headers.get('etag'), `"${BLOB_SHA256}"`)
  assert.is(whole.headers.get('x-withcache-sha256'), BLOB_SHA256)
  assert.is(whole.headers.get('accept-ranges'), 'bytes')
  assert.is(whole.headers.get('content-encoding'), null)
  assert.ok(Buffer.from(await whole.arrayBuffer()).equals(BLOB))
  const head = await fetch(url, { method: 'HEAD' })
  assert.is(head.status, 200)
  assert.is(head.headers.get('content-length'), '700001')
  assert.is(head.headers.get('etag'), `"${BLOB_SHA256}"`)
})

test('where a version is asked for, another one is none', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  await bring(served.cache, { src })
  const url = blobUrl(served.base, src)
  const statusOf = async (query: string) => {
    const answer = await fetch(`${url}?${query}`)
    await answer.arrayBuffer()
    return answer.status
  }
  assert.is(await statusOf(`sha256=${BLOB_SHA256}`), 200)
  assert.is(await statusOf(`sha256=${'0'.repeat(64)}`), 404)
  assert.is(await statusOf('other=1'), 200)
})

test('serves every part that can be asked for', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  await bring(served.cache, { src })
  const url = blobUrl(served.base, src)
  const rows = [
    ['bytes=0-0', 206, 0, 1],
    ['bytes=5-', 206, 5, 700_001],
    ['bytes=-7', 206, 699_994, 700_001],
    ['bytes=699990-999999999', 206, 699_990, 700_001],
    ['bytes=262143-262145', 206, 262_143, 262_146],
    ['bytes=0-1,5-6', 200, 0, 700_001],
    ['elephants=1-2', 200, 0, 700_001],
  ] as const
  for (const [range, status, from, to] of rows) {
    const answer = await fetch(url, { headers: { range } })
    assert.is(answer.status, status, range)
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(BLOB.subarray(from, to)), range)
    if (status === 206) {
      assert.is(answer.headers.get('content-range'), `bytes ${from}-${to - 1}/700001`)
    }
  }
  const beyond = await fetch(url, { headers: { range: 'bytes=700001-' } })
  assert.is(beyond.status, 416)
  assert.is(beyond.headers.get('content-range'), 'bytes */700001')
  const same = await fetch(url, { headers: { 'if-none-match': `"${BLOB_SHA256}"` } })
  assert.is(same.status, 304)
  const range = 'bytes=1-2'
  const other = await fetch(url, { headers: { range, 'if-range': '"other"' } })
  assert.is(other.status, 200)
  const mine = await fetch(url, { headers: { range, 'if-range': `"${BLOB_SHA256}"` } })
  assert.is(mine.status, 206)
  for (const answer of [other, mine]) await answer.body?.cancel()
})

test('finds an entry by its source and by where that was resolved to', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const src = 'https://images.invalid/stable.img'
  const resolved = `${source.origin}/2026/stable.img`
  await bring(served.cache, { name: 'stable', src, resolved_src: resolved })
  for (const spelled of [src, resolved, src.replace('https', 'HTTPS')]) {
    const answer = await fetch(blobUrl(served.base, spelled))
    assert.is(answer.status, 200, spelled)
    assert.ok(Buffer.from(await answer.arrayBuffer()).equals(BLOB))
  }
})

test('a miss is 404, and starts the download of an entry that is known', async () => {
  await using folder = await makeFolder()
  await using source = await origin()
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  const url = blobUrl(served.base, src)
  assert.is((await fetch(url)).status, 404)
  assert.is(source.seen.length, 0)
  await served.cache.add({ src })
  const miss = await fetch(url)
  assert.is(miss.status, 404)
  assert.is(miss.headers.get('retry-after'), '10')
  await until(() => served.cache.rows()[0]?.state === 'ready')
  assert.is((await fetch(url, { method: 'HEAD' })).status, 200)
})

test('tokens that are none, and names that want out of the folder, are refused', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  await writeFile(join(folder.path, '.secret.img'), 'x')
  const rows: readonly (readonly [string, readonly number[]])[] = [
    ['/b/%2e%2e%2f', [400, 404]],
    ['/b/!!!!', [400]],
    ['/b/YQ', [404]],
    [`/b/${'A'.repeat(20_000)}`, [400, 431]],
    [`/b/${Buffer.from([0xff, 0xfe]).toString('base64url')}/x`, [400]],
    [`/b/${Buffer.from('file:///../../etc/passwd').toString('base64url')}/x`, [404]],
    [`/b/${Buffer.from('file:///etc%2Fpasswd').toString('base64url')}/x`, [404]],
    ['/files/..%2f..%2fetc%2fpasswd', [400, 404]],
    ['/files/%2e%2e/%2e%2e/etc/passwd', [400, 404]],
    ['/files/.cache', [404]],
    ['/files/.secret.img', [404]],
    ['/files/.cache%2ftoken', [404]],
    ['/files/%00', [400, 404]],
    ['/files/%ff', [400, 404]],
    ['/blob', [400]],
    ['/blob?url=file%3A%2F%2F%2Fetc%2Fpasswd', [404]],
  ]
  for (const [path, statuses] of rows) {
    const status = await rawStatus(served.base, path)
    assert.ok(statuses.includes(status), `${path.slice(0, 60)}: ${status}`)
  }
})

/** As it is spelled: fetch would tidy the path up. */
function rawStatus(base: string, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    http
      .get(base, { path }, (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
      .on('error', reject)
  })
}

test.run()
