import { mkdtemp, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeFolder } from '#kit/host/folders.ts'
import { prepareStateDir } from '#kit/config/state-dirs.ts'
import { faultOf } from '#test/support/collect.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'

const test = suite('folders')

test('made with all above them, whoever else makes them, through links', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-folders-'))
  try {
    const path = join(dir, 'a/b/c')
    await Promise.all([1, 2, 3].map(() => makeFolder(path, 0o700)))
    assert.is((await stat(join(dir, 'a/b'))).mode & 0o777, 0o700)
    await symlink(join(dir, 'a'), join(dir, 'link'))
    await makeFolder(join(dir, 'link/b/d'))
    assert.ok((await stat(join(dir, 'a/b/d'))).isDirectory())
    await writeFile(join(dir, 'file'), '')
    for (const name of ['file', 'file/below']) {
      const thrown = await makeFolder(join(dir, name)).catch((error: unknown) => error)
      assert.match(String(thrown), `${dir}/file`)
    }
  } finally {
    await rm(dir, { recursive: true })
  }
})

test('where no folder can be made, it says which at once', async () => {
  const fault = await faultOf(() => prepareStateDir('/proc/flasher/state'))
  assert.is(fault.code, 'input-missing')
  assert.match(
    fault.message,
    /the state directory \/proc\/flasher\/state cannot be used: .*\/proc\//,
  )
  assert.match(fault.hint ?? '', 'FLASHER_PATHS_STATE_DIR')
})

test('flasher-web ends with the reason for every folder that cannot be', async () => {
  await using home = await createServerHome()
  for (const [variable, path] of [
    ['FLASHER_PATHS_STATE_DIR', '/proc/flasher-state'],
    ['FLASHER_PATHS_BOOT_DIR', '/proc/flasher-boot/x'],
    ['FLASHER_PATHS_BACKUP_DIR', '/proc/flasher-backups'],
  ] as const) {
    const { code, stderr } = await home.run([], { [variable]: path })
    assert.is.not(code, 0)
    assert.match(stderr, /\/proc\/flasher-/)
  }
})

test.run()
