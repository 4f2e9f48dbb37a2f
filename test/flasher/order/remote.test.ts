/** Servers that answer nonsense, or not at all: each ends in a wizard with the reason. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { SurveyedDisk } from '#engine/disk/rules/disk.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { startHostileServer, type Answer } from '#test/support/http/hostile-server.ts'
import { driveMachine, MAC, type Driven } from '#test/support/terminal/remote-fixture.ts'

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
    /sent no plan: it sends us elsewhere \(HTTP 307\)\.$/,
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
    assert.match(noticeOf(stranger), /the certificate comes from an unknown authority/)
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

test.run()
