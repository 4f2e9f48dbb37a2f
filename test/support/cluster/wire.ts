/** A loopback address in front of another one: its connections can be cut, held and slowed. */
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

export type Wire = Awaited<ReturnType<typeof openWireTo>>

/** Sees all bytes that pass; true: they are not passed on, and the connection ends. */
type Interrupt = (bytes: Buffer, from: 'client' | 'server') => boolean

const NEVER: Interrupt = () => false

/** `dial` connects to where the wire leads, for each connection that comes. */
export async function openWireTo(dial: () => Socket) {
  const pairs = new Set<readonly [Socket, Socket]>()
  let [delay, isCut] = [0, false]
  let gate: PromiseWithResolvers<void> | null = null
  let interrupt = NEVER

  const listener = createServer({ allowHalfOpen: true }, (client) => {
    if (isCut) {
      client.destroy()
      return
    }
    const server = dial()
    server.allowHalfOpen = true
    const pair = [client, server] as const
    pairs.add(pair)
    const end = () => {
      for (const each of pair) each.destroy()
      pairs.delete(pair)
    }
    const pass = (from: Socket, to: Socket, side: 'client' | 'server') => {
      // What came first is passed on first, its end after all of it.
      let before = Promise.resolve()
      const inTurn = (act: () => void) => {
        const late = delay > 0 && side === 'server' ? sleep(delay) : null
        before = before.then(async () => {
          await late
          await gate?.promise
          act()
        })
      }
      from.on('data', (bytes: Buffer) => {
        inTurn(() => {
          if (interrupt(bytes, side)) end()
          else if (!to.destroyed) to.write(bytes)
        })
      })
      from.on('end', () => inTurn(() => to.end()))
      from.on('error', end)
      from.on('close', () =>
        inTurn(() => (from.readableEnded && !to.destroyed ? undefined : end())),
      )
    }
    pass(client, server, 'client')
    pass(server, client, 'server')
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  const address = listener.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const cut = () => {
    for (const pair of pairs) for (const each of pair) each.destroy()
    pairs.clear()
  }
  return {
    port: address.port,
    /** Ends all connections. */
    cut,
    /** Ends them, and takes none until `mend`. */
    sever() {
      isCut = true
      cut()
    },
    mend() {
      isCut = false
      delay = 0
      gate?.resolve()
      gate = null
    },
    /** Nothing passes until `mend`, and nobody hears why. */
    hold() {
      gate ??= Promise.withResolvers<void>()
    },
    /** What comes from there comes so much later. */
    slow(milliseconds: number) {
      delay = milliseconds
    },
    onBytes(look: Interrupt) {
      interrupt = look
    },
    [Symbol.asyncDispose]: async () => {
      cut()
      const closed = once(listener, 'close')
      listener.close()
      await closed
    },
  }
}
