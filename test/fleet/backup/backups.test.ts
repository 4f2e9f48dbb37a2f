import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { mock } from 'node:test'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openBackupStore } from '#fleet/backup/backup-store.ts'
import { type Backups, startBackupSchedule } from '#fleet/backup/backups.ts'
import { startS3 } from '#test/support/http/s3-server.ts'
import { BY, openBackupFixture, populate } from '#test/support/server/backups.ts'
import { until } from '#test/support/server/image-cache.ts'
import { createStateFolder, faultOf, macOf } from '#test/support/server/state.ts'

const test = suite('backups')
const AT = '2026-11-21T06:55:53.000Z'
const ID = '2026-11-21T06-55-53Z'
const now = () => new Date(AT)

test('a backup holds the inventory and the whole database, private, and says so', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  await populate(fixture)
  const job = await fixture.backUp()
  const { bytes_done, ...rest } = job ?? { bytes_done: 0 }
  assert.equal(rest, {
    backup_id: ID,
    status: 'completed',
    started_at: AT,
    finished_at: AT,
    machines: 3,
    bytes_total: bytes_done,
    dest_path: ID,
    trigger: 'manual',
    error: null,
  })
  const files = await readdir(join(fixture.backupDir, ID))
  assert.equal(files.toSorted(), ['inventory.json', 'manifest.json', 'state.db'])
  assert.is((await stat(fixture.backupDir)).mode & 0o077, 0)
  const inventory = JSON.parse(
    await readFile(join(fixture.backupDir, ID, 'inventory.json'), 'utf8'),
  )
  assert.is(inventory.bty_export_version, 3)
  assert.is(inventory.machines[0].hw_lshw.id, 'box-1')
  const [stored] = await fixture.backups.list()
  assert.is(stored?.backup_id, ID)
  assert.is(stored?.bytes, bytes_done)
  assert.is(stored?.manifest?.machines, 3)
  assert.equal(await fixture.kinds(), [
    'backup.create.requested',
    'backup.create.started',
    'backup.created',
  ])
  const [created] = await fixture.journal.list({ limit: 1 })
  assert.equal(created?.details, {
    backup_id: ID,
    trigger: 'manual',
    dest_path: ID,
    machines: 3,
    bytes_done,
    error: null,
  })
  assert.equal([created?.actor, created?.source_ip], ['operator', '192.0.2.7'])
  assert.not((await readdir(folder.dir)).includes('.backup'))
})

test('they are made one after the other, with ids that differ', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  const started = await Promise.all([
    fixture.backups.start('manual', BY),
    fixture.backups.start('manual', BY),
    fixture.backups.start('manual', BY),
  ])
  const ids = started.map(({ backup_id }) => backup_id)
  assert.equal(ids.toSorted(), [ID, `${ID}-1`, `${ID}-2`])
  for (const id of ids) assert.is((await fixture.backups.awaitEnd(id))?.status, 'completed')
  assert.is((await fixture.backups.list()).length, 3)
  assert.equal(
    fixture.backups.jobs().map(({ backup_id }) => backup_id),
    ids.toReversed(),
  )
})

test('only the newest stay; what is no backup stays too', async () => {
  await using folder = await createStateFolder()
  const clock = { at: Date.parse(AT) }
  await using fixture = await openBackupFixture(folder, { now: () => new Date(clock.at) })
  const foreign = ['notes', '2026-01-01T00-00-00Z-mine']
  for (const name of foreign) {
    await mkdir(join(fixture.backupDir, name))
    await writeFile(join(fixture.backupDir, name, 'inventory.json'), 'mine')
  }
  fixture.settings.current = { ...fixture.settings.current, retention: 2 }
  for (let n = 0; n < 4; n += 1) {
    await fixture.backUp()
    clock.at += 60_000
  }
  const left = (await readdir(fixture.backupDir)).toSorted()
  assert.equal(left, [...foreign, '2026-11-21T06-57-53Z', '2026-11-21T06-58-53Z'].toSorted())
  const pruned = await fixture.journal.list({ limit: 10, kind: 'backup.pruned' })
  assert.equal(
    pruned.map(({ details }) => details),
    [
      { backup_id: '2026-11-21T06-56-53Z', retention: 2 },
      { backup_id: ID, retention: 2 },
    ],
  )
})

test('a queued one can be cancelled, a running one too, and nothing is left of them', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  await populate(fixture, 30)
  const running = await fixture.backups.start('manual', BY)
  const queued = await fixture.backups.start('manual', BY)
  const [first, second] = await Promise.all([
    fixture.backups.cancel(running.backup_id, BY),
    fixture.backups.cancel(queued.backup_id, BY),
  ])
  assert.equal([first?.status, second?.status], ['cancelled', 'cancelled'])
  assert.equal(await fixture.backups.list(), [])
  assert.equal(await fixture.backupStore.listTraces(), [])
  assert.is(await fixture.backups.cancel('2020-01-01T00-00-00Z', BY), null)
  const kinds = await fixture.kinds()
  assert.is(kinds.filter((kind) => kind === 'backup.create.cancelled').length, 2)
  assert.not(kinds.includes('backup.failed'))
  const done = await fixture.backUp()
  assert.is((await fixture.backups.cancel(done?.backup_id ?? '', BY))?.status, 'completed')
})

test('a failure is on record with its reason, leaves nothing, and the next one works', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  await populate(fixture)
  await rm(fixture.backupDir, { recursive: true })
  await writeFile(fixture.backupDir, 'a file where the folder was')
  const job = await fixture.backUp()
  assert.is(job?.status, 'failed')
  assert.ok(job?.error)
  const [failed] = await fixture.journal.list({ limit: 1, failed: true })
  assert.is(failed?.kind, 'backup.failed')
  assert.is(failed?.details?.['error'], job?.error)
  assert.is(await fixture.journal.countAlarms(), 1)
  await rm(fixture.backupDir)
  assert.is((await fixture.backUp())?.status, 'completed')
})

test('what a crash cut short is removed at the next start; a bare inventory is a backup', async () => {
  await using folder = await createStateFolder()
  {
    await using fixture = await openBackupFixture(folder, { now })
    await populate(fixture)
    await fixture.backUp()
  }
  const cut = join(folder.dir, 'backups', '2026-11-20T00-00-00Z')
  const bare = join(folder.dir, 'backups', '2026-11-19T00-00-00Z')
  const strange = join(folder.dir, 'backups', '2026-11-18T00-00-00Z')
  for (const dir of [cut, bare, strange, join(folder.dir, '.backup')]) await mkdir(dir)
  await writeFile(join(cut, 'state.db.000000'), 'half')
  await writeFile(
    join(bare, 'inventory.json'),
    await readFile(join(folder.dir, 'backups', ID, 'inventory.json')),
  )
  await writeFile(join(strange, 'state.db'), 'with')
  await writeFile(join(strange, 'letter.txt'), 'a letter')
  await using fixture = await openBackupFixture(folder, { now })
  await fixture.backUp()
  assert.equal(
    (await fixture.backups.list()).map(({ backup_id }) => backup_id),
    [`${ID}-1`, ID, '2026-11-19T00-00-00Z'],
  )
  assert.equal((await readdir(join(folder.dir, 'backups'))).includes('2026-11-20T00-00-00Z'), false)
  assert.equal((await readdir(strange)).length, 2)
  assert.not((await readdir(folder.dir)).includes('.backup'))
})

test('a command beside the server touches nothing of the server', async () => {
  await using folder = await createStateFolder()
  await using server = await openBackupFixture(folder, { now })
  await populate(server)
  const half = join(server.backupDir, '2026-11-20T00-00-00Z')
  await mkdir(half)
  await writeFile(join(half, 'state.db.000000'), 'being written')
  {
    await using visitor = await openBackupFixture(folder, { now, database: { visit: true } })
    assert.is((await visitor.backUp())?.machines, 3)
  }
  assert.equal(await readdir(half), ['state.db.000000'])
  assert.is((await server.backups.list()).length, 1)
})

test('a backup larger than a piece is stored in pieces and downloaded whole', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  const values = Array.from({ length: 60 }, (_, n) => [`big.${n}`, 'x'.repeat(200_000)] as const)
  await fixture.store.save(Object.fromEntries(values))
  await fixture.backUp()
  const names = await readdir(join(fixture.backupDir, ID))
  assert.ok(names.includes('state.db.000000') && names.includes('state.db.000001'))
  const download = await fixture.backups.download(ID, 'state.db')
  const bytes = Buffer.concat(await Array.fromAsync(download?.pieces ?? []))
  assert.is(bytes.length, download?.bytes)
  assert.is(bytes.subarray(0, 15).toString(), 'SQLite format 3')
  assert.is(await fixture.backups.download(ID, '../state.db'), null)
  assert.is(await fixture.backups.download('../..', 'state.db'), null)
})

test('a removed backup is gone; one that is not there is said', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  await fixture.backUp()
  assert.is((await fixture.backups.remove(ID, BY))?.backup_id, ID)
  assert.is(await fixture.backups.remove(ID, BY), null)
  assert.equal(await fixture.backups.list(), [])
  assert.equal(await readdir(fixture.backupDir), [])
  assert.is((await faultOf(fixture.backups.restore(ID, BY))).code, 'not-found')
})

test('a storage that gives back something else is noticed at once', async () => {
  await using folder = await createStateFolder()
  const place = { driver: 'null', options: {} }
  await using fixture = await openBackupFixture(folder, { now, place })
  const job = await fixture.backUp()
  assert.is(job?.status, 'failed')
  assert.match(job?.error ?? '', 'could not be verified')
})

test('other drivers work the same, and unknown ones are named', async () => {
  await using folder = await createStateFolder()
  {
    const options = { base: join(folder.dir, 'lite') }
    await using fixture = await openBackupFixture(folder, {
      now,
      place: { driver: 'fs-lite', options },
    })
    await populate(fixture)
    await fixture.backUp()
    await fixture.machines.remove(macOf(1))
    assert.is((await fixture.backups.restore(ID, BY)).machines, 3)
  }
  for (const driver of ['nowhere', '../fs', 'utils/index', '']) {
    const fault = await faultOf(openBackupStore({ driver, folder: folder.dir, options: {} }))
    assert.match(fault.message, `backup.driver: ${driver}`)
  }
})

test('stopping the server ends what is running', async () => {
  await using folder = await createStateFolder()
  const fixture = await openBackupFixture(folder, { now })
  await populate(fixture, 20)
  const { backup_id } = await fixture.backups.start('manual', BY)
  await fixture[Symbol.asyncDispose]()
  assert.is.not((await fixture.backups.awaitEnd(backup_id))?.status, 'running')
  await chmod(folder.dir, 0o700)
  assert.not((await readdir(folder.dir)).includes('.backup'))
})

test('a backup folder that is a file, or lies below one, is refused at the start', async () => {
  await using folder = await createStateFolder()
  const file = join(folder.dir, 'file')
  await writeFile(file, 'no folder')
  for (const place of [file, join(file, 'below')]) {
    const fault = await faultOf(openBackupStore({ driver: 'fs', folder: place, options: {} }))
    assert.is(fault.code, 'conflict')
    assert.match(fault.message, place)
    assert.match(fault.hint ?? '', 'paths.backup_dir')
  }
})

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

const laterNow = () => new Date('2026-11-21T06:55:53.000Z')

test('a cancel that comes too late changes nothing, and is not on record', async () => {
  await using folder = await createStateFolder()
  const cancels: ReturnType<Backups['cancel']>[] = []
  await using fixture = await openBackupFixture(folder, {
    now: laterNow,
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
    await using fixture = await openBackupFixture(folder, { now: laterNow, records })
    await fixture.backUp()
  }
  const [name = ''] = await readdir(records)
  const job = JSON.parse(await readFile(join(records, name), 'utf8'))
  const later = { status: 'running', started_at: '2026-11-21T06:55:54.000Z', finished_at: null }
  const cut = { ...job, backup_id: `${ID}-1`, ...later }
  await writeFile(join(records, `${ID}-1.json`), JSON.stringify(cut))
  await using fixture = await openBackupFixture(folder, { now: laterNow, records })
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
    await using fixture = await openBackupFixture(folder, { now: laterNow })
    await fixture.backups.start('manual', BY)
  }
  await using fixture = await openBackupFixture(folder, { now: laterNow })
  const [last] = await fixture.journal.list({ limit: 1 })
  assert.equal(
    [last?.kind, last?.actor, last?.summary],
    ['backup.create.cancelled', 'system', `Backup ${ID} was cancelled: the server stopped`],
  )
})

const START = Date.parse('2026-11-21T06:55:53.000Z')
const HOUR = 3_600_000

async function createFixture() {
  const folder = await createStateFolder()
  const clock = { at: START }
  const clockNow = () => new Date(clock.at)
  const fixture = await openBackupFixture(folder, { now: clockNow })
  fixture.settings.current = { enabled: true, cadence: 'daily', retention: 3 }
  const schedule = startBackupSchedule({
    backups: fixture.backups,
    store: fixture.store,
    settings: () => fixture.settings.current,
    now: clockNow,
    elapsed: () => clock.at,
  })
  return {
    ...fixture,
    clock,
    schedule,
    async [Symbol.asyncDispose]() {
      schedule[Symbol.dispose]()
      await fixture[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}
test('makes one at start when it is due, then one a day', async () => {
  await using fixture = await createFixture()
  await fixture.schedule.tick()
  assert.is(fixture.backups.jobs().length, 1)
  assert.is(fixture.backups.jobs()[0]?.trigger, 'scheduled')
  assert.is(fixture.store.find('backup.last_run_at'), new Date(START).toISOString())
  fixture.clock.at += 23 * HOUR
  await fixture.schedule.tick()
  assert.is(fixture.backups.jobs().length, 1)
  fixture.clock.at += HOUR
  await fixture.schedule.tick()
  assert.equal(
    fixture.backups.jobs().map(({ status }) => status),
    ['completed', 'completed'],
  )
})

test('heeds a change of the settings at its next look', async () => {
  await using fixture = await createFixture()
  await fixture.schedule.tick()
  fixture.clock.at += 30 * HOUR
  fixture.settings.current = { ...fixture.settings.current, cadence: 'weekly' }
  await fixture.schedule.tick()
  fixture.settings.current = { ...fixture.settings.current, cadence: 'daily', enabled: false }
  await fixture.schedule.tick()
  assert.is(fixture.backups.jobs().length, 1)
  fixture.settings.current = { ...fixture.settings.current, enabled: true }
  await fixture.schedule.tick()
  assert.is(fixture.backups.jobs().length, 2)
})

test('looks every 60 seconds', async () => {
  mock.timers.enable({ apis: ['setInterval'] })
  try {
    await using fixture = await createFixture()
    await fixture.schedule.tick()
    fixture.clock.at += 24 * HOUR
    mock.timers.tick(59_999)
    fixture.clock.at += 1000
    mock.timers.tick(1)
    const lastRun = () => fixture.store.find('backup.last_run_at')
    await until(() => lastRun() !== new Date(START).toISOString())
    assert.is(lastRun(), new Date(START + 24 * HOUR + 1000).toISOString())
  } finally {
    mock.timers.reset()
  }
})

test('tries again an hour after a failure, not every minute', async () => {
  await using fixture = await createFixture()
  await fixture.schedule.tick()
  await rm(fixture.backupDir, { recursive: true })
  await writeFile(fixture.backupDir, 'a file where the folder was')
  fixture.clock.at += 24 * HOUR
  for (let minute = 0; minute < 30; minute += 1) {
    await fixture.schedule.tick()
    fixture.clock.at += 60_000
  }
  assert.is(fixture.backups.jobs().filter(({ status }) => status === 'failed').length, 1)
  await rm(fixture.backupDir)
  fixture.clock.at += 30 * 60_000
  await fixture.schedule.tick()
  assert.is(fixture.backups.jobs()[0]?.status, 'completed')
})

test.run()
