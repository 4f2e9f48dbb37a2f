/** A network between machines and their server that loses some of what goes through it. */
import { connect, createServer, type Socket } from 'node:net'
import { createRandom } from '../collect.ts'

export interface LossyLink extends AsyncDisposable {
  readonly url: string
  /** Connections that were cut. */
  readonly cuts: () => number
}

/** `share`: of the pieces that pass, how many cut their connection instead; 0 to 1. */
export async function openLossyLink(port: number, share: number): Promise<LossyLink> {
  const random = createRandom(7)
  const sockets = new Set<Socket>()
  let cuts = 0
  const join = (from: Socket, to: Socket) => {
    sockets.add(from)
    from.on('error', () => to.destroy())
    from.on('close', () => {
      sockets.delete(from)
      to.destroy()
    })
    from.on('data', (piece) => {
      if (random() < share) {
        cuts += 1
        from.destroy()
        to.destroy()
      } else to.write(piece)
    })
  }
  const server = createServer((machine) => {
    const other = connect(port, '127.0.0.1')
    join(machine, other)
    join(other, machine)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const own = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${own}`,
    cuts: () => cuts,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}
