/** Run in a namespace: what comes in by a listener of the environment outside goes to HOST PORT here. */
import { connect, Server, type Socket } from 'node:net'

const [host = '', port = ''] = process.argv.slice(2)

process.once('message', (_, listener) => {
  if (!(listener instanceof Server)) throw new Error('a listener was expected')
  listener.on('connection', (outer: Socket) => {
    const inner = connect(Number(port), host)
    for (const [one, other] of [
      [outer, inner],
      [inner, outer],
    ] as const) {
      one.on('error', () => other.destroy())
      one.pipe(other)
    }
  })
  process.send?.('ready')
})
