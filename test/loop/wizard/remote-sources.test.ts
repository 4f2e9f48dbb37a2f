/** Server-driven: the plan names the caches near the machine; one that dies in the middle is left, and the run says so. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'
import { readDisk } from '#test/support/disk/writer.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
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
  assert.match(log, `${dying.origin} was left: connection closed by the server`)
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

test.run()
