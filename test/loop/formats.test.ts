import { mkdtempDisposableSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { FlashEvent } from '#engine/flash/rules/flash-plan.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { ENCODINGS, type Encoding } from '#test/support/disk/encodings.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { assertSame, expectedDisk, flash, makeStale, readDisk } from '#test/support/disk/writer.ts'

const test = suite('formats onto disks')
const sources = createSources({ env: {} })

/** No multiple of a sector, and more than one slot of the writer. qcow2 counts in sectors. */
const IMAGE = makeDiskImage(5_345_679)
const padded = Buffer.concat([IMAGE, Buffer.alloc(512 - (IMAGE.length % 512))])
const imageOf = ({ format }: Encoding) => (format === 'qcow2' ? padded : IMAGE)

async function flashFrom(location: string, encoding: Encoding, stdin?: Readable) {
  await using loop = await createLoop({ megabytes: 7 })
  const stale = await makeStale(loop.device)
  const ours = stdin === undefined ? sources : createSources({ env: {}, stdin })
  await using source = await ours.open(location)
  const { format } = encoding
  const events = await flash({ source, format, device: loop.device })
  assertSame(await readDisk(loop.device), expectedDisk(stale, imageOf(encoding)))
  checkProgress(events)
  return events.map(({ event }) => event)
}

/** Counts only grow, and never beyond what is said to be all. */
function checkProgress(events: readonly FlashEvent[]) {
  for (const phase of ['write', 'verify'] as const) {
    const steps = events.flatMap((each) =>
      each.event === 'writing' && each.phase === phase ? [each] : [],
    )
    assert.ok(steps.length >= 2)
    for (const [n, { bytes_written, bytes_read, total_bytes }] of steps.entries()) {
      const before = steps[n - 1] ?? { bytes_written: 0, bytes_read: 0 }
      assert.ok(bytes_written >= before.bytes_written && bytes_read >= before.bytes_read)
      assert.ok(total_bytes === null || bytes_written <= total_bytes)
    }
    assert.ok([null, steps.at(-1)?.bytes_written].includes(steps.at(-1)?.total_bytes))
  }
}

for (const encoding of ENCODINGS) {
  const { name, format } = encoding
  test(`${name}: from a file, a server, standard input`, async () => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-formats-'))
    const stored = encoding.encode(imageOf(encoding))
    const path = join(folder.path, `image.${format}`)
    writeFileSync(path, stored)
    const events = await flashFrom(path, encoding)
    assert.is(events[0], 'started')
    assert.equal(events.slice(-3), ['writing', 'synced', 'partprobed'])

    await using server = await startHostileServer((request, response) =>
      sendFile(stored, request, response),
    )
    await flashFrom(`${server.origin}/image.${format}`, encoding)

    // Only there does an image come with no random access and no size.
    if (format === 'qcow2') return
    await flashFrom('-', encoding, Readable.from(chunksOf(stored), { objectMode: false }))
  })
}

function* chunksOf(stored: Buffer) {
  for (let at = 0; at < stored.length; at += 60_001) yield stored.subarray(at, at + 60_001)
}

test('an image on a server that sends no parts and no size', async () => {
  const encoding = ENCODINGS.find(({ name }) => name === 'zstd in frames')
  if (encoding === undefined) throw new Error('no such encoding')
  const stored = encoding.encode(IMAGE)
  await using server = await startHostileServer((request, response) => {
    response.writeHead(200)
    if (request.method === 'HEAD') response.end()
    else Readable.from(chunksOf(stored)).pipe(response)
  })
  await flashFrom(`${server.origin}/image.img.zst`, encoding)
})
test.run()
