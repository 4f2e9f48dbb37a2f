/** Run in a namespace: a listener on its loopback that the environment outside gets. */
import { createServer } from 'node:net'

const listener = createServer()
listener.listen(0, '127.0.0.1', () => {
  const address = listener.address()
  const port = address === null || typeof address === 'string' ? 0 : address.port
  process.send?.({ port }, listener)
})
// It lives as long as whoever took the listener.
process.on('message', () => {})
