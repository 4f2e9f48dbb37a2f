/** A file that gets its name at the end never takes it from another one. */
import { mkdtempDisposable, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '#kit/foundation/fault.ts'
import { writeWhole } from '#engine/pack/packer.ts'
import { faultOf } from '#test/support/collect.ts'

const test = suite('files written whole')

test('a file that appears meanwhile stays, and nothing else does', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-whole-'))
  const path = join(folder.path, 'a.img.zst')
  try {
    await writeWhole(path, async (write) => {
      await write(Buffer.from('ours'))
      await writeFile(path, 'theirs')
    })
    assert.unreachable()
  } catch (thrown) {
    assert.ok(thrown instanceof Fault)
    assert.is(thrown.code, 'conflict')
  }
  assert.is(await readFile(path, 'utf8'), 'theirs')
  assert.equal(await readdir(folder.path), ['a.img.zst'])
})

test('a folder that does not exist is named', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-whole-'))
  const missing = join(folder.path, 'nowhere')
  const fault = await faultOf(() => writeWhole(join(missing, 'a.img.zst'), async () => null))
  assert.is(fault.code, 'input-missing')
  assert.is(fault.message, `there is no folder ${missing}`)
})

test('without one the file has its name and all bytes', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-whole-'))
  const path = join(folder.path, 'a.img.zst')
  await writeWhole(path, (write) => write(Buffer.from('ours')))
  assert.is(await readFile(path, 'utf8'), 'ours')
  assert.equal(await readdir(folder.path), ['a.img.zst'])
})
test.run()
