import { copyFileSync, mkdirSync } from 'node:fs'
import { mkdtempDisposable, readdir, readFile, stat, truncate, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { createUsedOrders } from '#cache/captures/captures.ts'
import { DATA_FOLDER } from '#cache/store/pins.ts'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { fileSource } from '#engine/catalog/rules/cache-entry.ts'
import { createRecords, selectRecords } from '#kit/host/records.ts'
import {
  captureClient,
  MAC,
  makeCapture,
  makeSigner,
  openCaptureLab,
  secretOf,
  SOURCE,
  uploadCapture,
} from '#test/support/capture/uploads.ts'
import {
  addPerson,
  createCurrentServer,
  PERSON_PASSWORD,
} from '#test/support/people/current-server.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'
import {
  asOperator,
  makeFolder,
  serveCache,
  startCache,
  TOKEN,
  until,
} from '#test/support/server/image-cache.ts'

const test = suite('cache: captured images')
const IMAGE = await makeCapture()
const { file: FILE, end: END } = IMAGE
const PART = 1_000_000
const NAME = 'web-42.img.zst'

test('an image in parts is verified, waits, and is offered once it is accepted', async () => {
  await using lab = await openCaptureLab()
  const machine = lab.machine()
  const begun = await machine.begin(NAME)
  assert.equal(
    [begun.status, begun.body['status'], begun.headers.get('upload-offset')],
    [201, 'receiving', '0'],
  )
  const id = String(begun.body['id'])
  for (let from = 0; from < FILE.length; from += PART) {
    const part = FILE.subarray(from, from + PART)
    const sent = await machine.send(id, from, part)
    assert.equal(
      [sent.status, sent.headers.get('upload-offset')],
      [204, String(from + part.length)],
    )
  }
  const finished = await machine.finish(id, { ...END, warnings: ['/etc/machine-id\u202e'] })
  assert.equal([finished.status, finished.body['status']], [200, 'waiting'])
  assert.is(lab.cache.rows().length, 0, 'nothing is offered before somebody has accepted it')
  const { captures } = Object((await lab.operator.ask('GET', '/captures')).body)
  const [{ source, created_at: _, touched_at: __, ...listed }] = captures
  assert.equal(listed, {
    id,
    name: NAME,
    status: 'waiting',
    offset: FILE.length,
    size_bytes: FILE.length,
    sha256: END.sha256,
    index_sha256: END.index_sha256,
    warnings: ['/etc/machine-id\ufffd'],
  })
  assert.equal(source, { ...SOURCE, generalized: false })
  const accepted = await lab.operator.post(`/captures/${id}/accept`, {})
  assert.is(accepted.status, 201)
  const [row] = lab.cache.rows()
  assert.equal(
    [row?.entry.name, row?.state, row?.entry.sha256, row?.entry.index_sha256],
    [NAME, 'ready', END.sha256, END.index_sha256],
  )
  assert.ok((await readFile(join(lab.folder, NAME))).equals(FILE))
  assert.equal(await readdir(join(lab.folder, '.cache/captures')), [])
  const { entries } = Object(await (await fetch(`${lab.base}/catalog`)).json())
  assert.is(entries[0].index_sha256, END.index_sha256)
  assert.is((await machine.ask('GET', `/captures/${id}`)).status, 404)
})

test('a rejected image is deleted, and its token begins no other', async () => {
  await using lab = await openCaptureLab()
  const machine = lab.machine()
  const id = await uploadCapture(machine, NAME, IMAGE)
  assert.is((await lab.operator.ask('DELETE', `/captures/${id}`)).status, 204)
  assert.equal(await readdir(join(lab.folder, '.cache/captures')), [])
  assert.is((await machine.begin(NAME)).status, 401)
  const later = lab.machine(lab.sign(NAME, { issuedAt: Date.now() + 1000 }))
  assert.is((await later.begin(NAME)).status, 401, 'its order is used up')
  assert.is((await lab.machine(lab.sign(NAME, { order: 'order-0002' })).begin(NAME)).status, 201)
})

test('the same request begins the same capture, and finishing is repeatable', async () => {
  await using lab = await openCaptureLab()
  const machine = lab.machine()
  const [first, second] = await Promise.all([machine.begin(NAME), machine.begin(NAME)])
  assert.equal([first.status, second.status].toSorted(), [200, 201])
  assert.is(first.body['id'], second.body['id'])
  const id = String(first.body['id'])
  await machine.send(id, 0, FILE)
  const answers = await Promise.all([machine.finish(id, END), machine.finish(id, END)])
  assert.equal(
    answers.map(({ status, body }) => [status, body['status']]),
    [
      [200, 'waiting'],
      [200, 'waiting'],
    ],
  )
  assert.is((await machine.finish(id, END)).status, 200)
  assert.is((await machine.finish(id, { ...END, sha256: '0'.repeat(64) })).status, 409)
  assert.is((await machine.send(id, FILE.length, FILE)).status, 409)
})

test('a machine that starts over replaces what its older token began', async () => {
  await using lab = await openCaptureLab()
  const at = Date.now()
  const [older, newer] = [at, at + 1].map((issuedAt) => lab.machine(lab.sign(NAME, { issuedAt })))
  assert.ok(older && newer)
  const first = (await older.begin(NAME)).body['id']
  await older.send(first, 0, FILE.subarray(0, PART))
  const second = await newer.begin(NAME)
  assert.equal([second.status, second.headers.get('upload-offset')], [201, '0'])
  assert.is((await older.send(first, PART, FILE.subarray(PART))).status, 404)
  assert.is((await older.begin(NAME)).status, 401)
  assert.equal(await readdir(join(lab.folder, '.cache/captures')), [second.body['id']])
})

test('a part that breaks off stays as far as it came', async () => {
  await using lab = await openCaptureLab()
  const token = lab.sign(NAME)
  const machine = lab.machine(token)
  const id = String((await machine.begin(NAME)).body['id'])
  const cut = request(`${lab.base}/captures/${id}`, {
    method: 'PATCH',
    headers: {
      authorization: `Bearer ${token}`,
      'upload-offset': 0,
      'content-length': FILE.length,
    },
  })
  const ended = new Promise<void>((resolve) => {
    cut.on('close', resolve).on('error', () => undefined)
  })
  cut.write(FILE.subarray(0, PART))
  const file = join(lab.folder, '.cache/captures', id)
  await until(async () => (await stat(file).catch(() => null))?.size === PART)
  const busy = await machine.send(id, 0, FILE)
  assert.equal([busy.status, busy.headers.get('retry-after')], [409, '2'])
  assert.is(await machine.offset(id), '0', 'not durable yet')
  cut.destroy()
  await ended
  await until(async () => (await machine.offset(id)) === String(PART))
  const wrong = await machine.send(id, 0, FILE)
  assert.equal([wrong.status, wrong.headers.get('upload-offset')], [409, String(PART)])
  const early = await machine.finish(id, END)
  assert.equal([early.status, early.headers.get('upload-offset')], [409, String(PART)])
  assert.is((await machine.send(id, PART, FILE.subarray(PART))).status, 204)
  assert.is((await machine.finish(id, END)).status, 200)
})

test('a capture whose file became shorter goes on where the file ends', async () => {
  await using lab = await openCaptureLab()
  const machine = lab.machine()
  const id = String((await machine.begin(NAME)).body['id'])
  assert.is((await machine.send(id, 0, FILE.subarray(0, PART))).status, 204)
  await truncate(join(lab.folder, '.cache/captures', id), 4096)
  const refused = await machine.send(id, PART, FILE.subarray(PART))
  assert.is(refused.status, 409)
  assert.is((await machine.begin(NAME)).headers.get('upload-offset'), '4096')
  assert.is((await machine.send(id, 4096, FILE.subarray(4096))).status, 204)
  assert.is((await machine.finish(id, END)).body['status'], 'waiting')
})

test('a token by hand is good for one upload with its name', async () => {
  await using lab = await openCaptureLab()
  const { status, body } = await lab.operator.post('/captures/tokens', { name: NAME })
  assert.equal([status, body['url']], [201, `${lab.base}/captures/${NAME}`])
  assert.is((await lab.operator.post('/captures/tokens', { name: 'x' })).status, 422)
  const person = captureClient(lab.base, String(body['token']))
  const { mac: _, ...byHand } = SOURCE
  assert.is((await person.begin('other.img.zst', byHand)).status, 401)
  assert.is((await person.begin(NAME, SOURCE)).status, 401, 'it is no machine of the server')
  const begun = await person.begin(NAME, byHand)
  assert.is(begun.status, 201)
  assert.is(Object(begun.body['source']).mac, null)
})

test('an image is never replaced, and is accepted under another name', async () => {
  await using lab = await openCaptureLab()
  await writeFile(join(lab.folder, 'taken.img.zst'), 'theirs')
  await lab.cache.scan()
  const blocked = lab.machine(lab.sign('taken.img.zst'))
  assert.is((await blocked.begin('taken.img.zst')).status, 409)
  const id = await uploadCapture(lab.machine(), NAME, IMAGE)
  const accept = (body: object) => lab.operator.post(`/captures/${id}/accept`, body)
  assert.is((await accept({ name: 'taken.img.zst' })).status, 409)
  for (const name of ['../x.img.zst', 'x.img'])
    assert.is((await accept({ name })).status, 422, name)
  assert.is(await readFile(join(lab.folder, 'taken.img.zst'), 'utf8'), 'theirs')
  const both = await Promise.all([accept({ name: 'b.img.zst' }), accept({ name: 'c.img.zst' })])
  assert.equal(both.map(({ status }) => status).toSorted(), [201, 409])
  const names = lab.cache.rows().map(({ entry }) => entry.name)
  assert.is(names.filter((name) => name !== 'taken.img.zst').length, 1)
})

test('the name of an image that machines are assigned is not given to another one', async () => {
  await using lab = await openCaptureLab()
  const ref = refOf(fileSource(NAME))
  assert.ok(ref.ok)
  await lab.cache.pin('server', [ref.value], [3])
  const refused = await lab.machine().begin(NAME)
  assert.is(refused.status, 409)
  assert.match(JSON.stringify(refused.body), 'machines are assigned an image named web-42.img.zst')
  const OTHER = 'web-43.img.zst'
  const id = await uploadCapture(lab.machine(lab.sign(OTHER)), OTHER, IMAGE)
  const accept = (body: object) => lab.operator.post(`/captures/${id}/accept`, body)
  assert.is((await accept({ name: NAME })).status, 409)
  assert.is(lab.cache.rows().length, 0)
  assert.is((await accept({})).status, 201)
})

test('captures are limited in number, removed after a day, and kept while they wait', async () => {
  let now = new Date('2026-11-22T10:00:00Z')
  await using lab = await openCaptureLab({ now: () => now, elapsed: () => now.getTime() })
  const issuedAt = now.getTime()
  const begin = (at: number) => {
    const name = `${at}.img.zst`
    return lab.machine(lab.sign(name, { order: `order-${100 + at}`, issuedAt })).begin(name)
  }
  const waiting = lab.machine(lab.sign(NAME, { issuedAt }))
  await uploadCapture(waiting, NAME, IMAGE)
  const statuses = []
  for (let at = 0; at < 32; at += 1) statuses.push((await begin(at)).status)
  assert.equal([statuses[30], statuses[31]], [201, 503])
  now = new Date('2026-11-23T10:30:00Z')
  await lab.cache.captures.sweep()
  assert.equal(
    lab.cache.captures.list().map(({ name }) => name),
    [NAME],
  )
})

const MINE = '52:54:00:00:00:01'
const [OTHER_NAME, OWN_NAME] = ['canary-outside.img.zst', 'inside.img.zst']

async function openScene() {
  const server = await createCurrentServer()
  const lab = await openCaptureLab({
    prepare(folder) {
      mkdirSync(dirname(secretOf(folder)), { recursive: true })
      copyFileSync(join(server.dir, 'session-secret'), secretOf(folder))
    },
  })
  await addPerson(server, 'anna', 'operate', ['lab'])
  await addPerson(server, 'otto', 'look')
  const begin = async (mac: string, name: string, order: string) => {
    const token = lab.sign(name, { mac, order })
    const source = { ...SOURCE, mac, hostname: `host-of-${name}` }
    const begun = await lab.machine(token).begin(name, source)
    assert.is(begun.status, 201)
    return String(begun.body['id'])
  }
  const read = (fields: Readonly<Record<string, string>>) => {
    const cookie = server.logIn(fields).then((session) => session.cookie)
    return async (path: string) =>
      await fetch(`${lab.base}${path}`, { headers: { cookie: await cookie }, redirect: 'manual' })
  }
  return {
    lab,
    ids: {
      outside: await begin(MAC, OTHER_NAME, 'order-0001'),
      inside: await begin(MINE, OWN_NAME, 'order-0002'),
    },
    anna: read({ username: 'anna', password: PERSON_PASSWORD }),
    otto: read({ username: 'otto', password: PERSON_PASSWORD }),
    operator: read({ password: PASSWORD }),
    async [Symbol.asyncDispose]() {
      await lab[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

test('only those that a server says are of machines in the scope, in lists and by their address', async () => {
  await using scene = await openScene()
  const { lab, ids, anna, otto, operator } = scene
  const seen = async (ask: typeof anna) => {
    const page = await ask('/ui/dashboard')
    assert.is(page.status, 200)
    const text = await page.text()
    const statuses = await Promise.all(
      [ids.inside, ids.outside].map(async (id) => (await ask(`/ui/capture?id=${id}`)).status),
    )
    return [text.includes('inside.img'), text.includes('canary'), ...statuses]
  }
  const [all, own, none] = [
    [true, true, 200, 200],
    [true, false, 200, 404],
    [false, false, 404, 404],
  ]
  assert.equal(await seen(otto), all)
  assert.equal(await seen(anna), none, 'no server has said whose they are')
  const say = async (holder: string, labels: readonly string[]) => {
    const captured = [
      { mac: MINE, labels },
      { mac: MAC, labels: ['rack'] },
    ]
    const body = { holder, refs: ['a'.repeat(64)], machines: [7], captured }
    assert.is((await lab.operator.post('/pins', body)).status, 204)
  }
  await say('one', ['lab', 'rack'])
  assert.equal([await seen(anna), await seen(otto), await seen(operator)], [own, all, all])
  await say('two', ['rack'])
  assert.equal(await seen(anna), none, 'another server says something else')
  await say('two', ['lab'])
  assert.equal(await seen(anna), own)
  await say('one', ['rack'])
  assert.equal(await seen(anna), none, 'its labels have changed')
  assert.is((await anna('/captures')).status, 403)
})

const START = Date.parse('2026-11-23T10:00:00Z')
const order = (at: number) => `order-${String(at).padStart(4, '0')}`

test('a sweep forgets all but the newest thousand, on disk as well', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-orders-'))
  let now = START
  const open = () => createUsedOrders(createRecords(folder.path), () => new Date(now))
  const used = await open()
  for (let at = 0; at < 1003; at += 1) {
    now += 1000
    await used.add(order(at))
  }
  const known = (orders: typeof used) => [0, 2, 3, 1002].map((at) => orders.has(order(at)))
  assert.equal(known(used), [true, true, true, true])
  await used.sweep()
  assert.equal(known(used), [false, false, true, true])
  assert.equal(known(await open()), [false, false, true, true])
})

test('the cache forgets them at the sweep that its timer runs as well', async () => {
  await using folder = await makeFolder()
  const records = selectRecords(
    createRecords(join(folder.path, DATA_FOLDER, 'records')),
    'order',
    z.object({ usedAt: z.number() }),
  )
  for (let at = 0; at < 1003; at += 1) await records.write(order(at), { usedAt: START + at })
  await using served = await serveCache(folder.path)
  await served.cache.captures.sweep()
  const left = new Map(await records.list())
  assert.equal([left.size, left.has(order(2)), left.has(order(3))], [1000, false, true])
})

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

/** The real program, with the key of a server in its state directory. */
async function startLab(state: string) {
  const program = await startCache(state)
  const sign = await makeSigner(join(state, 'session-secret'))
  return { program, sign, operator: captureClient(program.base, program.token) }
}

test('a cache that is killed while a part arrives goes on at what was safe', async () => {
  await using state = await makeFolder()
  let id = ''
  let token = ''
  {
    const { program, sign } = await startLab(state.path)
    await using _ = program
    token = sign(NAME)
    const machine = captureClient(program.base, token)
    id = String((await machine.begin(NAME)).body['id'])
    await machine.send(id, 0, FILE.subarray(0, PART))
    const cut = request(`${program.base}/captures/${id}`, {
      method: 'PATCH',
      headers: {
        authorization: `Bearer ${token}`,
        'upload-offset': PART,
        'content-length': FILE.length - PART,
      },
    }).on('error', () => undefined)
    cut.write(FILE.subarray(PART, 2 * PART))
    const file = join(state.path, 'cache/.cache/captures', id)
    await until(async () => (await stat(file)).size > PART)
    await program.kill('SIGKILL')
  }
  const { program, operator } = await startLab(state.path)
  await using _ = program
  const machine = captureClient(program.base, token)
  assert.is(await machine.offset(id), String(PART))
  assert.is((await machine.begin(NAME)).body['id'], id)
  assert.is((await machine.send(id, PART, FILE.subarray(PART))).status, 204)
  assert.is((await machine.finish(id, END)).status, 200)
  assert.is((await operator.post(`/captures/${id}/accept`, {})).status, 201)
})

test('a cache that is killed after the end still has what waits, and accepts it once', async () => {
  await using state = await makeFolder()
  let id = ''
  let token = ''
  {
    const { program, sign } = await startLab(state.path)
    await using _ = program
    token = sign(NAME)
    id = await uploadCapture(captureClient(program.base, token), NAME, IMAGE, ['SSH host keys'])
    await program.kill('SIGKILL')
  }
  const { program, operator } = await startLab(state.path)
  await using _ = program
  const { captures } = Object((await operator.ask('GET', '/captures')).body)
  assert.equal(
    [captures[0].status, captures[0].source.mac, captures[0].warnings],
    ['waiting', MAC, ['SSH host keys']],
  )
  assert.is((await captureClient(program.base, token).finish(id, END)).status, 200)
  assert.is((await operator.post(`/captures/${id}/accept`, {})).status, 201)
  await program.kill('SIGKILL')
  const again = await startLab(state.path)
  await using __ = again.program
  assert.is((await captureClient(again.program.base, token).begin(NAME)).status, 401)
  const { entries } = Object((await again.operator.ask('GET', '/catalog?all')).body)
  assert.equal(
    [entries.length, entries[0].sha256, entries[0].index_sha256],
    [1, END.sha256, END.index_sha256],
  )
})

test.run()
