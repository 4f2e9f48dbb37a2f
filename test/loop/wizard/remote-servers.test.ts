/** A machine that its server drives, and a server that goes away: the next one hears of the same run, to its end. */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { readDisk } from '#test/support/disk/writer.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import {
  driveMachine,
  entryOf,
  MAC,
  openServer,
  runOf,
} from '#test/support/terminal/remote-fixture.ts'

const test = suite('server-driven, several servers')
const run = process.getuid?.() === 0 ? test : test.skip

const IMAGE = makeDiskImage(6 * 2 ** 20)
const SHA = createHash('sha256').update(IMAGE).digest('hex')
const PLACE = 'pci-0000:00:05.0'
const ARMED = {
  boot_mode: 'flasher-flash-once',
  bty_image_ref: 'a'.repeat(64),
  target_disk_serial: `path:${PLACE}`,
}
/** A port on which nothing listens. */
const GONE = 'http://127.0.0.1:9'

const serveImage = () =>
  startHostileServer((_, response) => {
    response.writeHead(200, { 'content-length': IMAGE.length })
    response.end(IMAGE)
  })

/** Two servers that know the machine, and have it flashed. */
async function openArmed(images: string) {
  const entry = entryOf(`${images}/debian.img`, { sha256: SHA, sizeBytes: IMAGE.length })
  const server = await openServer([entry])
  await server.arm(ARMED)
  return server
}

run(
  'the first one dies while the disk is written: the second has the run and its end, nothing twice',
  async () => {
    await using images = await serveImage()
    await using one = await openArmed(images.origin)
    await using two = await openArmed(images.origin)
    await using loop = await createLoop({ megabytes: 16 })
    let isUp = true
    const box = await driveMachine({
      server: one.url,
      others: [two.url],
      places: { [PLACE]: loop.device },
      onWrite() {
        if (isUp) void one.close()
        isUp = false
      },
    })
    assert.equal(box.outcome, { kind: 'exit', code: 0 }, box.said.join('\n'))
    assert.ok(box.said.includes(`${one.url} does not answer; going on with ${two.url}.`))
    assert.ok((await readDisk(loop.device, 0, IMAGE.length)).equals(IMAGE))
    const known = await runOf(two)
    assert.equal([known.result, known.verified], ['done', true])
    assert.is.not((await two.machines.find(MAC))?.last_flashed_at, null)
    // What the first one heard is the same run, without an end.
    const before = await runOf(one)
    assert.equal([before.id, before.result], [known.id, null])
  },
)

run('the first one is gone from the start', async () => {
  await using images = await serveImage()
  await using two = await openArmed(images.origin)
  await using loop = await createLoop({ megabytes: 16 })
  const box = await driveMachine({
    server: GONE,
    others: ['no address/', two.url],
    places: { [PLACE]: loop.device },
  })
  assert.equal(box.outcome, { kind: 'exit', code: 0 }, box.said.join('\n'))
  assert.equal(
    box.said.filter((line) => line.includes('going on with')),
    [`${GONE} does not answer; going on with ${two.url}.`],
  )
  assert.is((await runOf(two)).result, 'done')
})

const isHint = (line: string) => line.startsWith('Ctrl-C ends the wait')

test('no server is there: in the live system a person reads once what ends the long wait, and it does', async () => {
  const ending = new AbortController()
  const began = performance.now()
  const waiting = driveMachine({
    server: GONE,
    env: { FLASHER_LIVE: '1' },
    parts: { signal: ending.signal, times: { contact: 600_000, retry: 20 } },
  })
  await sleep(500)
  ending.abort()
  const box = await waiting
  assert.ok(performance.now() - began < 30_000)
  assert.is(box.outcome.kind, 'interactive')
  assert.is(box.said.filter(isHint).length, 1, box.said.join('\n'))
  const own = await driveMachine({ server: GONE, parts: { times: { contact: 300, retry: 20 } } })
  assert.is(own.said.filter(isHint).length, 0)
})

test.run()
