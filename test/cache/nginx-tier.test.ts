/** Debian's nginx in front of the cache, as docs/cache.md has it: bytes, headers, what it fetches, restarts, and flashes through it. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { once } from 'node:events'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blobUrl } from '#engine/catalog/rules/cache-entry.ts'
import { createFlasher } from '#engine/flash/flasher.ts'
import { type FlashEvent, WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'
import { readDisk } from '#test/support/disk/writer.ts'
import { readBlocks } from '#test/support/docs.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { NGINX, startNginx } from '#test/support/http/nginx.ts'
import { findPort } from '#test/support/http/ports.ts'
import { bring, makeFolder, serveCache } from '#test/support/server/image-cache.ts'

const MIB = 1 << 20
const test = suite('nginx in front of the cache, as documented')
const run = existsSync(NGINX) ? test : test.skip
const runOnDisk = process.getuid?.() === 0 ? run : test.skip
const IMAGE = Buffer.concat([makeDiskImage(8 * MIB), makeNoise(18 * MIB, 4)])
const PACKED = await packBuffer(IMAGE)
const SHA256 = PACKED.sha256

/** A way to the cache that counts the bytes of its answers, and can be closed. */
async function openMeter(target: string) {
  const { hostname, port } = new URL(target)
  const sockets = new Set<Socket>()
  let bytes = 0
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname)
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
    }
    upstream.on('data', (chunk) => (bytes += chunk.length))
    client.pipe(upstream).pipe(client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('no port')
  async function close() {
    for (const socket of sockets) socket.destroy()
    server.close()
  }
  return {
    authority: `127.0.0.1:${bound.port}`,
    bytes: () => bytes,
    close,
    [Symbol.asyncDispose]: close,
  }
}

/** The documented file with this test's addresses. */
async function openTier() {
  await using undo = new AsyncDisposableStack()
  const folder = undo.use(await makeFolder())
  const source = undo.use(
    await startHostileServer((request, response) => sendFile(PACKED.file, request, response)),
  )
  const served = undo.use(await serveCache(join(folder.path, 'cache')))
  const src = `${source.origin}/a.img.zst`
  await bring(served.cache, { src })
  const meter = undo.use(await openMeter(served.base))
  const port = await findPort()
  const [site = ''] = readBlocks('cache.md', 'nginx')
  const conf = site
    .replaceAll('cache.example.org:8081', meter.authority)
    .replace('listen 8081', `listen 127.0.0.1:${port}`)
    .replace('/var/cache/nginx/flasher', join(folder.path, 'kept'))
  const base = `http://127.0.0.1:${port}`
  const start = (name: string) =>
    startNginx(join(folder.path, name), conf, () => fetch(`${base}/healthz`))
  const held = undo.move()
  return {
    meter,
    start,
    folder: folder.path,
    direct: blobUrl(served.base, src),
    url: `${blobUrl(base, src)}?sha256=${SHA256}`,
    base,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

const read = async (url: string, headers: Readonly<Record<string, string>> = {}) => {
  const answer = await fetch(url, { headers })
  return { answer, bytes: Buffer.from(await answer.arrayBuffer()) }
}

run(
  'bytes, ranges and headers are those of the cache, and each piece is fetched once',
  async () => {
    await using tier = await openTier()
    await using _nginx = await tier.start('nginx')
    const all = await Promise.all([1, 2, 3, 4].map(() => read(tier.url)))
    for (const { answer, bytes } of all) {
      assert.is(answer.status, 200)
      assert.is(answer.headers.get('etag'), `"${SHA256}"`)
      assert.is(answer.headers.get('x-withcache-sha256'), SHA256)
      assert.is(answer.headers.get('accept-ranges'), 'bytes')
      assert.ok(bytes.equals(PACKED.file))
    }
    const { length } = PACKED.file
    assert.ok(tier.meter.bytes() < length * 1.02 + 100_000, `${tier.meter.bytes()} of ${length}`)
    const rows = [
      ['bytes=0-0', 0, 1],
      [`bytes=${4 * MIB - 1}-${4 * MIB}`, 4 * MIB - 1, 4 * MIB + 1],
      ['bytes=1000-9000000', 1000, 9_000_001],
      [`bytes=${length - 7}-`, length - 7, length],
      ['bytes=-7', length - 7, length],
    ] as const
    for (const [range, from, to] of rows) {
      for (const condition of [{}, { 'if-range': `"${SHA256}"` }]) {
        const { answer, bytes } = await read(tier.url, { range, ...condition })
        assert.is(answer.status, 206, range)
        assert.is(answer.headers.get('content-range'), `bytes ${from}-${to - 1}/${length}`)
        assert.ok(bytes.equals(PACKED.file.subarray(from, to)), range)
      }
    }
    const other = await read(tier.url, { range: 'bytes=5-9', 'if-range': '"another"' })
    assert.equal([other.answer.status, other.bytes.length], [200, length])
    const head = await fetch(tier.url, { method: 'HEAD' })
    assert.is(head.headers.get('content-length'), String(length))
    assert.is((await read(tier.url, { range: `bytes=${length}-` })).answer.status, 416)
  },
)

run('another version, another path and changes do not pass', async () => {
  await using tier = await openTier()
  await using _nginx = await tier.start('nginx')
  const other = tier.url.replace(SHA256, createHash('sha256').digest('hex'))
  assert.is((await read(other)).answer.status, 404)
  for (const path of ['/catalog', '/', '/ui/images']) {
    assert.is((await read(`${tier.base}${path}`)).answer.status, 404)
  }
  const changed = await fetch(tier.url, { method: 'DELETE' })
  assert.is(changed.status, 403)
})

run('what nginx has is served after its restart, also while the cache is away', async () => {
  await using tier = await openTier()
  {
    await using _nginx = await tier.start('nginx')
    await read(tier.url)
  }
  await tier.meter.close()
  await using _again = await tier.start('again')
  const { answer, bytes } = await read(tier.url)
  assert.is(answer.status, 200)
  assert.ok(bytes.equals(PACKED.file))
})

const flash = async (
  device: string,
  tier: Awaited<ReturnType<typeof openTier>>,
  image: string,
  onEvent: (event: FlashEvent) => void = () => undefined,
) => {
  const { signal } = new AbortController()
  const [end] = await createFlasher({ env: {}, retryMs: 5 }).flash(
    {
      image,
      sources: [tier.url],
      format: null,
      targets: [{ path: device }],
      options: { ...WHOLE_DISK, sha256: SHA256, indexSha256: PACKED.indexSha256 },
    },
    { signal, onEvent },
  )
  return end
}

runOnDisk(
  'flashes come through it; one whose nginx goes in the middle goes on at the cache',
  async () => {
    await using tier = await openTier()
    await using loop = await createLoop({ megabytes: 32 })
    {
      await using nginx = await tier.start('nginx')
      const end = await flash(loop.device, tier, 'http://127.0.0.1:9/none.img.zst')
      assert.is(end?.kind, 'done', JSON.stringify(end))
      assert.ok((await readDisk(loop.device, 0, IMAGE.length)).equals(IMAGE))
      let isEnded = false
      const again = await flash(loop.device, tier, tier.direct, () => {
        if (!isEnded) void nginx[Symbol.asyncDispose]()
        isEnded = true
      })
      assert.is(again?.kind, 'done', JSON.stringify(again))
    }
    assert.ok((await readDisk(loop.device, 0, IMAGE.length)).equals(IMAGE))
  },
)

test.run()
