/** The socket of every server program: what callers do to it must not end the program. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome } from '../support/server/flasher-web.ts'

const test = suite('listening')

const HEAD =
  'POST /pxe/aa:bb:cc:dd:ee:01/status HTTP/1.1\r\nHost: x\r\n' +
  'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n'

/** More than the server takes; the caller is gone as soon as the refusal begins to arrive. */
async function sendTooMuch(port: number): Promise<void> {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => {})
  socket.once('data', () => socket.destroy())
  const closed = once(socket, 'close')
  const piece = `10000\r\n${' '.repeat(0x1_0000)}\r\n`
  socket.write(HEAD + piece.repeat(17))
  await closed.catch(() => {})
}

test('a caller that leaves in the middle of a refused body does not end the server', async () => {
  await using home = await createServerHome()
  await using server = await home.start()
  for (let time = 1; time <= 12; time++) await sendTooMuch(Number(new URL(server.url).port))
  assert.is((await fetch(`${server.url}/healthz`)).status, 200)
})

test.run()
