/** Images from servers that drop, stall, lie and change: all of the image gets onto the disk, or none. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { createSources, type Sources } from '#engine/image/sources/sources.ts'
import { createRandom, faultOf } from '#test/support/collect.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { ENCODINGS } from '#test/support/disk/encodings.ts'
import {
  sendFile,
  startHostileServer,
  type FileBehaviour,
} from '#test/support/http/hostile-server.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import {
  assertBlank,
  assertSame,
  expectedDisk,
  flash,
  makeStale,
  readDisk,
} from '#test/support/disk/writer.ts'

const test = suite('disks written from bad servers')
const MIB = 1 << 20
const IMAGE = makeDiskImage(6 * MIB)
/** Here stalls are found soon; one that is none costs another request, and nothing else. */
const hasty = createSources({ env: {}, retryMs: 1, stallMs: 1000 })
/** Here no server stalls, however busy this machine is. */
const patient = createSources({ env: {}, retryMs: 1, stallMs: 120_000 })
const KINDS = ['raw', 'zstd without size', 'xz in blocks', 'qcow2, zlib']
const STORED = new Map(
  ENCODINGS.filter(({ name }) => KINDS.includes(name)).map(({ format, encode }) => [
    format,
    encode(IMAGE),
  ]),
)

interface Flashing {
  /** Flashes; `onWriting` is called when the first byte is written. */
  readonly work: (onWriting?: () => void) => Promise<unknown>
  readonly device: string
  readonly stale: Buffer
}

/** Flashes from a server whose n-th answer behaves so. */
async function flashFrom(
  { format, sources }: { readonly format: ImageFormat; readonly sources: Sources },
  behaviourOf: (count: number) => FileBehaviour,
  judge: (flashing: Flashing) => Promise<void>,
) {
  const stored = STORED.get(format) ?? IMAGE
  await using server = await startHostileServer((request, response, count) =>
    sendFile(stored, request, response, behaviourOf(count)),
  )
  await using loop = await createLoop({ megabytes: 8 })
  const { device } = loop
  const stale = await makeStale(device)
  await using source = await sources.open(`${server.origin}/disk.${format}`)
  const work = (onWriting = () => {}) =>
    flash({ source, device, onEvent: ({ event }) => event === 'writing' && onWriting() })
  await judge({ work, device, stale })
}

for (const format of STORED.keys()) {
  test(`${format}: connections that end or stall again and again`, async () => {
    const random = createRandom(20)
    const place = () => 1000 + Math.floor(random() * 400_000)
    const behaviourOf = (count: number) =>
      count % 7 === 5 ? { stallAfter: place() } : { cutAfter: place() }
    await flashFrom({ format, sources: hasty }, behaviourOf, async ({ work, device, stale }) => {
      await work()
      assertSame(await readDisk(device), expectedDisk(stale, IMAGE))
    })
  })

  test(`${format}: a file that becomes another one, a server that goes away`, async () => {
    for (const later of [{ etag: '"two"' }, { cutAfter: 0 }]) {
      let isWriting = false
      const behaviourOf = () => ({ cutAfter: 60_000, ...(isWriting ? later : {}) })
      await flashFrom({ format, sources: patient }, behaviourOf, async ({ work, device }) => {
        const fault = await faultOf(() =>
          work(() => {
            isWriting = true
          }),
        )
        assert.is(fault.code, 'source-broken', fault.message)
        await assertBlank(device)
      })
    }
  })
}
test.run()
