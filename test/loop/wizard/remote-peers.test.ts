/** Machines of a rack hand an image on to each other: every byte is right, whoever leaves, lies, or has no memory to spare. */
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { open, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'
import { readDisk } from '#test/support/disk/writer.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { NGINX } from '#test/support/http/nginx.ts'
import { openRack, type RackEnd } from '#test/support/net/rack-site.ts'
import {
  driveMachine,
  entryOf,
  MAC,
  openServer,
  runOf,
} from '#test/support/terminal/remote-fixture.ts'

const test = suite('machines that hand an image on')
const run = existsSync(NGINX) && process.getuid?.() === 0 ? test : test.skip
const MIB = 1 << 20
const IMAGE = Buffer.concat([makeDiskImage(8 * MIB), makeNoise(24 * MIB, 5)])
const PACKED = await packBuffer(IMAGE)
const NEIGHBOUR = /^http:\/\/10\.77\.0\.\d+:8082$/

type Rack = Awaited<ReturnType<typeof openRack>>
type Machine = Awaited<ReturnType<Rack['start']>>

/** What a machine's run says of where its bytes came from. */
async function sourcesOf(rack: Rack, { mac }: Machine) {
  const runs: readonly {
    readonly mac: string
    readonly result: string
    readonly sources: readonly { name: string; bytes: number; trouble: string | null }[] | null
  }[] = await rack.runs()
  const found = runs.find((each) => each.mac === mac)
  return { result: found?.result, sources: found?.sources ?? [] }
}

const fromNeighbours = ({ sources }: Awaited<ReturnType<typeof sourcesOf>>) =>
  sources.filter(({ name }) => NEIGHBOUR.test(name)).reduce((sum, { bytes }) => sum + bytes, 0)

/** The folder in which a machine keeps the first pieces that it got. */
async function waitForWindow({ address }: Machine): Promise<string> {
  for (const end = performance.now() + 30_000; performance.now() < end;) {
    for (const name of await readdir('/dev/shm')) {
      const folder = join('/dev/shm', name)
      if (!name.startsWith('flasher-peers-') || !(await isOf(folder, address))) continue
      if ((await listPieces(folder)).length > 1) return folder
    }
    await sleep(20)
  }
  throw new Error('it keeps nothing')
}

const isOf = async (folder: string, address: string) => {
  const conf = await readFile(join(folder, 'nginx.conf'), 'utf8').catch(() => '')
  return conf.includes(`listen ${address}:`)
}

const listPieces = async (folder: string): Promise<readonly string[]> =>
  (await readdir(join(folder, 'window')).catch(() => []))
    .filter((name) => /^[0-9a-f]{32}$/.test(name))
    .map((name) => join(folder, 'window', name))

/** Changes the end of each piece as soon as it is kept. Returns how many. */
async function spoil(folder: string): Promise<number> {
  const spoilt = new Set<string>()
  while (existsSync(folder)) {
    for (const path of await listPieces(folder)) {
      if (spoilt.has(path)) continue
      spoilt.add(path)
      try {
        await using file = await open(path, 'r+')
        const { size } = await file.stat()
        await file.write(Buffer.from('another byte'), 0, 12, Math.max(0, size - 2000))
      } catch {
        // It was dropped meanwhile.
      }
    }
    await sleep(5)
  }
  return spoilt.size
}

async function assertFlashed(machine: Machine, end: RackEnd | null) {
  assert.is(end?.kind, 'exit', JSON.stringify(end))
  assert.ok((await readDisk(machine.disk.device, 0, IMAGE.length)).equals(IMAGE), machine.mac)
}

run(
  'three machines: the image leaves the cache about once, and each run says whose bytes it got',
  async () => {
    await using rack = await openRack({ machines: 3, mbit: 100, packed: PACKED })
    const before = rack.sentBytes()
    const machines: Machine[] = []
    for (const index of [0, 1, 2]) {
      machines.push(await rack.start(index))
      await sleep(300)
    }
    const ends = await Promise.all(machines.map(({ ended }) => ended))
    for (const [at, machine] of machines.entries()) await assertFlashed(machine, ends[at] ?? null)
    const images = (rack.sentBytes() - before) / PACKED.file.length
    assert.ok(images < 1.6, `${images} images left the server`)
    const told = await Promise.all(machines.map((machine) => sourcesOf(rack, machine)))
    assert.equal(
      told.map(({ result }) => result),
      ['done', 'done', 'done'],
    )
    const handed = told.map(fromNeighbours).toSorted((a, b) => a - b)
    assert.is(handed[0], 0)
    for (const bytes of handed.slice(1)) assert.ok(bytes > PACKED.file.length / 2, `${handed}`)
  },
)

run('a machine that is switched off in the middle costs the one behind it no byte', async () => {
  await using rack = await openRack({ machines: 3, mbit: 60, packed: PACKED })
  const machines: Machine[] = []
  for (const index of [0, 1, 2]) {
    machines.push(await rack.start(index))
    await sleep(300)
  }
  const [first, middle, last] = machines
  if (first === undefined || middle === undefined || last === undefined) throw new Error('three')
  await waitForWindow(last)
  rack.cut(1)
  const ends = await Promise.all([first.ended, last.ended])
  await assertFlashed(first, ends[0])
  await assertFlashed(last, ends[1])
  const { result, sources } = await sourcesOf(rack, last)
  assert.is(result, 'done')
  assert.ok(sources.length > 0)
})

run(
  'a machine that hands on another byte is found out, and nothing of it is on the disk',
  async () => {
    await using rack = await openRack({ machines: 2, mbit: 60, packed: PACKED })
    const liar = await rack.start(0)
    const folder = await waitForWindow(liar)
    const spoiling = spoil(folder)
    const held = rack.holdUntilHanded(0, 3 * MIB)
    const honest = await rack.start(1)
    await held
    const [, end] = await Promise.all([liar.ended, honest.ended])
    const spoilt = await spoiling
    await assertFlashed(honest, end)
    const { result, sources } = await sourcesOf(rack, honest)
    assert.is(result, 'done')
    assert.ok(spoilt > 0)
    const troubles = sources.map(({ trouble }) => trouble).filter(Boolean)
    assert.ok(troubles.length > 0, JSON.stringify(sources))
  },
)

run(
  'with little memory a machine reads from its neighbour and keeps nothing; without any it flashes as before',
  async () => {
    await using rack = await openRack({ machines: 2, mbit: 60, packed: PACKED })
    const before = rack.sentBytes()
    const first = await rack.start(0)
    await waitForWindow(first)
    const held = rack.holdUntilHanded(0, 3 * MIB)
    const leaf = await rack.start(1, { meminfo: await rack.writeMeminfo(120_000) })
    await held
    const ends = await Promise.all([first.ended, leaf.ended])
    await assertFlashed(first, ends[0])
    await assertFlashed(leaf, ends[1])
    const handed = fromNeighbours(await sourcesOf(rack, leaf))
    assert.ok(handed > MIB, `${handed} handed on`)
    // What came from the neighbour was not sent by the cache as well; packets that are lost are sent again.
    const sent = rack.sentBytes() - before
    assert.ok(sent < (2 * PACKED.file.length - handed) * 1.3, `${sent} sent, ${handed} handed on`)
  },
)

run('where it is off, nobody asks for neighbours, and no nginx is started', async () => {
  await using rack = await openRack({ machines: 1, mbit: 200, packed: PACKED, enabled: false })
  const machine = await rack.start(0)
  const end = await machine.ended
  await assertFlashed(machine, end)
  assert.equal((await sourcesOf(rack, machine)).sources, [])
})

const runAsRoot = process.getuid?.() === 0 ? test : test.skip

const SMALL_IMAGE = makeDiskImage(6 * 2 ** 20)
const SHA = createHash('sha256').update(SMALL_IMAGE).digest('hex')
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
    response.writeHead(200, { 'content-length': SMALL_IMAGE.length })
    response.end(SMALL_IMAGE)
  })

/** Two servers that know the machine, and have it flashed. */
async function openArmed(images: string) {
  const entry = entryOf(`${images}/debian.img`, { sha256: SHA, sizeBytes: SMALL_IMAGE.length })
  const server = await openServer([entry])
  await server.arm(ARMED)
  return server
}

runAsRoot(
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
    assert.ok((await readDisk(loop.device, 0, SMALL_IMAGE.length)).equals(SMALL_IMAGE))
    const known = await runOf(two)
    assert.equal([known.result, known.verified], ['done', true])
    assert.is.not((await two.machines.find(MAC))?.last_flashed_at, null)
    // What the first one heard is the same run, without an end.
    const before = await runOf(one)
    assert.equal([before.id, before.result], [known.id, null])
  },
)

runAsRoot('the first one is gone from the start', async () => {
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
