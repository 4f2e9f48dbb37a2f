/** However large an image is, however well it is compressed, to however many disks: it takes little memory. */
import { spawn } from 'node:child_process'
import { mkdtempDisposableSync, readFileSync } from 'node:fs'
import { open, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { FLASHER } from '#test/support/terminal/flasher.ts'

const test = suite('memory')
const run = $({ quiet: true })
const PROGRAM = fileURLToPath(new URL('../../runtime/bin/flasher.ts', import.meta.url))
const MIB = 1 << 20
const IMAGE_BYTES = 1024 * MIB
/** What the program itself may take at most; a few copies of what is in flight, not of the image. */
const MAX_BYTES = 250 * MIB

/** Some data, far apart. */
async function makeSparse(path: string) {
  await using file = await open(path, 'wx')
  await file.truncate(IMAGE_BYTES)
  for (let n = 0; n < 12; n += 1) {
    await file.write(makeNoise(6 * MIB, n), 0, 6 * MIB, n * 84 * MIB + n * 4096)
  }
}

/** Runs the program to its end; the most memory that it took. */
async function measure(argv: readonly string[], program = PROGRAM): Promise<number> {
  const child = spawn(process.execPath, [program, ...argv], { stdio: ['ignore', 'ignore', 'pipe'] })
  let words = ''
  child.stderr.on('data', (bytes: Buffer) => {
    words += bytes.toString()
  })
  let most = 0
  const code = new Promise((resolve) => {
    child.once('close', resolve)
  })
  while (child.exitCode === null && child.signalCode === null) {
    most = Math.max(most, peakOf(child.pid))
    await sleep(20)
  }
  assert.is(await code, 0, words)
  return most
}

/** The peak since its start, which the kernel keeps; 0 when it is gone. */
function peakOf(pid: number | undefined): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    return 1024 * Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0)
  } catch {
    return 0
  }
}

test('1 GiB, most of it zeros, as zstd and as qcow2', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-memory-'))
  const raw = join(folder.path, 'disk.img')
  await makeSparse(raw)
  const zst = join(folder.path, 'disk.img.zst')
  const qcow2 = join(folder.path, 'disk.qcow2')
  await run`zstd -q -1 -T2 ${raw} -o ${zst}`
  await run`qemu-img convert -f raw -O qcow2 -c -o compression_type=zstd ${raw} ${qcow2}`
  for (const path of [zst, qcow2]) {
    await using loop = await createLoop({ sizeBytes: IMAGE_BYTES })
    const most = await measure(['flash', '--image', path, '--target', loop.device, '--yes'])
    assert.ok(most > 30 * MIB, 'the peak was not seen')
    assert.ok(most < MAX_BYTES, `${path}: ${Math.round(most / MIB)} MiB`)
    await run`cmp ${raw} ${loop.backing}`
  }
})
test('eight disks at once take little more than one', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-memory-'))
  const [raw, zst] = [join(folder.path, 'disk.img'), join(folder.path, 'disk.img.zst')]
  // More than all buffers hold.
  await writeFile(raw, makeNoise(160 * MIB, 3))
  await run`zstd -q -1 -T2 ${raw} -o ${zst}`
  await using disks = new AsyncDisposableStack()
  const targets: string[] = []
  for (let disk = 0; disk < 8; disk += 1) {
    targets.push('--target', disks.use(await createLoop({ megabytes: 160 })).device)
  }
  // As it is installed: reading TypeScript takes some 40 MiB of its own.
  const most = await measure(['flash', '--image', zst, ...targets, '--yes'], FLASHER)
  assert.ok(most > 30 * MIB, 'the peak was not seen')
  assert.ok(most < MAX_BYTES, `${Math.round(most / MIB)} MiB`)
})
test.run()
