/** Whether this machine was started with Secure Boot, as UEFI says. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readSecureBoot } from '#fleet/boot/secure-boot.ts'

const test = suite('Secure Boot of this machine')

test('on, off, and nobody knows', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-efivars-'))
  const path = join(folder.path, 'SecureBoot')
  assert.is(await readSecureBoot(path), null)
  for (const [bytes, expected] of [
    [[6, 0, 0, 0, 1], true],
    [[6, 0, 0, 0, 0], false],
    [[6, 0, 0, 0], null],
  ] as const) {
    await writeFile(path, Buffer.from(bytes))
    assert.is(await readSecureBoot(path), expected)
  }
})

test.run()
