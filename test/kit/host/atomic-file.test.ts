/** Files that root writes into the folder of another user, whose server must be able to read them. */
import { chown, mkdtempDisposable, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { replaceFile } from '#kit/host/folders.ts'

const test = suite('replacing files')
const [USER, GROUP] = [12_345, 12_346]

if (process.getuid?.() === 0) {
  test('what root replaces or makes belongs to whom the folder belongs', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-owner-'))
    await chown(folder.path, USER, GROUP)
    const [old, fresh] = [join(folder.path, 'old'), join(folder.path, 'fresh')]
    await writeFile(old, 'before')
    for (const path of [old, fresh]) {
      await replaceFile(path, 'after')
      const { uid, gid, mode } = await stat(path)
      assert.equal([uid, gid, mode & 0o777], [USER, GROUP, 0o600])
    }
  })
}

test.run()
