/** Inventories over a socket: order of the checks, what is kept, and who waits for whom. */
import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { codeOf, exchange } from '#test/support/http/raw-http.ts'
import { createInventories } from '#server/routes/inventories.ts'
import { postAtOnce } from '#test/support/server/inventory-storm.ts'
import { MAC } from '#test/support/server/machine-fixture.ts'
import { asJson, checkUp, createTestServer, listen } from '#test/support/server/server.ts'

const PATH = `/pxe/${MAC}/inventory`
const JSON_TYPE = { 'content-type': 'application/json' }
const test = suite('inventories')

const post = (body: BodyInit, headers: Readonly<Record<string, string>> = {}) => ({
  method: 'POST',
  body,
  headers: { ...JSON_TYPE, ...headers },
})

test('who is not let in is refused before a byte of the body is read', async () => {
  await using server = await createTestServer({ env: { FLASHER_PXE_TOKENS: 'require' } })
  await using http = await listen(server)
  await server.request(`/pxe/${MAC}`)
  for (const route of ['inventory', 'status', 'progress', 'log?run=x']) {
    const text = await exchange(
      http.port,
      `POST /pxe/${MAC}/${route} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{`,
      3000,
    )
    assert.is(codeOf(text), 401, route)
  }
  await checkUp(server)
})

const many = (item: string) => `[${`${item},`.repeat(1_000_000)}${item}]`

test('a tree of millions of values is left out and the disks are kept; anywhere else they are refused', async () => {
  await using server = await createTestServer()
  await server.request(`/pxe/${MAC}`)
  const disk = '{"path":"/dev/sda","serial":"S1"}'
  const before = process.memoryUsage().heapUsed
  const rows = [
    [`{"disks":[${disk}${',{"path":"/dev/sdb"}'.repeat(100_000)}]}`, 204],
    [`{"lshw":{"a":${many('{}')}},"disks":[${disk}]}`, 204],
    [`{"disks":[${disk}],"lshw":${many('[]')}}`, 204],
    [`{"disks":[{"children":${many('{}')},"path":"/dev/sda","serial":"S2"}]}`, 413],
    [`{"more":${many('[]')},"disks":[]}`, 413],
    // Keys of 9 MiB that nobody knows: a refusal that names them takes many times their memory.
    [`{"disks":[],"${'k'.repeat(9_000_000)}":0}`, 413],
    [`{"more":${'x'.repeat(300_000)},"disks":[]}`, 422],
    [`{"disks":${'['.repeat(300_000)}`, 422],
  ] as const
  for (const [body, status] of rows) {
    assert.is((await server.request(PATH, post(body))).status, status, body.slice(0, 40))
    assert.is((await server.machines.find(MAC))?.known_disks?.[0]?.serial, 'S1')
  }
  assert.ok(process.memoryUsage().heapUsed - before < 300 * 2 ** 20)
  assert.is(await server.machines.findHardware(MAC), null)
})

test('how many disks there are beyond those that are kept is on record', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const disks = Array.from({ length: 1500 }, (_, n) => ({ path: `/dev/sd${n}`, serial: `S${n}` }))
  assert.is((await server.request(PATH, asJson({ disks }))).status, 204)
  assert.is((await server.machines.find(MAC))?.known_disks?.length, 1024)
  const events = await (await ask('/events')).text()
  assert.match(events, 'reported 1500 disks, of which the first 1024 were kept')
})

test('the tree comes back as the bytes that came', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  for (const more of ['', 'ä'.repeat(500_000)]) {
    const tree = `{"id":"box", "size":18446744073709551615,\n"clock":1.0, "more":"${more}"}`
    for (const lshw of [tree, many('{}')]) {
      assert.is((await server.request(PATH, post(`{"disks":[],"lshw":${lshw}}`))).status, 204)
      assert.is(await (await ask(`/machines/${MAC}/lshw.json`)).text(), tree)
    }
  }
})

test('a compressed body is refused with its reason', async () => {
  await using server = await createTestServer()
  await server.request(`/pxe/${MAC}`)
  const body = new Uint8Array(gzipSync('{"disks":[]}'))
  const refused = await server.request(PATH, post(body, { 'content-encoding': 'gzip' }))
  assert.is(refused.status, 415)
  assert.equal(await refused.json(), {
    detail: 'the body is encoded: send it without Content-Encoding',
  })
  const plain = post('{"disks":[]}', { 'content-encoding': 'identity' })
  assert.is((await server.request(PATH, plain)).status, 204)
})

test('short bodies do not wait for long ones, which learn when to come again', async () => {
  await using server = await createTestServer()
  await using http = await listen(server)
  await server.request(`/pxe/${MAC}`)
  const head = `POST ${PATH} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 8000000\r\n\r\n`
  const start = `{"disks":[],"lshw":{"a":"${'x'.repeat(7_900_000)}`
  // As many as there is room for, and more: each holds what it has sent, and sends no more.
  const sockets = Array.from({ length: 12 }, () => connect(http.port, '127.0.0.1'))
  const answers = sockets.map(async (socket) => {
    socket.on('error', () => {})
    socket.write(head + start)
    let text = ''
    socket.setEncoding('latin1')
    for await (const piece of socket) {
      text += String(piece)
      if (text.includes('\r\n\r\n')) return text
    }
    return text
  })
  const refused = await Promise.race(answers)
  assert.is(codeOf(refused), 503)
  assert.match(refused, /retry-after: \d+/i)
  assert.is((await server.request(PATH, asJson({ disks: [] }))).status, 204)
  for (const socket of sockets) socket.destroy()
  await Promise.allSettled(answers)
  await checkUp(server)
})

/** Dies of what begins with `f`, answers nothing to `w`, and all else with a refusal. */
const CODE = `import { parentPort } from 'node:worker_threads'
parentPort.on('message', ([first]) => {
  if (first === 0x66) throw new Error('it dies')
  if (first !== 0x77) parentPort.postMessage({ ok: false, refusal: 'malformed' })
})`
const THREAD = new URL(`data:text/javascript,${encodeURIComponent(CODE)}`)
const long = (first: string) => {
  const body = Buffer.allocUnsafeSlow(300_000).fill(' ')
  body.write(first)
  return body
}

test('a thread that dies, or takes too long, is another one for the next body', async () => {
  await using inventories = createInventories({ thread: THREAD, maxParseMs: 2000 })
  const parsed = await Promise.all(
    ['x', 'f', 'x', 'w', 'x'].map(async (first) => inventories.parse(long(first))),
  )
  assert.equal(
    parsed.map((each) => each.ok || each.refusal),
    ['malformed', 'busy', 'malformed', 'busy', 'malformed'],
  )
})

test('inventories that wait for the thread when the server ends get a 503', async () => {
  const waiting = await (async () => {
    await using inventories = createInventories({ thread: THREAD })
    return ['w', 'x'].map((first) => inventories.parse(long(first)))
  })()
  for (const each of await Promise.all(waiting)) assert.is(each.ok || each.refusal, 'busy')
})

test('more machines than may send at once: all trees are stored', async () => {
  await postAtOnce(24)
})

test.run()
