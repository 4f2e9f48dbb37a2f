/** Passing requests on, seen as bytes on the next connection: what goes first, and what a refusal leaves open. */
import { createServer } from 'node:http'
import { connect, createServer as createRawServer, type Socket } from 'node:net'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createClientSeal } from '../../../../runtime/kit/web/http/client-seal.ts'
import { createForwarder } from '../../../../runtime/kit/web/http/forwarder.ts'
import { listen } from '../../../support/http/hostile-server.ts'

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

test.run()
