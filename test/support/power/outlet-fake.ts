/** A switched outlet with URLs, as plugs and PDUs have them, for hooks. */
import { once } from 'node:events'
import * as http from 'node:http'
import type { AddressInfo } from 'node:net'
import { H3, toNodeHandler } from 'h3'

export type OutletFake = Awaited<ReturnType<typeof startOutlet>>

/** Starts it on a free port of 127.0.0.1; it wants the user `admin` with the password `s3cret`. */
export async function startOutlet() {
  const state = {
    isOn: false,
    boot: 'none',
    status: 200,
    answer: 'json' as 'json' | 'text',
    /** What it says instead of its state, or beside another status, one after the other. */
    words: [] as string[],
  }
  const asked: string[] = []
  const app = new H3()
  const wanted = `Basic ${Buffer.from('admin:s3cret').toString('base64')}`
  app.use((event, next) => {
    asked.push(`${event.req.method} ${event.url.pathname}`)
    if (event.req.headers.get('authorization') !== wanted) return new Response('', { status: 401 })
    if (state.status !== 200) return new Response(state.words.shift(), { status: state.status })
    return next()
  })
  const turn = (on: boolean) => () => {
    state.isOn = on
    return 'OK'
  }
  app.post('/:mac/on', turn(true))
  app.post('/:mac/off', turn(false))
  app.post('/:mac/pxe', () => {
    state.boot = 'pxe'
    return 'OK'
  })
  app.get('/:mac/state', () => {
    const other = state.words.shift()
    if (other !== undefined) return other
    const word = state.isOn ? 'ON' : 'OFF'
    return state.answer === 'json' ? { POWER: word } : `${word}\n`
  })
  const server = http.createServer(toNodeHandler(app))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const url = (verb: string) => `http://127.0.0.1:${port}/{mac}/${verb}`
  return {
    state,
    asked,
    hook: { way: 'hook', on: url('on'), off: url('off'), state: url('state'), network: url('pxe') },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
