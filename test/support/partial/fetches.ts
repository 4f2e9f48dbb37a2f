/** An image that the real cache downloads, and a release that the real server fetches, as transfers. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { blobUrl, keyOf } from '#engine/catalog/rules/cache-entry.ts'
import { captureClient } from '../capture/uploads.ts'
import { makeBytes } from '../collect.ts'
import { sendFile, startHostileServer, type HostileServer } from '../http/hostile-server.ts'
import { REPOSITORY, startReleaseSite } from '../http/release-site.ts'
import { partName, sha256 } from '../server/boot-folder.ts'
import { login, passwordIn } from '../server/flasher-web.ts'
import { findPort } from '../http/ports.ts'
import { startCache, until, type CacheProcess } from '../server/image-cache.ts'
import { startFlasher, type Started } from '../terminal/flasher.ts'
import { untilLong, type Transfer } from './transfer.ts'

/** Serves files by the last segment of their address; of one of them only so many bytes. */
async function startSource(files: ReadonlyMap<string, Buffer>, held: string) {
  const state = { limit: Infinity }
  const server = await startHostileServer((request, response) => {
    const url = request.url ?? ''
    const name = url.slice(url.lastIndexOf('/') + 1)
    const file = files.get(name)
    if (file === undefined) return response.writeHead(404).end()
    const isBody = request.method === 'GET' && request.headers.range !== 'bytes=0-0'
    const isHeld = isBody && name === held && state.limit < file.length
    sendFile(file, request, response, isHeld ? { stallAfter: state.limit } : {})
  })
  return Object.assign(server, {
    limit(bytes: number) {
      state.limit = bytes
    },
  })
}

/** Where the last request for a file's bytes began. */
function lastStart({ seen }: HostileServer, name: string, length: number): number {
  const bodies = seen.filter(
    ({ method, url, headers }) =>
      method === 'GET' && url.endsWith(name) && headers.range !== 'bytes=0-0',
  )
  const last = bodies.at(-1)
  if (last === undefined) return length
  return Number(/^bytes=(\d+)-/.exec(last.headers.range ?? '')?.[1] ?? 0)
}

export async function createDownload(state: string): Promise<Transfer> {
  const name = 'x.img'
  const bytes = makeBytes(2_000_000)
  const source = await startSource(new Map([[name, bytes]]), name)
  const src = `${source.origin}/${name}`
  const key = keyOf({ ...EMPTY, src, resolved_src: null, name })
  const data = join(state, 'cache/.cache')
  const file = join(data, `parts/${key}.part`)
  let program: CacheProcess | null = null
  return {
    bytes,
    file: () => file,
    record: () => join(data, `records/part+${key}.json`),
    async start(checkout) {
      program = await startCache(state, {}, checkout)
    },
    async bring(to) {
      source.limit(to)
      const operator = captureClient(program?.base ?? '', program?.token ?? '')
      await operator.post('/catalog/entries', { name, src })
      await operator.ask('POST', `/catalog/entries/${name}/download`)
      await untilLong(file, to)
    },
    async kill() {
      await program?.kill('SIGKILL')
      source.limit(Infinity)
    },
    async finish() {
      const address = blobUrl(program?.base ?? '', src)
      await until(async () => {
        const answer = await fetch(address)
        await answer.body?.cancel()
        return answer.headers.has('x-withcache-sha256')
      })
      const offered = Buffer.from(await (await fetch(address)).arrayBuffer())
      return { from: lastStart(source, name, bytes.length), offered }
    },
    async [Symbol.asyncDispose]() {
      await program?.[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
    },
  }
}

const EMPTY = {
  format: null,
  arch: null,
  sha256: null,
  size_bytes: null,
  description: null,
  netboot_ref: null,
}

export async function createFetch(state: string): Promise<Transfer> {
  await using site = await startReleaseSite({ bytes: 2_000_000 })
  const name = partName(site.version, 'initrd')
  const bytes = site.files.get(name) ?? Buffer.alloc(0)
  const source = await startSource(site.files, name)
  const file = join(state, 'boot/.fetching', sha256(bytes))
  let [url, password, cookie] = ['', '', '']
  let program: Started | null = null

  const fetchTag = async () =>
    await fetch(`${url}/boot/releases`, {
      method: 'POST',
      headers: { cookie, 'content-type': 'application/json' },
      body: JSON.stringify({ tag: site.tag }),
    })

  return {
    bytes,
    file: () => file,
    record: () => null,
    async start(checkout = new URL('../../..', import.meta.url).pathname) {
      const port = String(await findPort())
      program = startFlasher([], {
        program: join(checkout, 'runtime/bin/flasher-web.mjs'),
        env: {
          FLASHER_PATHS_STATE_DIR: state,
          FLASHER_SERVER_HOST: '127.0.0.1',
          FLASHER_SERVER_PORT: port,
          FLASHER_RELEASES_BASE_URL: source.origin,
          FLASHER_BOOT_RELEASE_REPO: REPOSITORY,
        },
      })
      let said = ''
      program.child.stdout?.on('data', (text: string) => {
        said += text
      })
      await program.saw('Pages:')
      url = `http://127.0.0.1:${port}`
      password ||= passwordIn(said)
      cookie = (await login(url, password)).cookie
    },
    async bring(to) {
      source.limit(to)
      await fetchTag()
      await untilLong(file, to)
    },
    async kill() {
      program?.child.kill('SIGKILL')
      await program?.ended
      source.limit(Infinity)
    },
    async finish() {
      await fetchTag()
      const path = join(state, 'boot', name)
      await until(async () => (await readFile(path).catch(() => null)) !== null)
      return { from: lastStart(source, name, bytes.length), offered: await readFile(path) }
    },
    async [Symbol.asyncDispose]() {
      program?.child.kill('SIGKILL')
      await program?.ended
      await source[Symbol.asyncDispose]()
    },
  }
}
