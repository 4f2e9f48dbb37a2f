/** Server-driven: the plan names the caches near the machine; one that dies in the middle is left, and the run says so. */
import type { IncomingMessage } from 'node:http'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { createOrigins } from '#engine/catalog/origins.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { accessOf } from '#kit/net/s3/rules/s3-access.ts'
import { presign } from '#kit/net/s3/s3-client.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'
import { readDisk } from '#test/support/disk/writer.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { pushImage, startRegistry, type TestRegistry } from '#test/support/http/registry.ts'
import { startBucket } from '#test/support/http/s3-bucket.ts'
import { until } from '#test/support/server/image-cache.ts'
import { driveMachine, entryOf, MAC, openServer } from '#test/support/terminal/remote-fixture.ts'

const test = suite('server-driven: several sources')
const run = process.getuid?.() === 0 ? test : test.skip
const MIB = 1 << 20
const IMAGE = Buffer.concat([makeDiskImage(4 * MIB), makeNoise(28 * MIB, 4)])
const PACKED = await packBuffer(IMAGE)
const PLACE = 'pci-0000:00:05.0'
const TARGET = { bty_image_ref: 'a'.repeat(64), target_disk_serial: `path:${PLACE}` }
const PATH = '/b/dG9rZW4/debian.img.zst'

/** `frames`: how many it gives before it hangs up. */
function serve(frames = Number.POSITIVE_INFINITY) {
  let given = 0
  return startHostileServer((request, response) => {
    const [, from, last] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? []
    if (Number(last) - Number(from) > 2 * MIB) given += 1
    if (request.url?.replace(/\?sha256=.*/, '') !== PATH) response.writeHead(404).end()
    else if (given > frames) request.socket.destroy()
    else sendFile(PACKED.file, request, response)
  })
}

const Runs = z.object({
  runs: z.array(
    z.object({
      id: z.string(),
      result: z.string().nullable(),
      sources: z
        .array(z.object({ name: z.string(), bytes: z.number(), trouble: z.string().nullable() }))
        .nullable(),
    }),
  ),
})

async function findRun(server: Awaited<ReturnType<typeof openServer>>) {
  const { runs } = Runs.parse(await (await server.ask(`/machines/${MAC}/runs`)).json())
  const [only] = runs
  if (only === undefined) throw new Error('no run')
  return only
}

const entryAt = (origin: string) =>
  entryOf(`${origin}${PATH}`, {
    format: 'img.zst',
    sha256: PACKED.sha256,
    indexSha256: PACKED.indexSha256,
  })

run('the next cache goes on at the frame, and the run names both', async () => {
  await using dying = await serve(3)
  await using main = await serve()
  const caches = [`${dying.origin} 127.0.0.0/8`]
  await using server = await openServer([entryAt(main.origin)], {
    cacheUrl: main.origin,
    env: { FLASHER_SOURCES_CACHES: caches.join(',') },
  })
  await using loop = await createLoop({ megabytes: 48 })
  await server.arm({ boot_mode: 'flasher-flash-always', ...TARGET })
  const box = await driveMachine({ server: server.url, places: { [PLACE]: loop.device } })
  assert.equal(box.outcome, { kind: 'exit', code: 0 })
  assert.ok((await readDisk(loop.device, 0, IMAGE.length)).equals(IMAGE))
  const { result, sources } = await findRun(server)
  assert.is(result, 'done')
  assert.equal(
    sources?.map(({ name }) => name),
    [dying.origin, main.origin],
  )
  assert.match(sources?.[0]?.trouble ?? '', 'connection closed by the server')
  assert.ok(sources?.every(({ bytes }) => bytes > 2 * MIB))
  assert.is(sources?.[1]?.trouble, null)
})

run('what fails says in its log what came from where', async () => {
  await using dying = await serve(3)
  await using dead = await serve(2)
  const options = { cacheUrl: dead.origin, env: { FLASHER_SOURCES_CACHES: dying.origin } }
  await using server = await openServer([entryAt(dead.origin)], options)
  await using loop = await createLoop({ megabytes: 48 })
  await server.arm({ boot_mode: 'flasher-flash-always', ...TARGET })
  const box = await driveMachine({ server: server.url, places: { [PLACE]: loop.device } })
  assert.is(box.outcome.kind, 'interactive')
  const { id, result } = await findRun(server)
  assert.is(result, 'failed')
  const log = await (await server.ask(`/machines/${MAC}/runs/${id}/log`)).text()
  assert.match(log, `stopped using ${dying.origin}: connection closed by the server`)
  assert.match(log, /MB came from http:/)
})

run('a plan for a client that knows one address alone stays as it was', async () => {
  await using main = await serve()
  const options = { cacheUrl: main.origin, env: { FLASHER_SOURCES_CACHES: 'http://127.0.0.1:9' } }
  await using server = await openServer([entryAt(main.origin)], options)
  await server.arm({ boot_mode: 'flasher-flash-always', ...TARGET })
  const plans = async (query: string) => {
    const answer = await fetch(`${server.url}/pxe/${MAC}/plan${query}`)
    return z
      .object({ image: z.string(), sources: z.unknown().optional() })
      .parse(await answer.json())
  }
  const old = await plans('?features=first-boot,capture,disk-id')
  assert.equal([old.image, old.sources], [`${main.origin}${PATH}`, undefined])
  const now = await plans('?features=disk-id,sources')
  assert.equal(
    [now.image, now.sources],
    [old.image, [{ url: `http://127.0.0.1:9${PATH}?sha256=${PACKED.sha256}` }]],
  )
})

const OriginRuns = z.object({
  runs: z.array(
    z.object({
      result: z.string().nullable(),
      sources: z
        .array(z.object({ name: z.string(), bytes: z.number(), trouble: z.string().nullable() }))
        .nullable(),
    }),
  ),
})

/** Says whether a request is for the frame of that number, or a later one. */
function countFrames(least: number) {
  let frames = 0
  return ({ headers }: IncomingMessage) => {
    const [, from, last] = /bytes=(\d+)-(\d+)/.exec(headers.range ?? '') ?? []
    const isFrame = Number(last) - Number(from) > 2 * MIB
    if (isFrame) frames += 1
    return isFrame && frames >= least
  }
}

/** The cache service, of which only requests for frames are counted. */
async function serveCache() {
  const isFrame = countFrames(1)
  let frames = 0
  const server = await startHostileServer((request, response) => {
    if (isFrame(request)) frames += 1
    sendFile(PACKED.file, request, response)
  })
  return {
    origin: server.origin,
    frames: () => frames,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** Flashes from an origin, and returns what the server knows of it afterwards. */
async function flashFrom(
  src: string,
  {
    cache,
    env = {},
    findOrigin,
  }: {
    readonly cache: string
    readonly env?: Readonly<Record<string, string>>
    /** Absent: what is found at the origin. */
    readonly findOrigin?: () => string | null
  },
) {
  const said: string[] = []
  const note = (line: string) => void said.push(line)
  const image: CatalogEntry = {
    ...entryOf(src, { format: 'img.zst', sizeBytes: PACKED.file.length }),
    url: `${cache}/b/dG9rZW4/debian.img.zst`,
    sha256: PACKED.sha256,
    indexSha256: PACKED.indexSha256,
  }
  await using origins = createOrigins({
    images: () => [image],
    isEnabled: () => true,
    s3: async () => accessOf(env),
    lifetime: () => 3600,
    env,
    now: () => new Date(),
    log: { info: note, warn: note },
    tickMs: 20,
    retryMs: 1,
  })
  await until(async () => origins.find(image) !== null)
  await using server = await openServer([image], {
    cacheUrl: cache,
    assembly: { findOrigin: findOrigin ?? origins.find },
  })
  await using loop = await createLoop({ megabytes: 48 })
  await server.arm({ boot_mode: 'flasher-flash-always', ...TARGET })
  const box = await driveMachine({ server: server.url, places: { [PLACE]: loop.device } })
  const isSame = (await readDisk(loop.device, 0, IMAGE.length)).equals(IMAGE)
  const { runs } = OriginRuns.parse(await (await server.ask(`/machines/${MAC}/runs`)).json())
  const events = await (await server.ask('/events')).text()
  const pages = await (await server.ask(`/machines/${MAC}`)).text()
  const words = [...said, ...box.said, ...box.marks, JSON.stringify(runs), events, pages].join('\n')
  return { outcome: box.outcome, isSame, run: runs[0], count: runs.length, words }
}

const DONE = { outcome: { kind: 'exit', code: 0 }, isSame: true, result: 'done' } as const
const endOf = ({ outcome, isSame, run: one }: Awaited<ReturnType<typeof flashFrom>>) => ({
  outcome,
  isSame,
  result: one?.result,
})

/** A way to a registry, which is killed when a frame of that number is asked for. */
const openWay = (registry: TestRegistry, frame: number) => {
  const isLate = countFrames(frame)
  return startHostileServer((request, response) => {
    if (isLate(request)) void registry[Symbol.asyncDispose]()
    const headers = { range: request.headers.range ?? '', host: request.headers.host ?? '' }
    fetch(`http://${registry.host}${request.url}`, { method: request.method ?? 'GET', headers })
      .then(async (answer) => {
        response.writeHead(answer.status, Object.fromEntries(answer.headers))
        response.end(Buffer.from(await answer.arrayBuffer()))
      })
      .catch(() => request.socket.destroy())
  })
}

run("Debian's registry is killed in the middle: the cache goes on at the frame", async () => {
  await using registry = await startRegistry()
  await pushImage(registry, 'lab/disk:v1', [{ bytes: PACKED.file, title: 'disk.img.zst' }])
  await using way = await openWay(registry, 4)
  await using cache = await serveCache()
  const host = way.origin.slice('http://'.length)
  const flashed = await flashFrom(`oras://${host}/lab/disk:v1`, { cache: cache.origin })
  assert.equal(endOf(flashed), DONE)
  const sources = flashed.run?.sources ?? []
  assert.equal(
    sources.map(({ name }) => name),
    [way.origin, cache.origin],
  )
  assert.ok(sources.every(({ bytes }) => bytes > 2 * MIB))
  assert.match(sources[0]?.trouble ?? '', /connection closed/)
})

for (const [status, headers] of [
  [401, { 'www-authenticate': 'Bearer realm="http://127.0.0.1:9/token"' }],
  [403, {}],
  [429, { 'retry-after': '50' }],
] as const) {
  run(
    `a registry that begins to answer ${status} is left at the frame, without a wait`,
    async () => {
      let frames = 0
      await using registry = await startHostileServer((request, response) => {
        const [, from, last] = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? '') ?? []
        if (Number(last) - Number(from) > 2 * MIB) frames += 1
        if (frames > 3) response.writeHead(status, headers).end()
        else sendFile(PACKED.file, request, response)
      })
      await using cache = await serveCache()
      const host = registry.origin.slice('http://'.length)
      const before = performance.now()
      const flashed = await flashFrom(`oras://${host}/lab/disk:v1`, { cache: cache.origin })
      assert.equal(endOf(flashed), DONE)
      assert.ok(performance.now() - before < 40_000)
      assert.ok(cache.frames() > 0)
      assert.match(flashed.run?.sources?.[0]?.trouble ?? '', `HTTP ${status}`)
    },
  )
}

run('a signed address that expires in the middle is replaced by a new plan', async () => {
  const isFrame = countFrames(4)
  let expiresBefore = 0
  await using bucket = await startBucket({
    expiresBefore: () => expiresBefore,
    before(request) {
      if (isFrame(request) && expiresBefore === 0) expiresBefore = Date.now() + 30_000
      return false
    },
  })
  const src = 's3://lab/disk +1.img.zst'
  bucket.objects.set('disk +1.img.zst', PACKED.file)
  const sign = (aheadMs: number) =>
    presign(accessOf(bucket.env), src, { at: new Date(Date.now() + aheadMs), seconds: 600 })
  const [early, late] = [await sign(0), await sign(60_000)]
  await using cache = await serveCache()
  const findOrigin = () => (expiresBefore === 0 ? early : late)
  const flashed = await flashFrom(src, { cache: cache.origin, env: bucket.env, findOrigin })
  assert.equal(endOf(flashed), DONE)
  assert.is(flashed.count, 1)
  // All of it came from the bucket, and nothing from the cache.
  assert.equal([cache.frames(), flashed.run?.sources?.[0]?.trouble], [0, null])
  assert.ok(bucket.seen.some(({ url }) => late.endsWith(url)))
  assert.ok(bucket.seen.every(({ method, headers }) => method === 'GET' && !headers.authorization))
  assert.not.match(flashed.words, /X-Amz|lab-key/)
  for (const url of [early, late]) {
    const [, signature = 'none'] = /X-Amz-Signature=(\w+)/.exec(url) ?? []
    assert.not.ok(flashed.words.includes(signature))
  }
})

run('keys that are withdrawn in the middle lead to the cache at the frame', async () => {
  const isLate = countFrames(4)
  let isOver = false
  await using bucket = await startBucket({
    before(request, response) {
      isOver ||= isLate(request)
      if (isOver) response.writeHead(403).end('<Error><Code>InvalidAccessKeyId</Code></Error>')
      return isOver
    },
  })
  bucket.objects.set('disk.img.zst', PACKED.file)
  await using cache = await serveCache()
  const flashed = await flashFrom('s3://lab/disk.img.zst', { cache: cache.origin, env: bucket.env })
  assert.equal(endOf(flashed), DONE)
  assert.ok(cache.frames() > 0)
  assert.match(flashed.run?.sources?.[0]?.trouble ?? '', /HTTP 403/)
})

test.run()
