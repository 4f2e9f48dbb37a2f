/** An MBR counts in sectors of a size that it does not say: images for other disks are refused, or it is said. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createLoop } from '#test/support/disk/loop.ts'
import { assertSame, makeStale, readDisk } from '#test/support/disk/writer.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('sectors of an MBR')
const run = $({ quiet: true })
const MIB = 2 ** 20

interface Case {
  /** Sectors, as sfdisk takes them. */
  readonly table: string
  /** Where an ext4 lies; absent: nowhere. */
  readonly at?: number
  readonly code: 0 | 1
  readonly words: RegExp
}

const CASES: Readonly<Record<string, Case>> = {
  'a partition that would end beyond the disk': {
    table: 'start=2048,size=40960,type=83',
    at: MIB,
    code: 1,
    words: /with its 4096-byte sectors, partition 1 would end beyond the disk/,
  },
  'a file system at the place of 512-byte sectors': {
    table: 'start=2048,size=4096,type=83',
    at: MIB,
    code: 1,
    words:
      /made for disks with 512-byte sectors: the file system of partition 1 begins at byte 1048576/,
  },
  'a file system at the place of 4096-byte sectors': {
    table: 'start=2048,size=4096,type=83',
    at: 8 * MIB,
    code: 0,
    words: /^Image(?![^]*MBR)/,
  },
  'no file system anywhere': {
    table: 'start=2048,size=4096,type=83',
    code: 0,
    words: /^Note +its MBR does not say for which sectors it is made/m,
  },
}

for (const [what, { table, at, code, words }] of Object.entries(CASES)) {
  test(`${what}: ${code === 0 ? 'goes ahead' : 'is refused before the first byte'}`, async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-mbr-'))
    const path = join(folder.path, 'disk.img')
    await writeFile(path, '')
    await run`truncate -s ${32 * MIB} ${path}`
    await run({ input: `label: dos\n${table}\n` })`sfdisk --quiet ${path}`
    if (at !== undefined) await run`mkfs.ext4 -q -F -E offset=${at} ${path} 4M`
    const stored = join(folder.path, 'disk.img.zst')
    await run`zstd -q ${path} -o ${stored}`
    for (const image of [path, stored]) {
      await using disk = await createLoop({ megabytes: 64, sectorBytes: 4096 })
      const stale = await makeStale(disk.device, 4096)
      const argv = ['--image', image, '--target', disk.device]
      const dry = await runFlasher(['flash', ...argv, '--dry-run'])
      const { code: ended, stdout, stderr } = await runFlasher(['flash', ...argv, '--yes'])
      assert.equal([dry.code, ended], [code, code], stderr)
      assert.match(stdout + stderr, words)
      assert.match(dry.stdout + dry.stderr, words)
      if (code === 1) assertSame(await readDisk(disk.device), stale)
      await using usual = await createLoop({ megabytes: 64 })
      const fine = await runFlasher(['flash', ...argv.slice(0, -1), usual.device, '--dry-run'])
      assert.is(fine.code, 0)
      assert.not.match(fine.stdout, /sectors/)
    }
  })
}

test.run()
