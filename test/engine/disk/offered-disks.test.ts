import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openOfferedDisks } from '#engine/disk/disks.ts'

const test = suite('offered disks')

/** Tools that only note that they were run; two lists are made. */
async function listTwice(live: string | undefined): Promise<readonly string[]> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-offered-'))
  const log = join(folder.path, 'log')
  const tool = `#!/bin/sh\necho "\${0##*/} $1" >>${log}\necho '{"blockdevices":[]}'\n`
  for (const name of ['lsblk', 'systemctl', 'udevadm']) {
    await writeFile(join(folder.path, name), tool, { mode: 0o755 })
  }
  const { survey } = openOfferedDisks({ PATH: folder.path, FLASHER_LIVE: live })
  for (let list = 0; list < 2; list += 1) assert.equal(await survey(), [])
  return (await readFile(log, 'utf8')).trim().split('\n')
}

test('in the live system the first list waits for drivers that are still being loaded', async () => {
  const list = 'lsblk --json'
  assert.equal(await listTwice('1'), ['systemctl start', 'udevadm settle', list, list])
  assert.equal(await listTwice(undefined), [list, list])
})

test.run()
