/** Requests on their way through a server that stands by: over TLS, and with a leader that is cut off or dies in their middle. */
import { randomBytes } from 'node:crypto'
import { mkdtempDisposable, readdir, readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { askAs, startServer, until, type ClusterServer } from '#test/support/cluster/servers.ts'
import { openWireTo } from '#test/support/cluster/wire.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { findPort } from '#test/support/http/ports.ts'
import { opened } from '#test/support/opened.ts'

const test = suite('requests that are passed on and break off')
const MIB = 2 ** 20
const CONTENT = randomBytes(48 * MIB)
const KEY = 'a key that these servers have, and no database'

const postgres = lendDatabases(test)
const name = opened(test, () => postgres.create())
const folder = opened(test, () => mkdtempDisposable(join(tmpdir(), 'flasher-tls-')))
const authority = opened(test, () => makeAuthority(folder().path))
const port = opened(test, () => findPort())
/** It lies between the servers. */
const wire = opened(test, () => openWireTo(() => connect(port(), '127.0.0.1')))
const leader = opened(test, () =>
  startServer(postgres.urlOf(name()), {
    FLASHER_DATABASE_KEY: KEY,
    FLASHER_SERVER_PORT: String(port()),
    FLASHER_SERVER_TLS_CERT: join(folder().path, 'server.pem'),
    FLASHER_SERVER_TLS_KEY: join(folder().path, 'server.key'),
    FLASHER_DATABASE_OWN_URL: `https://127.0.0.1:${wire().port}`,
  }),
)
test.before(() => leader().leads())
const startStandby = (more: Readonly<Record<string, string>>) =>
  startServer(postgres.urlOf(name()), { FLASHER_DATABASE_KEY: KEY, ...more })
const standby = opened(test, () => startStandby({ FLASHER_CA_FILE: authority().caFile }))
test.before(() => standby().standsBy())

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
  const operator = await askAs(standby())
  assert.is((await operator('/machines')).status, 200)
  {
    await using other = await startStandby({})
    await other.standsBy()
    await refuse(
      other,
      `https://127.0.0.1:${wire().port}: the certificate comes from an unknown authority. FLASHER_CA_FILE names`,
    )
  }
  const setUrl = (host: string) =>
    postgres.query(name(), `UPDATE flasher.lease SET url = 'https://${host}:${wire().port}'`)
  await setUrl('localhost')
  await refuse(
    standby(),
    `https://localhost:${wire().port}: the certificate is for another host name. Its database.own_url must have a name that is in its certificate.`,
  )
  await setUrl('127.0.0.1')
  await awaitReady(standby(), 200)
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
  const operator = await askAs(standby())
  const headers = { 'content-type': 'application/octet-stream' }
  const put = { method: 'PUT', body, headers, duplex: 'half' as const }
  return await operator(`/boot/${file}`, put).then(
    ({ status }) => status,
    () => 'broken' as const,
  )
}

/** What came of an answer; `act` is called after the first MiB. */
async function download(path: string, act: () => void) {
  const answer = await fetch(`${standby().url}${path}`)
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
  assert.equal(await listFiles(leader(), 'large'), [])
  assert.is(await upload('large.bin', CONTENT), 200)
  assert.ok(CONTENT.equals(await readFile(leader().home.at('state/boot/large.bin'))))

  const { isBroken, bytes } = await download('/boot/large.bin', wire().cut)
  assert.ok(isBroken && bytes.length < CONTENT.length)
  const headers = { range: `bytes=${bytes.length}-` }
  const rest = await fetch(`${standby().url}/boot/large.bin`, { headers })
  assert.is(rest.status, 206)
  assert.ok(CONTENT.equals(Buffer.concat([bytes, Buffer.from(await rest.arrayBuffer())])))
})

test('a leader that dies in the middle of both leaves nothing half, and the upload is repeated to the next one', async () => {
  const both = await Promise.all([
    download('/boot/large.bin', () => undefined),
    upload(
      'other.bin',
      halved(() => leader().kill('SIGKILL')),
    ),
  ])
  const [{ isBroken, bytes }, uploaded] = both
  assert.ok([502, 'broken'].includes(uploaded), String(uploaded))
  assert.is(isBroken, bytes.length < CONTENT.length)
  await standby().leads()
  assert.is(await upload('other.bin', CONTENT), 200)
  assert.ok(CONTENT.equals(await readFile(standby().home.at('state/boot/other.bin'))))
  // What only the dead one has is not there, rather than anything else.
  assert.is((await fetch(`${standby().url}/boot/large.bin`)).status, 404)

  leader().restart()
  await leader().standsBy()
  assert.equal(await listFiles(leader(), 'other'), [])
})

test.run()
