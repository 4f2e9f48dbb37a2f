/** What machines in QEMU need of a storm: the live system, an image, and a network in which they and the host use one address. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { openDebianImage } from '#test/support/disk/debian-image.ts'
import { openTrio } from '#test/support/vm/built-images.ts'
import { HOST_SEEN_BY_GUESTS } from '#test/support/vm/ipxe.ts'

export type GuestMedia = Awaited<ReturnType<typeof openMedia>>

/** A frame of zstd that decoders skip (RFC 8878, 3.1.2), with nothing in it. */
const SKIPPED_FRAME = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0])

/** The two images hold the same disk. */
export async function openMedia() {
  const { kernel, initrd, squashfs, checksums } = await openTrio()
  const debian = await openDebianImage()
  const packed = await readFile(await debian.file('img.zst'))
  const contents = [packed, Buffer.concat([packed, SKIPPED_FRAME])]
  return {
    boot: [kernel, initrd, squashfs, checksums],
    images: contents.map((content, at) => ({
      name: `debian-${at}.img.zst`,
      content,
      sha256: createHash('sha256').update(content).digest('hex'),
    })),
    raw: { path: await debian.file('img'), bytes: debian.virtualBytes },
  }
}

const INSIDE = 'BENCH_NETWORK'

export const isInNetwork = (): boolean => process.env[INSIDE] !== undefined

/**
 * Runs this program once more, and resolves to its exit code: in a network namespace, whose loopback
 * interface has the address at which QEMU's user network shows the host to its guests.
 */
export async function runInNetwork(media: GuestMedia): Promise<number> {
  const [kernel = ''] = media.boot
  const up = `ip link set lo up && ip addr add ${HOST_SEEN_BY_GUESTS}/32 dev lo && exec "$@"`
  const words = ['--pdeathsig', 'TERM', 'unshare', '--net', 'sh', '-c', up, 'sh', ...process.argv]
  const child = spawn('setpriv', words, {
    stdio: 'inherit',
    env: { ...process.env, [INSIDE]: '1', FLASHER_TEST_DIST: dirname(kernel) },
  })
  await once(child, 'close')
  return child.exitCode ?? 1
}
