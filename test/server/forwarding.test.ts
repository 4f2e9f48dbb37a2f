/** A server that does not lead: what it answers itself, and how everything else comes to the leader and back. */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { mkdtempDisposable, readdir, readFile } from 'node:fs/promises'
import { request as send } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createClientSeal } from '#kit/web/http/entrance.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import {
  addBootFile,
  askAs,
  type ClusterServer,
  startServer,
  until,
} from '#test/support/cluster/servers.ts'
import { openWireTo } from '#test/support/cluster/wire.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { findPort } from '#test/support/http/ports.ts'
import { opened } from '#test/support/opened.ts'
import { macOf } from '#test/support/server/state.ts'

const test = suite('a server that stands by')
const postgres = lendDatabases(test)
const name = opened(test, () => postgres.create())
const KEY = 'a key that these servers have, and no database'
const settings = { FLASHER_DATABASE_KEY: KEY }
const leader = opened(test, () => startServer(postgres.urlOf(name()), settings))
test.before(() => leader().leads())
const standby = opened(test, () => startServer(postgres.urlOf(name()), settings))
test.before(() => standby().standsBy())

interface RawAnswer {
  readonly status: number
  readonly text: string
}

/** From an address of its own, with headers that fetch would not send. */
function ask(
  port: number,
  path: string,
  {
    from = '127.0.0.1',
    headers = {},
  }: { readonly from?: string; readonly headers?: Record<string, string> } = {},
): Promise<RawAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<RawAnswer>()
  const options = { host: '127.0.0.1', port, path, localAddress: from, headers, agent: false }
  send(options, (answer) => {
    let text = ''
    answer.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
    })
    answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text }))
  })
    .on('error', reject)
    .end()
  return promise
}

test('the leader sees the client as it came, and its scripts name the server that the client asked', async () => {
  const mac = macOf(1)
  const { text } = await ask(standby().port, `/pxe/${mac}`, { from: '127.0.0.2' })
  assert.match(text, `flasher: ${mac}`)
  const operator = await askAs(standby())
  const machine = await (await operator(`/machines/${mac}`)).json()
  assert.is(machine.last_seen_ip, '127.0.0.2')
  const events = await (await operator('/events.json?kind=machine.discovered')).text()
  assert.match(events, '127.0.0.2')
  const headers = { host: 'boxes.example:81' }
  await addBootFile(leader(), 'x', 'x')
  const bootstrap = await ask(standby().port, '/pxe-bootstrap.ipxe', { headers })
  assert.match(bootstrap.text, 'http://boxes.example:81/')
})

test('nobody else is believed about the address of a client', async () => {
  const lies = ['203.0.113.9;http;' + 'A'.repeat(43), '203.0.113.9', 'x'.repeat(5000)]
  for (const [at, lie] of lies.entries()) {
    for (const { port } of [leader(), standby()]) {
      const mac = macOf(10 + at)
      const headers = { 'flasher-client': lie, 'x-forwarded-for': '203.0.113.9' }
      assert.is((await ask(port, `/pxe/${mac}`, { headers })).status, 200)
      const machine = await (await (await askAs(leader()))(`/machines/${mac}`)).json()
      assert.is(machine.last_seen_ip, '127.0.0.1')
    }
  }
})

/** What a member makes of a request for `path`; another `key` than that of the servers: an outsider. */
async function createSealing(port: number, key: string) {
  const [row] = await postgres.query(name(), 'SELECT cluster, epoch FROM flasher.lease')
  const seal = createClientSeal({ key, cluster: String(row?.['cluster']) })
  const host = `127.0.0.1:${port}`
  const client = { ip: '192.0.2.1', isSecure: false }
  return (path: string, term = String(row?.['epoch'])) => {
    const request = { method: 'GET', url: path, headers: { host } }
    return { host, 'flasher-client': seal.seal(request, client, term) }
  }
}

test('what another server passed on is not passed on again', async () => {
  const seal = await createSealing(standby().port, KEY)
  const headers = seal('/version')
  assert.is((await ask(standby().port, '/version', { headers })).status, 421)
  // Two servers that each take the other one for the leader do not ask each other for ever.
  const asked = { headers: seal('/healthz?ready') }
  assert.is((await ask(standby().port, '/healthz?ready', asked)).status, 421)
  // A seal is for one request.
  assert.is((await ask(standby().port, '/healthz?ready', { headers })).status, 200)
  assert.is((await ask(standby().port, '/openapi.json', { headers })).status, 200)
})

test('a seal is believed once, by the leader that it was made for', async () => {
  const seal = await createSealing(leader().port, KEY)
  const path = `/pxe/${macOf(20)}`
  const headers = seal(path)
  assert.is((await ask(leader().port, path, { headers })).status, 200)
  const operator = await askAs(leader())
  const seenAt = async (mac: string) =>
    (await (await operator(`/machines/${mac}`)).json()).last_seen_ip
  assert.is(await seenAt(macOf(20)), '192.0.2.1')
  assert.is((await ask(leader().port, path, { headers })).status, 421)
  assert.is((await ask(leader().port, path, { headers: seal(path, '0') })).status, 421)
  assert.is((await ask(leader().port, path, { headers: seal(path) })).status, 200)
})

test('who knows the name of the database and not the key seals nothing', async () => {
  const seal = await createSealing(leader().port, '')
  const path = `/pxe/${macOf(21)}`
  assert.is((await ask(leader().port, path, { headers: seal(path) })).status, 200)
  const machine = await (await (await askAs(leader()))(`/machines/${macOf(21)}`)).json()
  assert.is(machine.last_seen_ip, '127.0.0.1')
})

test('an upload of any size comes through, and is not held in memory', async () => {
  const operator = await askAs(standby())
  const piece = randomBytes(1024 * 1024)
  const pieces = 160
  const digest = createHash('sha256')
  let sent = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent === pieces) return controller.close()
      sent += 1
      digest.update(piece)
      controller.enqueue(piece)
    },
  })
  const before = residentOf(standby().process().child.pid)
  const put = { method: 'PUT', body, duplex: 'half' as const }
  const headers = { 'content-type': 'application/octet-stream' }
  const answer = await operator('/boot/large.bin', { ...put, headers })
  assert.is(answer.status, 200, await answer.text())
  const grown = residentOf(standby().process().child.pid) - before
  assert.ok(grown < 80 * 1024 * 1024, `${grown} bytes more`)
  const stored = await readFile(leader().home.at('state/boot/large.bin'))
  assert.is(createHash('sha256').update(stored).digest('hex'), digest.digest('hex'))
  // And back: the leader alone has the file.
  const back = await fetch(`${standby().url}/boot/large.bin`, { headers: { range: 'bytes=5-9' } })
  assert.is(back.status, 206)
  assert.equal(Buffer.from(await back.arrayBuffer()), piece.subarray(5, 10))
})

const residentOf = (pid: number | undefined) =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024

test('boot files are its own where it has them, and the machine that fetches one is seen by the leader', async () => {
  const mac = macOf(30)
  await addBootFile(standby(), 'own.bin', 'of the server that stands by')
  await ask(standby().port, `/pxe/${mac}`)
  const { text } = await ask(standby().port, `/boot/own.bin?mac=${mac}`, { from: '127.0.0.3' })
  assert.is(text, 'of the server that stands by')
  assert.is((await ask(leader().port, '/boot/own.bin')).status, 404)
  assert.is((await ask(standby().port, '/boot/nobody.bin')).status, 404)
  const gone = { method: 'DELETE', headers: { origin: standby().url } }
  assert.is((await fetch(`${standby().url}/boot/own.bin`, gone)).status, 405)
  await addBootFile(leader(), 'own.bin', 'of the leader')
  await ask(standby().port, `/boot/own.bin?mac=${mac}`, { from: '127.0.0.3' })
  const operator = await askAs(leader())
  await until(async () => {
    const machine = await (await operator(`/machines/${mac}`)).json()
    return machine.last_seen_ip === '127.0.0.3'
  })
})

test('a live page stays open through it, and its end reaches the leader', async () => {
  const operator = await askAs(standby())
  const direct = await askAs(leader())
  const listeners = async () =>
    Number(/^flasher_sse_clients (\d+)/m.exec(await (await direct('/metrics')).text())?.[1])
  const before = await listeners()
  const leaving = new AbortController()
  const page = await operator('/events/machines', { signal: leaving.signal })
  assert.match(page.headers.get('content-type') ?? '', 'text/event-stream')
  const reader = page.body?.getReader()
  await until(async () => (await listeners()) === before + 1)
  await direct(`/machines/${macOf(40)}`, { method: 'PUT', body: '{"labels":["live"]}' })
  let said = ''
  while (!said.includes(macOf(40))) {
    said += new TextDecoder().decode((await reader?.read())?.value)
  }
  leaving.abort()
  await until(async () => (await listeners()) === before)
})

/** Established connections of this host to a port. */
const countTo = (port: number) =>
  readFileSync('/proc/net/tcp', 'latin1')
    .split('\n')
    .filter((line) => {
      const [, , remote = '', state] = line.trim().split(/\s+/)
      return (
        state === '01' && remote.endsWith(`:${port.toString(16).toUpperCase().padStart(4, '0')}`)
      )
    }).length

test('many requests share a few connections to the leader', async () => {
  const asks = Array.from({ length: 20 }, async () => {
    for (let n = 0; n < 20; n += 1) await (await fetch(`${standby().url}/version`)).text()
  })
  await Promise.all(asks)
  await sleep(100)
  assert.ok(countTo(leader().port) < 64, `${countTo(leader().port)} connections`)
})

test('health is its own; it is ready as long as the leader is', async () => {
  const host = { headers: { host: 'any name!' } }
  assert.is((await ask(standby().port, '/healthz', host)).status, 200)
  assert.is((await ask(standby().port, '/healthz?ready')).status, 200)
  leader().kill('SIGSTOP')
  assert.is((await ask(standby().port, '/healthz')).status, 200)
  assert.is((await ask(standby().port, '/healthz?ready')).status, 503)
  leader().kill('SIGCONT')
  await until(async () => (await ask(standby().port, '/healthz?ready')).status === 200)
})

const MIB = 2 ** 20
const CONTENT = randomBytes(48 * MIB)
const folder = opened(test, () => mkdtempDisposable(join(tmpdir(), 'flasher-tls-')))
const authority = opened(test, () => makeAuthority(folder().path))
const port = opened(test, () => findPort())
/** It lies between the servers. */
const wire = opened(test, () => openWireTo(() => connect(port(), '127.0.0.1')))
const brokenName = opened(test, () => postgres.create())
const brokenLeader = opened(test, () =>
  startServer(postgres.urlOf(brokenName()), {
    FLASHER_DATABASE_KEY: KEY,
    FLASHER_SERVER_PORT: String(port()),
    FLASHER_SERVER_TLS_CERT: join(folder().path, 'server.pem'),
    FLASHER_SERVER_TLS_KEY: join(folder().path, 'server.key'),
    FLASHER_DATABASE_OWN_URL: `https://127.0.0.1:${wire().port}`,
  }),
)
test.before(() => brokenLeader().leads())
const startStandby = (more: Readonly<Record<string, string>>) =>
  startServer(postgres.urlOf(brokenName()), { FLASHER_DATABASE_KEY: KEY, ...more })
const brokenStandby = opened(test, () => startStandby({ FLASHER_CA_FILE: authority().caFile }))
test.before(() => brokenStandby().standsBy())

const awaitReady = ({ url }: ClusterServer, status: 200 | 503) =>
  until(async () => (await fetch(`${url}/healthz?ready`)).status === status)

/** The server passes nothing on, and says why in its log. */
async function refuse(server: ClusterServer, words: string) {
  await awaitReady(server, 503)
  const leaving = new AbortController()
  const asked = fetch(`${server.url}/machines`, { signal: leaving.signal }).catch(() => null)
  await server.process().saw(words)
  leaving.abort()
  assert.is(await asked, null)
}

test('a leader is believed by its certificate alone: its authority, and the name in its address', async () => {
  const operator = await askAs(brokenStandby())
  assert.is((await operator('/machines')).status, 200)
  {
    await using other = await startStandby({})
    await other.standsBy()
    await refuse(
      other,
      `https://127.0.0.1:${wire().port}: the certificate was issued by an unknown authority. Set FLASHER_CA_FILE`,
    )
  }
  const setUrl = (host: string) =>
    postgres.query(brokenName(), `UPDATE flasher.lease SET url = 'https://${host}:${wire().port}'`)
  await setUrl('localhost')
  await refuse(
    brokenStandby(),
    `https://localhost:${wire().port}: the certificate is for another host name. Its database.own_url must have a name that is in its certificate.`,
  )
  await setUrl('127.0.0.1')
  await awaitReady(brokenStandby(), 200)
})

/** Half of it comes, then `act`, then the rest. */
function halved(act: () => void) {
  let at = 0
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= CONTENT.length) return controller.close()
      if (at === CONTENT.length / 2) act()
      controller.enqueue(CONTENT.subarray(at, (at += MIB)))
    },
  })
}

/** Resolves to the status; `broken`: the connection ended, as it does where a server reads no more. */
async function upload(file: string, body: BodyInit) {
  const operator = await askAs(brokenStandby())
  const headers = { 'content-type': 'application/octet-stream' }
  const put = { method: 'PUT', body, headers, duplex: 'half' as const }
  return await operator(`/boot/${file}`, put).then(
    ({ status }) => status,
    () => 'broken' as const,
  )
}

/** What came of an answer; `act` is called after the first MiB. */
async function download(path: string, act: () => void) {
  const answer = await fetch(`${brokenStandby().url}${path}`)
  assert.is(answer.status, 200)
  const pieces: Uint8Array[] = []
  let [length, hasActed, isBroken] = [0, false, false]
  try {
    for await (const piece of answer.body ?? []) {
      pieces.push(piece)
      length += piece.length
      if (length < MIB || hasActed) continue
      hasActed = true
      act()
    }
  } catch {
    isBroken = true
  }
  return { isBroken, bytes: Buffer.concat(pieces) }
}

/** The files of a server in whose name this is; those that are not whole have one beside it. */
const listFiles = async (server: ClusterServer, part: string) =>
  (await readdir(server.home.at('state/boot'))).filter((file) => file.includes(part))

test('an upload that is cut off leaves nothing and can be repeated; a download goes on where it stopped', async () => {
  assert.ok([502, 'broken'].includes(await upload('large.bin', halved(wire().cut))))
  assert.equal(await listFiles(brokenLeader(), 'large'), [])
  assert.is(await upload('large.bin', CONTENT), 200)
  assert.ok(CONTENT.equals(await readFile(brokenLeader().home.at('state/boot/large.bin'))))

  const { isBroken, bytes } = await download('/boot/large.bin', wire().cut)
  assert.ok(isBroken && bytes.length < CONTENT.length)
  const headers = { range: `bytes=${bytes.length}-` }
  const rest = await fetch(`${brokenStandby().url}/boot/large.bin`, { headers })
  assert.is(rest.status, 206)
  assert.ok(CONTENT.equals(Buffer.concat([bytes, Buffer.from(await rest.arrayBuffer())])))
})

test('a leader that dies in the middle of both leaves nothing half, and the upload is repeated to the next one', async () => {
  const both = await Promise.all([
    download('/boot/large.bin', () => undefined),
    upload(
      'other.bin',
      halved(() => brokenLeader().kill('SIGKILL')),
    ),
  ])
  const [{ isBroken, bytes }, uploaded] = both
  assert.ok([502, 'broken'].includes(uploaded), String(uploaded))
  assert.is(isBroken, bytes.length < CONTENT.length)
  await brokenStandby().leads()
  assert.is(await upload('other.bin', CONTENT), 200)
  assert.ok(CONTENT.equals(await readFile(brokenStandby().home.at('state/boot/other.bin'))))
  // What only the dead one has is not there, rather than anything else.
  assert.is((await fetch(`${brokenStandby().url}/boot/large.bin`)).status, 404)

  brokenLeader().restart()
  await brokenLeader().standsBy()
  assert.equal(await listFiles(brokenLeader(), 'other'), [])
})

test.run()
