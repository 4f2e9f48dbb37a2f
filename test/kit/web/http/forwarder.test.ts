/** Passing requests on, seen as bytes on the next connection: what goes first, and what a refusal leaves open. */
import { createServer, type ServerResponse } from 'node:http'
import { connect, createServer as createRawServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createClientSeal } from '#kit/web/http/entrance.ts'
import { createForwarder } from '#kit/web/http/forwarder.ts'
import { listen, startHostileServer } from '#test/support/http/hostile-server.ts'

const test = suite('forwarder')

/**
 * A server that passes everything on to one that answers each request's headers with the same bytes,
 * or breaks the connection off; what comes of neither is answered 502 or 503.
 */
async function setUp(answer: string | null) {
  const seen: { readonly text: string; readonly socket: Socket }[] = []
  const next = createRawServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', (bytes) => {
      seen.push({ text: bytes.toString('latin1'), socket })
      if (answer === null) socket.destroy()
      else socket.write(answer)
    })
  })
  const seal = createClientSeal({ key: '', cluster: 'a fleet of the tests' })
  const forwarder = createForwarder({
    seal: () => seal,
    authorities: undefined,
    log: { warn: () => undefined },
  })
  const front = createServer((request, response) => {
    const client = { ip: '192.0.2.1', isSecure: false }
    forwarder.take(request, response, client, (isDoubtful) =>
      response.writeHead(isDoubtful ? 502 : 503).end(),
    )
  })
  forwarder.follow({ url: `http://127.0.0.1:${await listen(next)}`, term: '1' })
  const socket = connect(await listen(front), '127.0.0.1')
  return {
    seen,
    socket,
    forwarder,
    [Symbol.dispose]() {
      socket.destroy()
      forwarder.end()
      front.close()
      next.close()
    },
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('what says who the client is and how long the body is comes before what the client sent', async () => {
  using parts = await setUp('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  const { socket, seen } = parts
  socket.write('POST /a HTTP/1.1\r\nA: b\r\nContent-Length: 3\r\nHost: a.example\r\n\r\nabc')
  await new Promise((resolve) => socket.once('data', resolve))
  const [{ text = '' } = {}] = seen
  const names = [...text.matchAll(/^([\w-]+):/gm)].map(([, name]) => name)
  assert.equal(names.slice(0, 4), ['Host', 'flasher-client', 'Content-Length', 'A'])
  assert.is(names.filter((name) => name === 'Content-Length').length, 1)
})

test('a client takes no header away by naming it in Connection', async () => {
  using parts = await setUp('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
  const { socket, seen } = parts
  const decisive = ['Origin', 'Sec-Fetch-Site', 'Cookie', 'Authorization', 'X-Forwarded-For']
  const fields = decisive.map((name) => `${name}: said`).join('\r\n')
  socket.write(
    `GET /a HTTP/1.1\r\nHost: a.example\r\nConnection: ${decisive.join(', ')}, flasher-client\r\nKeep-Alive: 5\r\n${fields}\r\n\r\n`,
  )
  await new Promise((resolve) => socket.once('data', resolve))
  const [{ text = '' } = {}] = seen
  for (const name of decisive) assert.match(text, `\r\n${name}: said\r\n`)
  assert.match(text, '\r\nflasher-client: ')
  assert.not.match(text, /keep-alive: 5/i)
})

test('a server that does not lead keeps no connection that waits for the rest of a body', async () => {
  using parts = await setUp('HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\n\r\n')
  const { socket, seen } = parts
  socket.write('POST /pxe/a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 9\r\n\r\nabc')
  while (seen.length < 3) await turn()
  const [first] = seen
  while (first?.socket.destroyed === false) await turn()
})

test('a change whose answer is lost is sent once; what a machine reports is sent again', async () => {
  using parts = await setUp(null)
  const { socket, seen } = parts
  socket.write('POST /machines/a HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc')
  const said = await new Promise((resolve) => socket.once('data', resolve))
  assert.match(String(said), '502')
  assert.is(seen.length, 1)
  socket.write('POST /pxe/a/done HTTP/1.1\r\nHost: a.example\r\nContent-Length: 3\r\n\r\nabc')
  while (seen.length < 3) await turn()
  assert.ok(seen.slice(1).every(({ text }) => text.startsWith('POST /pxe/a/done ')))
})

test('who leaves before the answer leaves the next server, too, and nothing is sent again', async () => {
  using parts = await setUp('')
  const { socket, seen } = parts
  socket.write('GET /pxe/a HTTP/1.1\r\nHost: a.example\r\n\r\n')
  while (seen.length < 1) await turn()
  const [first] = seen
  socket.destroy()
  while (first?.socket.destroyed === false) await turn()
  assert.is(seen.length, 1)
})

test('an answer that breaks off is no whole one', async () => {
  using parts = await setUp('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc')
  const { socket, seen } = parts
  socket.write('GET /a HTTP/1.1\r\nHost: a.example\r\n\r\n')
  await new Promise((resolve) => socket.once('data', resolve))
  seen[0]?.socket.destroy()
  await new Promise((resolve) => socket.once('close', resolve))
})

test('an address that is none is nobody', async () => {
  using parts = await setUp('')
  parts.forwarder.follow({ url: 'http://[fe80::1%eth0]:8080', term: '2' })
  assert.is(parts.forwarder.current(), null)
})

type Respond = Parameters<typeof startHostileServer>[0]

/** A leader that reads everything and answers as `answer` says; `ask` asks by way of another server. */
async function setUpLeader(
  answer: Respond,
  limits: Pick<Parameters<typeof createForwarder>[0], 'holdMs' | 'maxSockets'> = {},
) {
  const leader = await startHostileServer(answer)
  const seal = createClientSeal({ key: '', cluster: 'a fleet of the tests' })
  const log = { warn: () => undefined }
  const forwarder = createForwarder({ seal: () => seal, authorities: undefined, log, ...limits })
  const taken: Promise<void>[] = []
  const front = createServer((request, response) => {
    const client = { ip: '192.0.2.1', isSecure: false }
    const otherwise = (isDoubtful: boolean) => response.writeHead(isDoubtful ? 502 : 503).end()
    taken.push(forwarder.take(request, response, client, otherwise))
  })
  forwarder.follow({ url: leader.origin, term: '1' })
  const url = `http://127.0.0.1:${await listen(front)}`
  const begun = performance.now()
  return {
    leader,
    taken,
    forwarder,
    async ask(path: string, init: RequestInit = {}) {
      const { status } = await fetch(url + path, init)
      return { status, after: (performance.now() - begun) / 1000 }
    },
    /** `isWhole`: the answer came to its end. */
    async read(path: string) {
      const read = await fetch(url + path)
      const isWhole = await read.arrayBuffer().then(
        () => true,
        () => false,
      )
      return { isWhole, after: (performance.now() - begun) / 1000 }
    },
    async [Symbol.asyncDispose]() {
      forwarder.end()
      front.closeAllConnections()
      front.close()
      await leader[Symbol.asyncDispose]()
    },
  }
}

/** A piece each second. */
const slowBody = (pieces: number) => {
  let left = pieces
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      await sleep(1000)
      controller.enqueue(new Uint8Array(2048))
      if ((left -= 1) === 0) controller.close()
    },
  })
}

/** A piece at once, and one after each of these times. */
async function answerSlowly(response: ServerResponse, pauses: readonly number[]) {
  response.write(new Uint8Array(2048))
  for (const pause of pauses) {
    await sleep(pause)
    response.write(new Uint8Array(2048))
  }
  response.end()
}

test('nobody waits for a leader that nobody hears; what moves is not cut', async () => {
  await using parts = await setUpLeader((request, response) => {
    request.resume()
    // It is there for these alone.
    if (request.url === '/upload') request.on('end', () => response.end())
    const moves = Array.from({ length: 14 }, () => 1000)
    if (request.url === '/download') void answerSlowly(response, moves)
    // These begin, and nothing more comes.
    if (request.url === '/stuck') response.write(new Uint8Array(2048))
    if (request.url === '/live') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    }
  })
  const { ask, read, leader } = parts
  const large = { method: 'POST', body: new Uint8Array(20_000) }
  const upload = { method: 'PUT', body: slowBody(14), duplex: 'half' as const }
  const [page, change, inventory, late, moved, download, stuck, live] = await Promise.all([
    ask('/machines'),
    ask('/machines/a', { method: 'PUT', body: '{}' }),
    ask('/pxe/a/inventory', large),
    sleep(3000).then(() => ask('/machines/late', { method: 'PUT', body: '{}' })),
    ask('/upload', upload),
    read('/download'),
    read('/stuck'),
    read('/live'),
  ])
  assert.ok(download.isWhole)
  for (const { isWhole, after } of [stuck, live]) assert.ok(!isWhole && after < 13, `${after} s`)
  assert.equal(
    [page, change, inventory, late, moved].map(({ status }) => status),
    [503, 502, 502, 502, 200],
  )
  for (const { after } of [page, change, inventory, late]) assert.ok(after < 13, `${after} s`)
  // It was sent once: nothing more goes to a leader that is silent.
  assert.is(leader.seen.filter(({ url }) => url === '/machines').length, 1)
})

/** It says that it is there, and takes its time for all else. */
const answerLate: Respond = (request, response) => {
  if (request.url === '/image') return void answerSlowly(response, [7500])
  const isHealth = request.url === '/healthz'
  setTimeout(() => response.writeHead(isHealth ? 200 : 201).end(), isHealth ? 0 : 7500)
}

test('a leader that takes its time and says that it is there is waited for', async () => {
  await using parts = await setUpLeader(answerLate, { holdMs: 1000 })
  const { ask, read, leader } = parts
  const post = { method: 'POST', body: '{}' }
  const [backup, image] = await Promise.all([ask('/backups', post), read('/image')])
  assert.is(backup.status, 201)
  assert.ok(image.isWhole)
  const asked = leader.seen.filter(({ url }) => url === '/healthz').length
  assert.ok(asked > 0 && asked < 4, `${asked} questions`)
})

const answerSome: Respond = (request, response) => {
  if (request.url === '/free') response.end()
  if (request.url === '/healthz') response.end()
}

test('who leaves while all connections are busy is gone at once, and the others wait as long as they may', async () => {
  await using parts = await setUpLeader(answerSome, { maxSockets: 2, holdMs: 2000 })
  const { ask, taken, leader, forwarder } = parts
  const busy = [1, 2].map(() => ask('/busy').catch(() => null))
  while (leader.seen.length < 2) await turn()
  const leaving = new AbortController()
  const left = ask('/left', { signal: leaving.signal }).catch(() => null)
  const waits = ask('/waits')
  while (taken.length < 4) await turn()
  leaving.abort()
  await left
  const at = performance.now()
  await taken[2]
  assert.ok(performance.now() - at < 1000)
  const request = { method: 'GET', url: '/free', headers: {}, rawHeaders: [] }
  assert.is(await forwarder.ask(request, { ip: '', isSecure: false }), null)
  const { status, after } = await waits
  assert.is(status, 503)
  assert.ok(after > 1.9, `${after} s`)
  assert.is(leader.seen.filter(({ url }) => url === '/left' || url === '/waits').length, 0)
  forwarder.follow(null)
  await Promise.all(busy)
})

test.run()
