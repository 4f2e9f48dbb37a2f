import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { ipxeFile, secureBootFiles } from '#appliance/assets.ts'
import { createLiveFiles } from '#fleet/boot/boot-files.ts'

const test = suite('the boot directory of the earlier line')

test('the names that firmware and shim ask for stand for the newest loader of a release', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-live-files-'))
  try {
    const files = await createLiveFiles(dir)
    assert.is(await files.alias?.('shimx64.efi'), null)
    for (const version of ['1.9.0', '1.10.0']) {
      const { shim, grub } = secureBootFiles('x86_64', version)
      for (const name of [shim, grub, ipxeFile('x86_64', version)]) {
        await writeFile(join(dir, name), 'loader')
      }
    }
    const { shim, grub } = secureBootFiles('x86_64', '1.10.0')
    assert.is(await files.alias?.('shimx64.efi'), shim)
    assert.is(await files.alias?.('grubx64.efi'), grub)
    assert.is(await files.alias?.('ipxe.efi'), ipxeFile('x86_64', '1.10.0'))
  } finally {
    await rm(dir, { recursive: true })
  }
})

test.run()
