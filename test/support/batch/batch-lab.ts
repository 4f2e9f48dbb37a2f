/** A few machines of one rack at a server that keeps batches, and what they ask it. */
import { entryOf, OTHER_REF, REF } from '../server/machine-fixture.ts'
import { asJson, createTestServer, readJson, type TestServerOptions } from '../server/server.ts'

export const RACK = [1, 2, 3, 4].map((box) => `52:54:00:00:00:0${box}`)
export const RACK_IMAGE = '2.4.30.img.zst'

/** `await using`: a server with four machines of `rack-03` that are set to boot their disks. */
export async function openBatchLab(options: TestServerOptions = {}) {
  const server = await createTestServer({
    catalog: [entryOf(REF, { name: RACK_IMAGE }), entryOf(OTHER_REF)],
    ...options,
  })
  const ask = await server.operator()
  const put = (mac: string, more: object = {}) =>
    readJson(
      ask(
        `/machines/${mac}`,
        asJson(
          { bty_image_ref: REF, target_disk_serial: 'S1', labels: ['rack-03'], ...more },
          'PUT',
        ),
      ),
    )
  for (const mac of RACK) await put(mac)
  const bulk = (action: string, parameters: object = {}, macs: readonly string[] = RACK) =>
    readJson(ask('/machines/bulk', asJson({ action, macs, parameters })))
  return {
    server,
    ask,
    put,
    bulk,
    /** Arms all of them; returns the batch. */
    arm: async (): Promise<string> =>
      (await bulk('flash', { boot_mode: 'flasher-flash-once' })).batch,
    batch: (id: string) => readJson(ask(`/batches/${id}`)),
    act: (id: string, action: string) => ask(`/batches/${id}/${action}`, { method: 'POST' }),
    /** The rule by which a network boot is answered. */
    async boot(mac: string): Promise<string> {
      const script = await (await server.request(`/pxe/${mac}`)).text()
      return /^# (?!flasher)([a-z-]+): /m.exec(script)?.[1] ?? script
    },
    plan: async (mac: string) => await (await server.request(`/pxe/${mac}/plan`)).json(),
    done: (mac: string) => server.request(`/pxe/${mac}/done`, { method: 'POST' }),
    fail: (mac: string) =>
      server.request(`/pxe/${mac}/status`, asJson({ status: 'failed', reason: 'disk full' })),
    async kinds(query = '') {
      const { events } = await readJson(ask(`/events?limit=500${query}`))
      return events.map(({ kind }: { kind: string }) => kind)
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
