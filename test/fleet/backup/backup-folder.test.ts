import { execFileSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { BY, openBackupFixture, populate } from '#test/support/server/backups.ts'
import { createStateFolder, faultOf } from '#test/support/server/state.ts'

const test = suite('folder of backups')
const YEAR = 365 * 86_400_000
const START = Date.parse('2026-11-21T06:55:53.000Z')
const ID = '2026-11-21T06-55-53Z'

const modeOf = async (path: string) => (await stat(path)).mode & 0o777

test('no other user can read a backup, whatever the folder lets them', async () => {
  await using folder = await createStateFolder()
  const backups = await mkdtemp(join(tmpdir(), 'flasher-backups-'))
  await chmod(backups, 0o755)
  const place = { folder: backups }
  await using fixture = await openBackupFixture(folder, { place, now: () => new Date(START) })
  await populate(fixture)
  await fixture.backUp()
  assert.is(await modeOf(join(backups, ID)), 0o700)
  for (const name of await readdir(join(backups, ID))) {
    assert.is(await modeOf(join(backups, ID, name)), 0o600, name)
  }
  await rm(backups, { recursive: true })
})

test('a pipe in a backup hangs nothing: neither the list nor a restore', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now: () => new Date(START) })
  await populate(fixture)
  await fixture.backUp()
  const stored = join(fixture.backupDir, ID, 'state.db')
  await rm(stored)
  execFileSync('mkfifo', [stored])
  assert.match((await faultOf(fixture.backups.restore(ID, BY))).message, /missing, or is no file/)
  const other = join(fixture.backupDir, '2026-11-20T00-00-00Z')
  await mkdir(other)
  execFileSync('mkfifo', [join(other, 'manifest.json'), join(other, 'inventory.json')])
  assert.equal(
    (await fixture.backups.list()).map(({ backup_id }) => backup_id),
    [ID],
  )
  assert.is((await fixture.backUp())?.status, 'completed')
})

test('after a clock that ran ahead or behind is right again, what is made stays', async () => {
  for (const offset of [30 * YEAR, -20 * YEAR]) {
    await using folder = await createStateFolder()
    let at = START + offset
    await using fixture = await openBackupFixture(folder, { now: () => new Date(at) })
    fixture.settings.current = { enabled: true, cadence: 'manual', retention: 2 }
    const wrong = [await fixture.backUp(), await fixture.backUp()]
    at = START
    const right = await fixture.backUp()
    const [newest, second, ...rest] = await fixture.backups.list()
    assert.is(newest?.backup_id, right?.backup_id)
    assert.is(second?.backup_id, wrong[1]?.backup_id)
    assert.equal(rest, [])
  }
})

test.run()
