/** File systems as each option of mkfs makes them: their maps are believed, so that only used blocks are read. */
import { mkdtempDisposable, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { LIVED_KINDS, MKFS_OPTIONS, type LivedKind } from '#test/support/capture/lived/life.ts'
import { attach, makeVolume, run } from '#test/support/capture/lived/volume.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('captured file systems of every kind')
const MIB = 1 << 20

const MEGABYTES: Readonly<Record<LivedKind, number>> = {
  btrfs: 256,
  ext4: 96,
  xfs: 304,
  vfat: 96,
  exfat: 96,
  ntfs: 96,
}

/** Why partitions are read whole, as before there was a second look. */
const WHOLE: Readonly<Record<string, string>> = {
  '-F 12 -s 64': 'FAT12 has no reliable map of used blocks',
}

for (const kind of LIVED_KINDS) {
  test(`${kind}: with all options of its mkfs`, async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-mkfs-'))
    const path = join(folder.path, 'disk')
    const options = MKFS_OPTIONS[kind]
    const bytes = MEGABYTES[kind] * MIB
    await makeTable(path, options.length, bytes)
    for (const [index, words] of options.entries()) {
      await using volume = await attach(path, MIB + index * bytes, bytes)
      await makeVolume(kind, words, volume.node)
    }
    await using source = await createLoop({ backing: path })
    const argv = ['capture', '--source', source.device, '--json', '--dry-run', '--output']
    const { stdout, stderr } = await runFlasher([...argv, join(folder.path, 'a.img.zst')])
    const parts: readonly { readonly whole: string | null }[] = JSON.parse(stdout || '{}').parts
    assert.equal(
      parts.map(({ whole }, index) => [options[index]?.join(' '), whole]),
      options.map((words) => [words.join(' '), WHOLE[words.join(' ')] ?? null]),
      stderr,
    )
  })
}

async function makeTable(path: string, count: number, bytes: number) {
  await using file = await open(path, 'wx')
  await file.truncate(count * bytes + 2 * MIB)
  const lines = Array.from(
    { length: count },
    (_, index) => `start=${(MIB + index * bytes) / 512}, size=${bytes / 512}`,
  )
  await run({ input: ['label: gpt', ...lines, ''].join('\n') })`sfdisk --quiet ${path}`
}

test.run()
