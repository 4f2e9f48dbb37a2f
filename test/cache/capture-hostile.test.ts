import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  captureClient,
  makeCapture,
  openCaptureLab,
  SOURCE,
  uploadCapture,
} from '#test/support/capture/uploads.ts'
import { asOperator, TOKEN } from '#test/support/server/image-cache.ts'

const test = suite('cache: captured images, hostile input')
const IMAGE = await makeCapture()
const { file: FILE, end: END } = IMAGE
const PART = 1_000_000
const NAME = 'web-42.img.zst'

test('what differs from what was announced is not kept, and the reason is repeated', async () => {
  await using lab = await openCaptureLab()
  const broken = Buffer.from(FILE)
  broken.writeUInt8(broken.readUInt8(5000) ^ 1, 5000)
  const cases: readonly (readonly [Buffer, object])[] = [
    [broken, END],
    [FILE, { ...END, index_sha256: '0'.repeat(64) }],
    [FILE, { ...END, sha256: '0'.repeat(64) }],
    [FILE.subarray(0, PART), { ...END, bytes: PART }],
  ]
  for (const [at, [bytes, end]] of cases.entries()) {
    const machine = lab.machine(lab.sign(NAME, { order: `order-100${at}` }))
    const id = (await machine.begin(NAME)).body['id']
    await machine.send(id, 0, bytes)
    const ended = await machine.finish(id, end)
    assert.is(ended.status, 422, String(at))
    assert.match(String(ended.body['detail']), /was announced/)
    const again = await machine.finish(id, end)
    assert.equal([again.status, again.body], [ended.status, ended.body])
  }
  assert.equal(lab.cache.captures.list(), [])
  assert.equal(await readdir(join(lab.folder, '.cache/captures')), [])
})

const HOSTILE_NAMES = [
  '',
  '.img.zst',
  '../x.img.zst',
  'a/b.img.zst',
  'a\\b.img.zst',
  'x.img.zst\0',
  'gmi.\u202egnp.img.zst',
  `${'é'.repeat(130)}.img.zst`,
  'x.img',
  'x.qcow2',
]

test('hostile names, offsets, sizes and tokens are refused, and leave nothing behind', async () => {
  await using lab = await openCaptureLab()
  for (const name of HOSTILE_NAMES) {
    const { status } = await lab.machine(lab.sign(name)).begin(name)
    assert.is(status, 422, JSON.stringify(name))
  }
  const machine = lab.machine()
  for (const disk of [{}, { size_bytes: 0 }, { size_bytes: 2 ** 63 }, { size_bytes: 1.5 }]) {
    assert.is((await machine.begin(NAME, { ...SOURCE, disk })).status, 422, JSON.stringify(disk))
  }
  const strangers = [
    'no-token',
    TOKEN,
    lab.sign('other.img.zst'),
    lab.sign(NAME, { mac: '52:54:00:00:00:2b' }),
    lab.sign(NAME, { mac: 'none' }),
    lab.sign(NAME, { issuedAt: Date.now() - 25 * 3_600_000 }),
    lab.sign(NAME, { issuedAt: Date.now() + 25 * 3_600_000 }),
    `${lab.sign(NAME)}x`,
  ]
  for (const token of strangers) {
    assert.is((await lab.machine(token).begin(NAME)).status, 401, token)
  }
  const small = { ...SOURCE, disk: { size_bytes: 1 } }
  const id = (await machine.begin(NAME, small)).body['id']
  for (const offset of ['', '-1', '1e3', 'x', String(2 ** 63), '0x0', '99999999999999999']) {
    assert.is((await machine.send(id, offset, FILE)).status, 400, offset)
  }
  assert.is((await machine.send(id, 2 ** 52, FILE)).status, 409)
  assert.is((await machine.send(id, 0, Buffer.alloc(65 * 2 ** 20))).status, 413)
  for (let at = 0; at < 4; at += 1) await machine.send(id, at * 16_777_216, Buffer.alloc(2 ** 24))
  assert.is(await machine.offset(id), String(2 ** 26))
  const long = await machine.send(id, 2 ** 26, Buffer.alloc(2 ** 20))
  assert.is(long.status, 413, 'an image is never that much larger than its disk')
  assert.is(await lab.machine(lab.sign(NAME, { order: 'order-0002' })).offset(id), null)
  assert.is((await lab.operator.ask('DELETE', `/captures/${id}`)).status, 204)
  assert.equal(await readdir(join(lab.folder, '.cache/captures')), [])
})

test('nobody without the token uploads, and nobody but an operator decides', async () => {
  await using lab = await openCaptureLab()
  const machine = lab.machine()
  const id = await uploadCapture(machine, NAME, IMAGE)
  const stranger = captureClient(lab.base, null)
  for (const client of [stranger, lab.machine(lab.sign(NAME, { order: 'order-0002' }))]) {
    assert.is((await client.ask('GET', `/captures/${id}`)).status, 401)
    assert.is((await client.send(id, 0, FILE)).status, 401)
    assert.is((await client.finish(id, END)).status, 401)
  }
  for (const client of [stranger, machine]) {
    assert.is((await client.ask('GET', '/captures')).status, 401)
    assert.is((await client.post(`/captures/${id}/accept`, {})).status, 401)
    assert.is((await client.ask('DELETE', `/captures/${id}`)).status, 401)
    assert.is((await client.post('/captures/tokens', { name: NAME })).status, 401)
  }
  const elsewhere = { ...asOperator, 'sec-fetch-site': 'cross-site' }
  const forged = await stranger.ask('DELETE', `/captures/${id}`, undefined, elsewhere)
  assert.is(forged.status, 403)
  assert.is(lab.cache.captures.list().length, 1)
})

test.run()
