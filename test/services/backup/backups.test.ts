import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openBackupStore } from '../../../runtime/services/backup/backup-store.ts'
import { BY, openBackupDesk, populate } from '../../support/server/backups.ts'
import { createStateFolder, faultOf, macOf } from '../../support/server/state.ts'

const test = suite('backups')
const AT = '2026-11-21T06:55:53.000Z'
const ID = '2026-11-21T06-55-53Z'
const now = () => new Date(AT)

test('a backup holds the inventory and the whole database, private, and says so', async () => {
  await using folder = await createStateFolder()
  await using desk = await openBackupDesk(folder, { now })
  await populate(desk)
  const job = await desk.backUp()
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
  const files = await readdir(join(desk.backupDir, ID))
  assert.equal(files.toSorted(), ['inventory.json', 'manifest.json', 'state.db'])
  assert.is((await stat(desk.backupDir)).mode & 0o077, 0)
  const inventory = JSON.parse(await readFile(join(desk.backupDir, ID, 'inventory.json'), 'utf8'))
  assert.is(inventory.bty_export_version, 3)
  assert.is(inventory.machines[0].hw_lshw.id, 'box-1')
  const [stored] = await desk.backups.list()
  assert.is(stored?.backup_id, ID)
  assert.is(stored?.bytes, bytes_done)
  assert.is(stored?.manifest?.machines, 3)
  assert.equal(await desk.kinds(), [
    'backup.create.requested',
    'backup.create.started',
    'backup.created',
  ])
  const [created] = await desk.journal.list({ limit: 1 })
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
  await using desk = await openBackupDesk(folder, { now })
  const started = await Promise.all([
    desk.backups.start('manual', BY),
    desk.backups.start('manual', BY),
    desk.backups.start('manual', BY),
  ])
  const ids = started.map(({ backup_id }) => backup_id)
  assert.equal(ids.toSorted(), [ID, `${ID}-1`, `${ID}-2`])
  for (const id of ids) assert.is((await desk.backups.awaitEnd(id))?.status, 'completed')
  assert.is((await desk.backups.list()).length, 3)
  assert.equal(
    desk.backups.jobs().map(({ backup_id }) => backup_id),
    ids.toReversed(),
  )
})

test('only the newest stay; what is no backup stays too', async () => {
  await using folder = await createStateFolder()
  const clock = { at: Date.parse(AT) }
  await using desk = await openBackupDesk(folder, { now: () => new Date(clock.at) })
  const foreign = ['notes', '2026-01-01T00-00-00Z-mine']
  for (const name of foreign) {
    await mkdir(join(desk.backupDir, name))
    await writeFile(join(desk.backupDir, name, 'inventory.json'), 'mine')
  }
  desk.settings.current = { ...desk.settings.current, retention: 2 }
  for (let n = 0; n < 4; n += 1) {
    await desk.backUp()
    clock.at += 60_000
  }
  const left = (await readdir(desk.backupDir)).toSorted()
  assert.equal(left, [...foreign, '2026-11-21T06-57-53Z', '2026-11-21T06-58-53Z'].toSorted())
  const pruned = await desk.journal.list({ limit: 10, kind: 'backup.pruned' })
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
  await using desk = await openBackupDesk(folder, { now })
  await populate(desk, 30)
  const running = await desk.backups.start('manual', BY)
  const queued = await desk.backups.start('manual', BY)
  const [first, second] = await Promise.all([
    desk.backups.cancel(running.backup_id, BY),
    desk.backups.cancel(queued.backup_id, BY),
  ])
  assert.equal([first?.status, second?.status], ['cancelled', 'cancelled'])
  assert.equal(await desk.backups.list(), [])
  assert.equal(await desk.backupStore.listTraces(), [])
  assert.is(await desk.backups.cancel('2020-01-01T00-00-00Z', BY), null)
  const kinds = await desk.kinds()
  assert.is(kinds.filter((kind) => kind === 'backup.create.cancelled').length, 2)
  assert.not(kinds.includes('backup.failed'))
  const done = await desk.backUp()
  assert.is((await desk.backups.cancel(done?.backup_id ?? '', BY))?.status, 'completed')
})

test('a failure is on record with its reason, leaves nothing, and the next one works', async () => {
  await using folder = await createStateFolder()
  await using desk = await openBackupDesk(folder, { now })
  await populate(desk)
  await rm(desk.backupDir, { recursive: true })
  await writeFile(desk.backupDir, 'a file where the folder was')
  const job = await desk.backUp()
  assert.is(job?.status, 'failed')
  assert.ok(job?.error)
  const [failed] = await desk.journal.list({ limit: 1, failed: true })
  assert.is(failed?.kind, 'backup.failed')
  assert.is(failed?.details?.['error'], job?.error)
  assert.is(await desk.journal.countAlarms(), 1)
  await rm(desk.backupDir)
  assert.is((await desk.backUp())?.status, 'completed')
})

test('what a crash cut short is removed at the next start; a bare inventory is a backup', async () => {
  await using folder = await createStateFolder()
  {
    await using desk = await openBackupDesk(folder, { now })
    await populate(desk)
    await desk.backUp()
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
  await using desk = await openBackupDesk(folder, { now })
  await desk.backUp()
  assert.equal(
    (await desk.backups.list()).map(({ backup_id }) => backup_id),
    [`${ID}-1`, ID, '2026-11-19T00-00-00Z'],
  )
  assert.equal((await readdir(join(folder.dir, 'backups'))).includes('2026-11-20T00-00-00Z'), false)
  assert.equal((await readdir(strange)).length, 2)
  assert.not((await readdir(folder.dir)).includes('.backup'))
})

test('a command beside the server touches nothing of the server', async () => {
  await using folder = await createStateFolder()
  await using server = await openBackupDesk(folder, { now })
  await populate(server)
  const half = join(server.backupDir, '2026-11-20T00-00-00Z')
  await mkdir(half)
  await writeFile(join(half, 'state.db.000000'), 'being written')
  {
    await using visitor = await openBackupDesk(folder, { now, database: { visit: true } })
    assert.is((await visitor.backUp())?.machines, 3)
  }
  assert.equal(await readdir(half), ['state.db.000000'])
  assert.is((await server.backups.list()).length, 1)
})

test('a backup larger than a piece is stored in pieces and downloaded whole', async () => {
  await using folder = await createStateFolder()
  await using desk = await openBackupDesk(folder, { now })
  const values = Array.from({ length: 60 }, (_, n) => [`big.${n}`, 'x'.repeat(200_000)] as const)
  await desk.store.save(Object.fromEntries(values))
  await desk.backUp()
  const names = await readdir(join(desk.backupDir, ID))
  assert.ok(names.includes('state.db.000000') && names.includes('state.db.000001'))
  const download = await desk.backups.download(ID, 'state.db')
  const bytes = Buffer.concat(await Array.fromAsync(download?.pieces ?? []))
  assert.is(bytes.length, download?.bytes)
  assert.is(bytes.subarray(0, 15).toString(), 'SQLite format 3')
  assert.is(await desk.backups.download(ID, '../state.db'), null)
  assert.is(await desk.backups.download('../..', 'state.db'), null)
})

test('a removed backup is gone; one that is not there is said', async () => {
  await using folder = await createStateFolder()
  await using desk = await openBackupDesk(folder, { now })
  await desk.backUp()
  assert.is((await desk.backups.remove(ID, BY))?.backup_id, ID)
  assert.is(await desk.backups.remove(ID, BY), null)
  assert.equal(await desk.backups.list(), [])
  assert.equal(await readdir(desk.backupDir), [])
  assert.is((await faultOf(desk.backups.restore(ID, BY))).code, 'not-found')
})

test('a storage that gives back something else is noticed at once', async () => {
  await using folder = await createStateFolder()
  const place = { driver: 'null', options: {} }
  await using desk = await openBackupDesk(folder, { now, place })
  const job = await desk.backUp()
  assert.is(job?.status, 'failed')
  assert.match(job?.error ?? '', 'does not read back')
})

test('other drivers work the same, and unknown ones are named', async () => {
  await using folder = await createStateFolder()
  {
    const options = { base: join(folder.dir, 'lite') }
    await using desk = await openBackupDesk(folder, { now, place: { driver: 'fs-lite', options } })
    await populate(desk)
    await desk.backUp()
    await desk.machines.remove(macOf(1))
    assert.is((await desk.backups.restore(ID, BY)).machines, 3)
  }
  for (const driver of ['nowhere', '../fs', 'utils/index', '']) {
    const fault = await faultOf(openBackupStore({ driver, folder: folder.dir, options: {} }))
    assert.match(fault.message, `backup.driver: ${driver}`)
  }
})

test('stopping the server ends what is running', async () => {
  await using folder = await createStateFolder()
  const desk = await openBackupDesk(folder, { now })
  await populate(desk, 20)
  const { backup_id } = await desk.backups.start('manual', BY)
  await desk[Symbol.asyncDispose]()
  assert.is.not((await desk.backups.awaitEnd(backup_id))?.status, 'running')
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

test.run()
