import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openBackupStore } from '#fleet/backup/backup-store.ts'
import { startS3 } from '#test/support/http/s3-server.ts'
import { BY, openBackupFixture, populate } from '#test/support/server/backups.ts'
import { createStateFolder, faultOf, macOf } from '#test/support/server/state.ts'

const test = suite('backups in S3')

test('are made, listed past the first page, pruned and restored', async () => {
  await using folder = await createStateFolder()
  await using s3 = await startS3('lab')
  let at = Date.parse('2026-11-21T06:55:53Z')
  await using fixture = await openBackupFixture(folder, {
    now: () => new Date(at),
    place: { driver: 's3', options: s3.options },
  })
  await populate(fixture)
  fixture.settings.current = { enabled: true, cadence: 'manual', retention: 3 }
  const made: string[] = []
  for (let n = 0; n < 5; n += 1) {
    at += 1000
    const job = await fixture.backUp()
    assert.is(job?.error, null)
    made.unshift(job?.backup_id ?? '')
  }
  assert.equal(
    (await fixture.backups.list()).map(({ backup_id }) => backup_id),
    made.slice(0, 3),
  )
  assert.is(s3.objects.size, 9)
  await fixture.machines.remove(macOf(1))
  assert.is((await fixture.backups.restore(made[0] ?? '', BY)).machines, 3)
})

test('say what the server said, and which option is missing', async () => {
  await using folder = await createStateFolder()
  await using s3 = await startS3('lab')
  const place = { driver: 's3', folder: folder.dir }
  const options = { ...s3.options, accessKeyId: 'other' }
  const store = await openBackupStore({ ...place, options })
  const fault = await faultOf(store.list())
  assert.match(fault.message, /cannot be listed: HTTP 403/)
  assert.is(fault.hint, 'Access Denied')
  const { region: _region, ...incomplete } = s3.options
  const bare = await openBackupStore({ ...place, options: incomplete })
  assert.match((await faultOf(bare.list())).message, 'backup.driver_options: region is missing')
})

test('a driver whose package is not here names it', async () => {
  const given = { folder: '/nonexistent', options: {} }
  const fault = await faultOf(openBackupStore({ ...given, driver: 'redis' }))
  assert.is(fault.message, 'backup.driver: redis needs the package ioredis')
  assert.match(fault.hint ?? '', /npm install ioredis/)
  const unknown = await faultOf(openBackupStore({ ...given, driver: 'nowhere' }))
  assert.is(unknown.message, 'backup.driver: nowhere cannot be used')
})

test.run()
