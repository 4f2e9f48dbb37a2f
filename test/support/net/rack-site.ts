/** A server and a cache in a namespace, and machines that hand an image on to each other; needs root and nginx. */
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { connect, Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { blobUrl } from '#engine/catalog/rules/cache-entry.ts'
import { createLoop } from '../disk/loop.ts'
import type { PackedImage } from '../disk/packed-image.ts'
import { sendFile, startHostileServer } from '../http/hostile-server.ts'
import { bring, makeFolder, serveCache } from '../server/image-cache.ts'
import { asJson, createTestServer, listen, readJson } from '../server/server.ts'
import { entryOf } from '../terminal/remote-fixture.ts'
import { createLab, type LabHost } from './rack.ts'
import { PLACE } from './rack-place.ts'

const at = (name: string) => fileURLToPath(new URL(name, import.meta.url))

const MAC = (index: number) => `52:54:00:00:00:${(index + 1).toString(16).padStart(2, '0')}`

/** A piece of 1 MiB takes a second. */
const SLOW_MBIT = 8

interface RackOptions {
  readonly machines: number
  /** Each link carries so much, both ways. */
  readonly mbit: number
  readonly packed: PackedImage
  readonly enabled?: boolean
}

export interface RackEnd {
  readonly kind: string
  readonly notice: string | null
  readonly said: readonly string[]
}

/** `await using`. */
export async function openRack({ machines, mbit, packed, enabled = true }: RackOptions) {
  await using undo = new AsyncDisposableStack()
  const folder = undo.use(await makeFolder())
  const source = undo.use(
    await startHostileServer((request, response) => sendFile(packed.file, request, response)),
  )
  const lab = undo.use(createLab(machines, mbit))
  const served = undo.use(await serveCache(join(folder.path, 'cache')))
  const src = `${source.origin}/a.img.zst`
  await bring(served.cache, { src })
  const { address } = lab.server
  const cacheUrl = `http://${address}:8081`
  const entry = entryOf(blobUrl(cacheUrl, src), {
    format: 'img.zst',
    sha256: packed.sha256,
    indexSha256: packed.indexSha256,
    sizeBytes: packed.file.length,
  })
  const server = undo.use(
    await createTestServer({
      catalog: [entry],
      cacheUrl,
      env: { FLASHER_PEERS_ENABLED: String(enabled) },
    }),
  )
  const open = undo.use(await listen(server))
  const lent = await lend(lab.server, 8080)
  lent.on('connection', (socket: Socket) => void open.http.emit('connection', socket))
  const cacheListener = await lend(lab.server, 8081)
  cacheListener.on('connection', (socket: Socket) => pass(socket, served.base))
  undo.defer(async () => {
    lent.close()
    cacheListener.close()
  })
  const ask = await server.operator()
  const disks = undo.use(new AsyncDisposableStack())

  /** Arms a machine, starts its live system, and resolves when that is running. */
  async function start(index: number, { meminfo = '/proc/meminfo' } = {}) {
    const host = lab.machines[index]
    if (host === undefined) throw new Error('no such machine')
    const mac = MAC(index)
    const disk = disks.use(await createLoop({ sizeBytes: 64 << 20 }))
    await server.request(`/pxe/${mac}`)
    const armed = { bty_image_ref: entry.ref, boot_mode: 'flasher-flash-once' }
    const answer = await ask(
      `/machines/${mac}`,
      asJson({ ...armed, target_disk_serial: `path:${PLACE}` }, 'PUT'),
    )
    if (answer.status !== 200) throw new Error(await answer.text())
    const order = {
      server: `http://${address}:8080`,
      mac,
      disk: disk.device,
      listen: [host.address],
      meminfo,
    }
    const child = host.spawn([process.execPath, at('rack-machine.ts'), JSON.stringify(order)])
    let said = ''
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    const ended = once(child, 'exit').then((): RackEnd | null =>
      said === '' ? null : JSON.parse(said),
    )
    return { mac, disk, ended, address: host.address }
  }

  const held = undo.move()
  return {
    lab,
    server,
    start,
    writeMeminfo: async (kib: number) => {
      const path = join(folder.path, 'meminfo')
      await writeFile(path, `MemAvailable:    ${kib} kB\n`)
      return path
    },
    runs: async () => await readJson(ask('/runs.json')),
    /** Pulls the cable of a machine. */
    cut: (index: number) => void lab.machines[index]?.cut(),
    /**
     * Slows a machine down until it has handed so much on, however long others take to begin. A piece still
     * comes within the seconds after which those behind it, and its own flash, ask elsewhere.
     */
    async holdUntilHanded(index: number, bytes: number) {
      const host = lab.machines[index]
      if (host === undefined) throw new Error('no such machine')
      const before = host.sentBytes()
      host.receiveAt(SLOW_MBIT)
      for (let tries = 0; host.sentBytes() - before <= bytes; tries += 1) {
        if (tries > 1200) throw new Error('it hands nothing on')
        await sleep(100)
      }
      host.receiveAt(mbit)
    },
    sentBytes: () => lab.server.sentBytes(),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** A listener in a namespace whose connections come to this process. */
async function lend(host: LabHost, port: number): Promise<Server> {
  const child = host.spawn(
    [process.execPath, at('lent-listener.ts'), host.address, String(port)],
    true,
  )
  const [, server] = await once(child, 'message')
  if (!(server instanceof Server)) throw new Error('a listener was expected')
  return server
}

function pass(outer: Socket, base: string): void {
  const { hostname, port } = new URL(base)
  const inner = connect(Number(port), hostname)
  for (const [one, other] of [
    [outer, inner],
    [inner, outer],
  ] as const) {
    one.on('error', () => other.destroy())
    one.on('close', () => other.destroy())
    one.pipe(other)
  }
}
