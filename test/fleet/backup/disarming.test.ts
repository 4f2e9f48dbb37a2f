import { copyFileSync, readdirSync } from 'node:fs'
import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createOrder } from '#engine/capture/rules/order.ts'
import { createRestorer, openFileBackup } from '#fleet/backup/restore.ts'
import { ORDERS } from '#server/current/assembly/state.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import {
  type BackupFixture,
  bundlesOf,
  BY,
  openBackupFixture,
} from '#test/support/server/backups.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { AT, createStateFolder, machineOf, macOf } from '#test/support/server/state.ts'
import { createSystemAccount, hashOf } from '#test/support/system/system-account.ts'

const test = suite('a restore arms nothing')
const ID = '2026-11-21T06-55-53Z'
const now = () => new Date('2026-11-21T06:55:53.000Z')

const READY = { bty_image_ref: 'b'.repeat(64), target_disk_serial: 'S1' } as const
const once = { ...READY, boot_mode: 'flasher-flash-once' } as const
const always = { ...READY, boot_mode: 'flasher-flash-always' } as const
const cycleOf = (change: Partial<Machine['cycle']>) => ({
  cycle: { ...machineOf(1).cycle, ...change },
})
const capture = createOrder({ name: 'a.img.zst', disk_serial: 'S1', generalize: false }, AT)

/** By number: what each machine was at the time of the backup. */
const FLEET: readonly Partial<Machine>[] = [
  { ...once, name: 'rack-1' },
  { ...always, hostname: 'host-2' },
  { ...READY, boot_mode: 'ipxe-exit', capture },
  { ...once, ...cycleOf({ finished_at: AT }) },
  { ...once, ...cycleOf({ planned: true }) },
  { boot_mode: 'flasher-tui' },
  { boot_mode: 'ipxe-exit', ...READY },
]
const ARMED = [1, 2, 3, 5]

async function fill({ machines }: BackupFixture, fleet = FLEET) {
  for (const [at, change] of fleet.entries()) {
    await machines.update(macOf(at + 1), () => machineOf(at + 1, change))
  }
}

async function check({ machines }: BackupFixture, disarmed: readonly { mac: string }[]) {
  assert.equal(
    disarmed.map(({ mac }) => mac),
    ARMED.map(macOf),
  )
  for (const [at, wanted] of FLEET.entries()) {
    const found = await machines.find(macOf(at + 1))
    const { boot_mode, bty_image_ref, target_disk_serial } = { ...machineOf(at + 1), ...wanted }
    assert.equal(
      [found?.boot_mode, found?.bty_image_ref, found?.target_disk_serial],
      [boot_mode, bty_image_ref, target_disk_serial],
      'mode, image and disk stay',
    )
  }
  assert.is((await machines.find(macOf(3)))?.capture?.result, 'cancelled')
  assert.is((await machines.find(macOf(5)))?.cycle.planned, true, 'it stays held back')
  assert.is((await machines.find(macOf(4)))?.cycle.disarmed_at, null)
}

test('by its id: what was armed is listed by name, in the result and in the event', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  await fill(fixture)
  await fixture.backUp()
  const foreseen = await fixture.backups.foresee(ID)
  const { disarmed } = await fixture.backups.restore(ID, BY)
  assert.equal(foreseen?.disarmed, disarmed)
  assert.equal(foreseen?.differences, { machines: [], unchanged: FLEET.length, settings: [] })
  assert.equal(disarmed.slice(0, 3), [
    { mac: macOf(1), name: 'rack-1' },
    { mac: macOf(2), name: 'host-2' },
    { mac: macOf(3), name: null },
  ])
  await check(fixture, disarmed)
  const [event] = await fixture.journal.list({ kind: 'backup.restored', limit: 1 })
  assert.equal(event?.details?.['disarmed'], disarmed)
  assert.match(event?.summary ?? '', `rack-1 (${macOf(1)})`)
})

test('to foresee it changes nothing, and leaves nothing behind', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  await fill(fixture)
  await fixture.backUp()
  const [before, files] = [await fixture.machines.list(), readdirSync(folder.dir)]
  await fixture.backups.foresee(ID)
  assert.equal(await fixture.machines.list(), before)
  assert.equal(readdirSync(folder.dir), files)
  assert.is(await fixture.backups.foresee('2020-01-01T00-00-00Z'), null)
})

test('what changes is foreseen machine by machine, and settings by name', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  const { machines, database } = fixture
  await fill(fixture)
  await fixture.backUp()
  await machines.remove(macOf(6))
  await machines.update(macOf(7), () => machineOf(7, { ...READY, labels: ['lab'], name: 'new' }))
  await machines.update(macOf(8), () => machineOf(8, { name: 'later' }))
  await database.write((sql) => {
    sql.run(`INSERT INTO settings (name, value, updated_at) VALUES ('pxe.loop_limit', '7', ?)`, AT)
  })
  const foreseen = await fixture.backups.foresee(ID)
  const changes = {
    boot_mode: { before: 'flasher-inventory', after: 'ipxe-exit' },
    name: { before: 'new', after: null },
    labels: { before: ['lab'], after: [] },
  }
  assert.equal(foreseen?.differences, {
    machines: [
      { mac: macOf(8), name: 'later', kind: 'goes', changes: {} },
      { mac: macOf(6), name: null, kind: 'returns', changes: {} },
      { mac: macOf(7), name: null, kind: 'changes', changes },
    ],
    unchanged: 5,
    settings: ['pxe.loop_limit'],
  })
})

test('by a file, such as the .bak that an upgrade kept', async () => {
  await using folder = await createStateFolder()
  {
    await using fixture = await openBackupFixture(folder, { now })
    await fill(fixture)
  }
  const copy = join(folder.dir, 'state.db.0.9.0.bak')
  copyFileSync(folder.path, copy)
  await using fixture = await openBackupFixture(folder, { now, database: { release: '2.0.0' } })
  const { backup, store } = await openFileBackup(copy, 'current')
  const { database } = fixture
  const restorer = createRestorer({ database, bundles: bundlesOf(fixture), store, orders: ORDERS })
  await check(fixture, (await restorer.restore(backup, () => undefined)).disarmed)
})

test('a disk that is being written now stays held back, whatever the backup says of it', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  const { machines } = fixture
  await fill(fixture, [{ boot_mode: 'ipxe-exit' }, { ...once, ...cycleOf({ finished_at: AT }) }])
  await fixture.backUp()
  const writing = { ...once, ...cycleOf({ planned: true, started_at: '2026-11-21T06:50:00.000Z' }) }
  for (const n of [1, 2, 3]) await machines.update(macOf(n), () => machineOf(n, writing))
  const { disarmed } = await fixture.backups.restore(ID, BY)
  assert.equal(
    disarmed.map(({ mac }) => mac),
    [1, 2, 3].map(macOf),
  )
  for (const n of [1, 2, 3]) {
    const cycle = (await machines.find(macOf(n)))?.cycle
    assert.is(cycle?.carried, true)
    assert.type(cycle?.disarmed_at, 'string')
  }
  assert.is((await machines.find(macOf(1)))?.boot_mode, 'ipxe-exit')
  // The machine may still report that it is done, by the token of this cycle.
  assert.is((await machines.find(macOf(1)))?.cycle.before?.started_at, writing.cycle.started_at)
})

test('hardware alone: the orders that it clears are listed, and a half-written disk is held back', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  await fill(fixture)
  const text = await Array.fromAsync(fixture.bundles.render())
  const { database, machines } = fixture
  await machines.remove(macOf(7))
  const backup = { backup_id: ID, manifest: null, bytes: null }
  const store = {
    read: () => {
      throw new Error('it has no pieces')
    },
    readBare: async () => Buffer.from(text.join('')),
  }
  const restorer = createRestorer({ database, bundles: fixture.bundles, store, orders: ORDERS })
  const foreseen = await restorer.foresee(backup)
  const { disarmed } = await restorer.restore(backup, () => undefined)
  assert.equal(
    disarmed.map(({ mac }) => mac),
    ARMED.map(macOf),
  )
  assert.equal(foreseen, { disarmed, differences: null })
  const held = await machines.find(macOf(5))
  assert.is(held?.boot_mode, 'flasher-inventory')
  assert.equal([held?.cycle.carried, held?.cycle.disarmed_at !== null], [true, true])
})

/** The table as the deployed server makes it. */
const TABLE = `CREATE TABLE machines (
  mac TEXT PRIMARY KEY, image TEXT, provisioning_mode TEXT NOT NULL DEFAULT 'none', hostname TEXT,
  cijoe_workflow_ref TEXT, last_known_good TEXT, discovered_at TEXT, last_seen_at TEXT,
  last_seen_ip TEXT, boot_policy TEXT NOT NULL DEFAULT 'local', last_flashed_at TEXT,
  last_workflow_run_at TEXT, last_workflow_status TEXT, last_workflow_output_path TEXT,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL)`
const DEPLOYED_AT = '2026-05-08T10:00:00.123456+00:00'

test('its machines go on with their policies, and its file is kept', async () => {
  await using account = await createSystemAccount({ shadow: hashOf('a password') })
  await using home = await createServerHome({ prefix: account.prefix })
  await mkdir(home.at('state'))
  const file = new DatabaseSync(home.at('state/state.db'))
  file.exec(TABLE)
  const insert = file.prepare(
    `INSERT INTO machines (mac, image, boot_policy, provisioning_mode, hostname, last_known_good,
     discovered_at, last_seen_at, last_seen_ip, created_at, updated_at)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  )
  insert.run(
    'aa:bb:cc:dd:ee:01',
    'debian.qcow2',
    'flash',
    'cijoe-online',
    'box-1',
    '{"image":"debian.qcow2"}',
    DEPLOYED_AT,
    DEPLOYED_AT,
    '192.0.2.7',
    DEPLOYED_AT,
    DEPLOYED_AT,
  )
  insert.run(
    'aa:bb:cc:dd:ee:02',
    null,
    'tui',
    'none',
    null,
    'no JSON',
    null,
    null,
    null,
    DEPLOYED_AT,
    DEPLOYED_AT,
  )
  insert.run(
    'nonsense',
    null,
    'tui',
    'none',
    null,
    null,
    null,
    null,
    null,
    DEPLOYED_AT,
    DEPLOYED_AT,
  )
  file.close()

  await using server = await home.start([], {
    FLASHER_LINE: 'earlier',
    FLASHER_IMAGE_ROOT: home.at('images'),
  })
  const { cookie } = await login(server.url, 'a password')
  const ask = async (path: string) =>
    (await fetch(`${server.url}${path}`, { headers: { cookie } })).json()
  const [first, second, ...more] = await ask('/machines')
  assert.equal(more, [])
  assert.equal(
    [first.mac, first.image, first.boot_policy, first.provisioning_mode, first.hostname],
    ['aa:bb:cc:dd:ee:01', 'debian.qcow2', 'flash', 'cijoe-online', 'box-1'],
  )
  assert.equal(first.last_known_good, { image: 'debian.qcow2' })
  assert.equal(
    [first.discovered_at, first.last_seen_at, first.last_seen_ip],
    ['2026-05-08T10:00:00.123Z', '2026-05-08T10:00:00.123Z', '192.0.2.7'],
  )
  assert.equal([second.boot_policy, second.last_known_good], ['tui', null])
  const { events } = await ask('/events?kind=system.state.taken_over')
  assert.match(events[0].summary, /^2 machines .* 1 could not be read$/)
  assert.ok((await readdir(home.at('state'))).some((name) => name.endsWith('.bak')))
})

test.run()
