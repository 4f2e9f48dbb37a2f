/** The server's own SSH key: made once, for its user alone. */
import { execFileSync } from 'node:child_process'
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createShell } from '#kit/host/shell.ts'
import { createSshKeys } from '#fleet/workflow/online-workflows.ts'

const test = suite('ssh key')

async function createFolder() {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-key-'))
  const folder = join(dir, 'keys')
  const open = (env = process.env) => createSshKeys({ folder, shell: createShell({ env }) })
  const [keys, modeOf] = [open(), async (path: string) => (await stat(path)).mode & 0o777]
  return { folder, open, keys, modeOf, [Symbol.asyncDispose]: () => rm(dir, { recursive: true }) }
}

test('it is made at the first use, once, and stays', async () => {
  await using at = await createFolder()
  const [one, two] = await Promise.all([at.keys.ensure(), at.keys.ensure()])
  assert.is(one.publicLine, two.publicLine)
  assert.match(one.publicLine, /^ssh-ed25519 \S+/)
  assert.equal([await at.modeOf(one.path), await at.modeOf(at.folder)], [0o600, 0o700])
  assert.equal((await readdir(at.folder)).toSorted(), ['id_ed25519', 'id_ed25519.pub'])
  const listed = execFileSync('ssh-keygen', ['-l', '-f', one.path], { encoding: 'utf8' })
  assert.match(listed, /ED25519/)
  assert.is((await at.open().ensure()).publicLine, one.publicLine)
})

test('one that others could read is closed to them; its public half is found without the file', async () => {
  await using at = await createFolder()
  const { path, publicLine } = await at.keys.ensure()
  await chmod(path, 0o644)
  await rm(`${path}.pub`)
  assert.is((await at.open().ensure()).publicLine, publicLine)
  assert.is(await at.modeOf(path), 0o600)
})

test('what is no key is reported and left alone, and a later attempt finds a better one', async () => {
  await using at = await createFolder()
  const { path } = await at.keys.ensure()
  const key = await readFile(path)
  await writeFile(path, 'nonsense')
  const keys = at.open()
  const failed = await keys.ensure().then(
    () => '',
    (thrown: unknown) => String(thrown),
  )
  assert.match(failed, /ssh-keygen/)
  assert.is(await readFile(path, 'utf8'), 'nonsense')
  await writeFile(path, key)
  assert.match((await keys.ensure()).publicLine, /^ssh-ed25519/)
})

test.run()
