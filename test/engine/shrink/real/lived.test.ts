/** Lived file systems of every make become small, and equal: minutes, so in `test:all` only. */
import { mkdir, mkdtempDisposable, readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { shrinkImage } from '#engine/shrink/shrinker.ts'
import {
  BASIC,
  LINUX,
  makeDisk,
  makeLivedExt,
  makeLivedNtfs,
  makeSpreadExt,
} from '#test/support/disk/shrink-images.ts'

const test = suite('shrink: lived file systems')

const FLAGS: readonly (readonly string[])[] = [
  [],
  ['-b', '1024'],
  ['-b', '2048'],
  ['-b', '4096', '-I', '128'],
  ['-I', '512'],
  ['-O', '^has_journal'],
  ['-O', '^has_journal,^extent,^64bit,^flex_bg,^metadata_csum,^dir_index'],
  ['-O', '^extent,^64bit,^metadata_csum'],
  ['-O', '^64bit'],
  ['-O', '^flex_bg'],
  ['-O', '^resize_inode'],
  ['-O', '^metadata_csum,uninit_bg'],
  ['-O', 'metadata_csum_seed'],
  ['-O', 'sparse_super2'],
  ['-O', 'quota'],
  ['-O', 'quota,project'],
  ['-O', 'large_dir'],
  ['-O', 'casefold'],
  ['-O', 'encrypt,verity'],
  ['-O', 'orphan_file,fast_commit'],
  ['-O', 'mmp'],
  ['-E', 'stride=16,stripe_width=64'],
]

interface Made {
  readonly name: string
  readonly megabytes: number
  readonly type: string
  readonly make: (file: string, folder: string) => Promise<unknown>
}

const MADE: readonly Made[] = [
  ...FLAGS.map((flags, index) => ({
    name: `ext ${flags.join(' ')}`,
    megabytes: 300,
    type: LINUX,
    make: (file: string) => makeLivedExt(file, flags, index + 1),
  })),
  ...[[], ['-b', '1024'], ['-O', '^extent,^64bit'], ['-I', '128']].map((flags) => ({
    name: `spread ext ${flags.join(' ')}`,
    megabytes: 1200,
    type: LINUX,
    make: (file: string, folder: string) => makeSpreadExt(file, join(folder, 'at'), flags),
  })),
  ...Array.from({ length: 8 }, (_, index) => ({
    name: `NTFS ${index}`,
    megabytes: 100 + index * 40,
    type: BASIC,
    make: (file: string) => makeLivedNtfs(file, index * 3 + 1),
  })),
]

const signal = new AbortController().signal

for (const { name, megabytes, type, make } of MADE) {
  test(name, async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-lived-test-'))
    const { path } = folder
    await mkdir(join(path, 'tmp'))
    const part = { number: 1, megabytes, type, make: (file: string) => make(file, path) }
    const image = await makeDisk(path, { label: 'gpt', parts: [part] })
    const shrunk = await shrinkImage(
      { env: { ...process.env, TMPDIR: join(path, 'tmp') } },
      {
        image,
        output: join(path, 'small.img.zst'),
        format: null,
        sha256: null,
        level: 1,
        reservePercent: 10,
      },
      { signal, onStage: () => undefined, onProgress: () => undefined },
    )
    assert.ok(shrunk.packed.imageBytes < shrunk.oldBytes / 2)
    assert.equal(await readdir(join(path, 'tmp')), [])
  })
}

test.run()
