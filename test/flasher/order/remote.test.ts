/** Servers that answer nonsense, or not at all: each ends in a wizard with the reason. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import type { FlashEvent, WriteProgress } from '#engine/flash/rules/flash-plan.ts'
import { createServerClient } from '#flasher/link/server-client.ts'
import { createFlashRun } from '#flasher/order/remote-hooks.ts'
import { chooseOrdered } from '#flasher/order/rules/flash-choice.ts'
import { parseKernelOrder } from '#flasher/order/rules/kernel-order.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { type Answer, startHostileServer } from '#test/support/http/hostile-server.ts'
import { driveMachine, type Driven, MAC } from '#test/support/terminal/remote-fixture.ts'

const test = suite('remote')

const noticeOf = ({ outcome }: Driven) =>
  outcome.kind === 'interactive' ? (outcome.start.notice ?? '') : `exit ${outcome.code}`

/** Takes everything, and answers the plan as told. */
const planned =
  (plan: Answer): Answer =>
  (request, response, count) => {
    if (request.url?.includes('/plan?features=first-boot,capture,disk-id') === true)
      plan(request, response, count)
    else response.writeHead(204).end()
  }
const json =
  (document: unknown): Answer =>
  (_, response) =>
    response.end(JSON.stringify(document))

const NONSENSE: readonly (readonly [string, Answer, RegExp])[] = [
  ['a list', json([]), /cannot be followed: it is not a JSON object\.$/],
  ['a word', json('flash'), /cannot be followed: it is not a JSON object\.$/],
  [
    'nothing',
    (_, response) => response.writeHead(204).end(),
    /cannot be followed: it is not a JSON object/,
  ],
  [
    'an unknown mode',
    json({ mode: 'ramboot' }),
    /cannot be followed: it names the unknown mode ramboot/,
  ],
  ['a flash without a disk', json({ mode: 'flash', image: 'http://a/b.img' }), /names no disk/],
  ['a page', (_, response) => response.end('<html>'), /sent no plan: its answer is not JSON\.$/],
  [
    'another address',
    (_, response) => response.writeHead(307, { location: 'http://127.0.0.1:2/' }).end(),
    /sent no plan: it redirects elsewhere \(HTTP 307\)\.$/,
  ],
  [
    'a refusal',
    (_, response) => response.writeHead(401).end('{"detail":"the boot token expired"}'),
    /sent no plan: HTTP 401: the boot token expired\.$/,
  ],
  ['an error', (_, response) => response.writeHead(500).end(), /sent no plan: HTTP 500\.$/],
]
for (const [what, plan, notice] of NONSENSE) {
  test(`${what} for a plan`, async () => {
    await using server = await startHostileServer(planned(plan))
    const box = await driveMachine({ server: server.origin })
    assert.match(noticeOf(box), notice)
    assert.is(box.outcome.kind === 'interactive' && box.outcome.start.screen, 'image')
    assert.equal(
      box.outcome.kind === 'interactive' && box.outcome.start.catalog,
      `${server.origin}/catalog.toml`,
    )
    assert.is(box.reboots, 0)
  })
}

test('an interactive plan with a catalog and words of its own', async () => {
  const plan = {
    mode: 'interactive',
    catalog: 'oras://registry.lan/lab/catalog:1',
    reason: 'a\u001b[2Jb',
  }
  await using server = await startHostileServer(planned(json(plan)))
  const box = await driveMachine({ server: server.origin })
  assert.is(noticeOf(box), 'a\\x1b[2Jb')
  assert.is(box.outcome.kind === 'interactive' && box.outcome.start.catalog, plan.catalog)
  const { identity } = box.outcome.kind === 'interactive' ? box.outcome.start : { identity: null }
  assert.equal(identity, { mac: MAC, server: server.origin, address: null })
})

test('a server that is not there', async () => {
  const box = await driveMachine({ server: 'http://127.0.0.1:2' })
  assert.match(noticeOf(box), /^The server sent no plan: connection refused\.$/)
  assert.ok(box.said.some((line) => line.includes('does not answer (connection refused)')))
})

test('a server that comes late', async () => {
  let count = 0
  await using server = await startHostileServer((_, response) => {
    count += 1
    if (count < 4) response.writeHead(503, { 'retry-after': '0' }).end()
    else response.end('{"mode":"exit","reason":"done before"}')
  })
  const box = await driveMachine({ server: server.origin })
  assert.equal(box.outcome, { kind: 'exit', code: 0 })
  assert.ok(box.said.includes('done before'))
})

const DISK: SurveyedDisk = {
  path: '/dev/sda',
  removable: false,
  parts: [],
  device: {
    node: '/dev/sda',
    type: 'disk',
    sectorBytes: 512,
    readonly: false,
    vendor: null,
    model: null,
    tran: null,
    identity: { serial: 'S1', wwn: null, sizeBytes: 1, diskseq: null },
    zeros: { loop: null, writeZeroesMaxBytes: 0, discardMaxBytes: 0 },
    uses: [],
  },
}

test('hardware that a server has no room for is sent again', async () => {
  const posts = [204, 503, 503, 204]
  await using server = await startHostileServer((request, response) => {
    if (request.method === 'GET') response.end('{"mode":"inventory"}')
    else response.writeHead(posts.shift() ?? 500, { 'retry-after': '0' }).end()
  })
  const hardware = {
    readTree: async () => ({ id: 'box' }),
    readBmcAddress: async () => null,
    readBootTimes: async () => '',
    readKernelLog: async () => [],
  }
  const parts = { hardware, disks: { survey: async () => [DISK] } }
  const box = await driveMachine({ server: server.origin, parts })
  assert.equal([posts.length, box.reboots], [0, 1])
})

test('a bare name whose ports do not answer', async () => {
  const parts = { times: { contact: 100, report: 100, failure: 100, silence: 50, retry: 20 } }
  const box = await driveMachine({ server: 'flasher.invalid', parts })
  assert.match(
    noticeOf(box),
    /^No machine server answers at http:\/\/flasher.invalid or http:\/\/flasher.invalid:8080\.$/,
  )
  const catalog = box.outcome.kind === 'interactive' ? box.outcome.start.catalog : null
  assert.is(catalog, 'http://flasher.invalid:8080/catalog.toml')
})

test('https with an authority of its own', async () => {
  const before = getCACertificates('default')
  const folder = await mkdtemp(join(tmpdir(), 'flasher-authority-'))
  try {
    const { caFile, certificate } = await makeAuthority(folder)
    const answer = planned(json({ mode: 'exit', reason: 'by a safe way' }))
    await using server = await startHostileServer(answer, certificate)
    const stranger = await driveMachine({ server: server.origin })
    assert.match(noticeOf(stranger), /the certificate was issued by an unknown authority/)
    const known = await driveMachine({ server: server.origin, env: { FLASHER_CA_FILE: caFile } })
    assert.ok(known.said.includes('by a safe way'))
  } finally {
    setDefaultCACertificates(before)
    await rm(folder, { recursive: true })
  }
})

test('an unreadable file of authorities is reported on the screen', async () => {
  const box = await driveMachine({ server: 'https://lab', env: { FLASHER_CA_FILE: '/nowhere' } })
  assert.match(
    noticeOf(box),
    /^This machine cannot follow the server: FLASHER_CA_FILE cannot be read/,
  )
})

for (const [server, mac, notice] of [
  ['ftp://lab', MAC, /^"ftp:\/\/lab" is not the address of a server\.$/],
  ['lab', 'eth0\u001b', /^"eth0\\\\x1b" is not a MAC address\.$/],
] as const) {
  test(`a kernel command line with ${JSON.stringify([server, mac])}`, async () => {
    assert.match(noticeOf(await driveMachine({ server, mac })), notice)
  })
}

test('the token goes with everything, to the server alone', async () => {
  await using server = await startHostileServer(planned(json({ mode: 'exit' })))
  await driveMachine({ server: server.origin, env: { FLASHER_PXE_TOKEN: 'boot.token' } })
  assert.is(server.seen.length > 1, true)
  for (const { headers } of server.seen) assert.is(headers.authorization, 'Bearer boot.token')
})

const { signal } = new AbortController()

interface Sent {
  readonly path: string
  readonly body: string
}

/** A server that records what machines send; `status` is its answer to a path. */
async function openRecorder(status: (path: string, count: number) => number = () => 204) {
  const sent: Sent[] = []
  const server = await startHostileServer((request, response, count) => {
    let body = ''
    request.on('data', (chunk) => {
      body += String(chunk)
    })
    request.on('end', () => {
      const path = (request.url ?? '').replace(`/pxe/${MAC}`, '')
      sent.push({ path, body })
      response.writeHead(status(path, count)).end()
    })
  })
  const link = { base: server.origin, mac: MAC, token: null, signal, retryMs: 5 }
  const close = () => server[Symbol.asyncDispose]()
  return { sent, client: createServerClient(link), [Symbol.asyncDispose]: close }
}

const URL = 'http://10.0.0.1:8080/images/debian%20%231.img'

/** The choice that the kernel's arguments order for a disk. */
function choiceOf(disk: string) {
  const line = `flasher.server=http://10.0.0.1:8080 flasher.mac=${MAC} flasher.image_url=${URL}`
  const order = parseKernelOrder(line)
  if (order?.ordered.ok !== true || order.ordered.value.mode !== 'flash') throw new Error(line)
  return chooseOrdered(order.ordered.value, { path: disk })
}

const FACTS = { mode: 'flash', choice: choiceOf('/dev/sda'), plan: null, disk: null } as const

const writing = (phase: WriteProgress['phase'], bytes: number): FlashEvent => ({
  event: 'writing',
  phase,
  bytes_read: bytes,
  bytes_written: bytes,
  total_bytes: 1000,
  rate: 10,
  eta_seconds: 1,
})

const EVENTS: readonly FlashEvent[] = [
  { event: 'started', total_bytes: 1000 },
  writing('write', 600),
  writing('verify', 1000),
  { event: 'synced' },
  { event: 'partprobed' },
]
const DONE = { kind: 'done', bytesWritten: 1000, verified: true } as const

const OF_THE_RUN = {
  mode: 'flash',
  image: {
    name: 'debian #1.img',
    src: URL,
    ref: null,
    sha256: null,
    format: null,
    size_bytes: null,
  },
  disk: { path: '/dev/sda', model: null, tran: null, serial: null, size_bytes: null },
}

test('the reports of a flash are what deployed servers take, the end with all that is known', async () => {
  await using server = await openRecorder()
  const steps: string[] = []
  const run = createFlashRun(FACTS, {
    client: server.client,
    signal,
    now: () => performance.now(),
    onStep: ({ text, isShare }) => void steps.push(isShare ? text : `(${text})`),
  })
  EVENTS.forEach(run.follow)
  run.end(DONE)
  assert.is(await run.sendDone(() => undefined, true), null)
  const posts = server.sent.filter(({ path }) => path === '/progress')
  const [first, last] = [posts[0]?.body ?? '', posts.at(-1)?.body ?? '']
  const counts = { bytes_read: 0, bytes_written: 0, total_bytes: null, rate: null }
  const begun = { run: run.id, phase: 'started', ...counts, eta_seconds: null, ...OF_THE_RUN }
  assert.equal(JSON.parse(first), begun)
  assert.equal(JSON.parse(last), {
    ...begun,
    phase: 'done',
    bytes_read: 1000,
    bytes_written: 1000,
    total_bytes: 1000,
    verified: true,
  })
  assert.equal(server.sent.at(-1), { path: `/done?run=${run.id}`, body: '' })
  assert.equal(steps, ['write 50%', 'verify 100%', '(sync)', '(done)'])
})

test('a server of the earlier line gets no run with the end, or its status where it has no such route', async () => {
  await using server = await openRecorder((path) => (path === '/done' ? 404 : 204))
  const options = { client: server.client, signal, now: () => performance.now() }
  const run = createFlashRun(FACTS, options)
  EVENTS.forEach(run.follow)
  run.end(DONE)
  assert.is(await run.sendDone(() => undefined, false), null)
  assert.equal(server.sent.slice(-2), [
    { path: '/done', body: '' },
    { path: '/status', body: '{"status":"done"}' },
  ])
})

test('a flash that its checks refuse is one report: why, and of which disk', async () => {
  await using server = await openRecorder()
  const options = { client: server.client, signal, now: () => performance.now() }
  const run = createFlashRun({ ...FACTS, choice: choiceOf('S5GX') }, options)
  run.end({ kind: 'failed', reason: 'it is mounted' })
  assert.is(await run.flush(5000), null)
  assert.is(server.sent.length, 1)
  const { phase, reason, disk, bytes_written } = JSON.parse(server.sent[0]?.body ?? '')
  assert.equal(
    [phase, reason, disk, bytes_written],
    ['failed', 'it is mounted', { path: '', serial: 'S5GX' }, 0],
  )
})

test('a server that is silent, then busy, is asked again, and a person sees it', async () => {
  await using server = await openRecorder((_path, count) => (count < 4 ? 503 : 204))
  const times = { report: 20_000, silence: 5, retry: 20 }
  const run = createFlashRun(FACTS, {
    client: server.client,
    signal,
    now: () => performance.now(),
    times,
  })
  run.end(DONE)
  const said: string[] = []
  assert.is(await run.sendDone((line) => said.push(line), true), null)
  assert.ok(said.some((line) => /trying again, for .+ more/.test(line)))
})

test.run()
