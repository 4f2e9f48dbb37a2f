/** A client of Node's inspector: commands of the DevTools protocol over its WebSocket. */
import { once } from 'node:events'
import { z } from 'zod'

const targets = z.array(z.object({ webSocketDebuggerUrl: z.string() }))
const answer = z.object({ id: z.number().optional(), result: z.unknown() })

/** The process that listens with `--inspect` on this port of the loopback. */
export async function connectInspector(port: number) {
  const list = await fetch(`http://127.0.0.1:${port}/json/list`)
  const [target] = targets.parse(await list.json())
  if (target === undefined) throw new Error(`nothing is inspected on port ${port}`)
  const socket = new WebSocket(target.webSocketDebuggerUrl)
  await once(socket, 'open')
  const waiting = new Map<number, (result: unknown) => void>()
  socket.addEventListener('message', ({ data }) => {
    const { id = 0, result } = answer.parse(JSON.parse(String(data)))
    waiting.get(id)?.(result)
    waiting.delete(id)
  })
  let lastId = 0
  return {
    call(method: string, params: Readonly<Record<string, unknown>> = {}): Promise<unknown> {
      lastId += 1
      const asked = Promise.withResolvers<unknown>()
      waiting.set(lastId, asked.resolve)
      socket.send(JSON.stringify({ id: lastId, method, params }))
      return asked.promise
    },
    [Symbol.dispose]() {
      socket.close()
    },
  }
}
