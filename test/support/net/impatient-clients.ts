/**
 * Clients that connect to a port again and again, and wait for their answer for as long as it takes; in a
 * process of their own, so that they connect at any moment of what is tested. Prints what each met.
 */
import { connect } from 'node:net'

const port = Number(process.argv[2])
const GAP_MS = 0.2

function ask() {
  const socket = connect({ port, host: '127.0.0.1' })
  let hasConnected = false
  socket.on('connect', () => {
    // A port in use for outgoing connections may meet itself where nobody listens yet.
    if (socket.localPort === port) return socket.destroy()
    hasConnected = true
    socket.write('GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n')
  })
  let text = ''
  socket.setEncoding('latin1').on('data', (part: string) => {
    text += part
  })
  socket.on('error', () => {})
  socket.on('close', () => {
    if (hasConnected) console.log(text.startsWith('HTTP/1.1 200') ? 'answered' : 'dropped')
  })
}

for (;;) {
  ask()
  const until = performance.now() + GAP_MS
  await new Promise((resolve) => setImmediate(resolve))
  while (performance.now() < until) await new Promise((resolve) => setImmediate(resolve))
}
