/** How backups end: cancelled too late, cut off by a restart, or by the end of the server. */
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Backups } from '#fleet/backup/backups.ts'
import { BY, openBackupFixture } from '#test/support/server/backups.ts'
import { createStateFolder } from '#test/support/server/state.ts'

const test = suite('ends of backups')
const ID = '2026-11-21T06-55-53Z'
const now = () => new Date('2026-11-21T06:55:53.000Z')

test('a cancel that comes too late changes nothing, and is not on record', async () => {
  await using folder = await createStateFolder()
  const cancels: ReturnType<Backups['cancel']>[] = []
  await using fixture = await openBackupFixture(folder, {
    now,
    beforeFinish(id) {
      cancels.push(fixture.backups.cancel(id, BY))
    },
  })
  assert.is((await fixture.backUp())?.status, 'completed')
  assert.is((await cancels[0])?.status, 'completed')
  assert.is((await fixture.backups.list()).length, 1)
  assert.equal(await fixture.kinds(), [
    'backup.create.requested',
    'backup.create.started',
    'backup.created',
  ])
})

test('backups are listed after a restart; one that it cut off has failed, and says so', async () => {
  await using folder = await createStateFolder()
  const records = join(folder.dir, 'backup-jobs')
  {
    await using fixture = await openBackupFixture(folder, { now, records })
    await fixture.backUp()
  }
  const [name = ''] = await readdir(records)
  const job = JSON.parse(await readFile(join(records, name), 'utf8'))
  const later = { status: 'running', started_at: '2026-11-21T06:55:54.000Z', finished_at: null }
  const cut = { ...job, backup_id: `${ID}-1`, ...later }
  await writeFile(join(records, `${ID}-1.json`), JSON.stringify(cut))
  await using fixture = await openBackupFixture(folder, { now, records })
  await fixture.backUp()
  assert.equal(
    fixture.backups.jobs().map(({ backup_id, status, error }) => [backup_id, status, error]),
    [
      [`${ID}-2`, 'completed', null],
      [`${ID}-1`, 'failed', 'interrupted by a restart of the program'],
      [ID, 'completed', null],
    ],
  )
  const failed = (await fixture.journal.list({ limit: 100 })).filter(
    ({ kind }) => kind === 'backup.failed',
  )
  assert.equal(
    failed.map(({ subject_id, actor }) => [subject_id, actor]),
    [[`${ID}-1`, 'system']],
  )
})

test('a backup that the end of the server cut off is on record', async () => {
  await using folder = await createStateFolder()
  {
    await using fixture = await openBackupFixture(folder, { now })
    await fixture.backups.start('manual', BY)
  }
  await using fixture = await openBackupFixture(folder, { now })
  const [last] = await fixture.journal.list({ limit: 1 })
  assert.equal(
    [last?.kind, last?.actor, last?.summary],
    ['backup.create.cancelled', 'system', `Backup ${ID} was cancelled: the server stopped`],
  )
})

test.run()
