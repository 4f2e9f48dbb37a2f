import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createBatches } from '#fleet/batch/batches.ts'
import { createChannels } from '#fleet/channel/channels.ts'
import { createEntries } from '#fleet/once/entries.ts'
import { BootEntrySchema } from '#fleet/once/rules/boot-entry.ts'
import { createOnce } from '#fleet/once/rules/once-order.ts'
import { createJournal } from '#fleet/state/journal.ts'
import { inspectState } from '#fleet/state/schema.ts'
import { createBatchKeeper } from '#server/current/batches/keeper/batch-keeper.ts'
import {
  buildBundle,
  buildBundleMachine,
  renderBundle,
} from '#server/current/commands/rules/bundle.ts'
import { createMachine } from '#server/current/machines/rules/machine.ts'
import { bundlesOf, BY, openBackupFixture, populate } from '#test/support/server/backups.ts'
import {
  createStateFolder,
  failureOf,
  faultOf,
  machineOf,
  macOf,
  makeToken,
  noteOf,
  RELEASE,
} from '#test/support/server/state.ts'

const test = suite('restore')
const ID = '2026-11-21T06-55-53Z'
const now = () => new Date('2026-11-21T06:55:53.000Z')

test('brings machines, bindings, labels, hardware and settings back, while the server runs', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  await populate(fixture)
  const before = await fixture.machines.list()
  await fixture.backUp()
  await fixture.machines.remove(macOf(1))
  await fixture.machines.update(macOf(2), () => machineOf(2, { labels: ['changed'] }))
  await fixture.machines.update(macOf(9), () => machineOf(9))
  await fixture.store.save({ 'upstream.netboot_tag': 'v2' })
  const heard = new Set<string>()
  fixture.changes.listen(({ topic }) => heard.add(topic))
  const restored = await fixture.backups.restore(ID, BY)
  assert.equal(restored, {
    backup_id: ID,
    kind: 'full',
    machines: 3,
    archive: 'state.db.1.2.3.20261121T065553Z.bak',
    release: '1.2.3',
    disarmed: [1, 2, 3].map((n) => ({ mac: macOf(n), name: null })),
  })
  // All of it but its orders: a machine may have been flashed since.
  const disarmed = { disarmed_at: now().toISOString(), disarmed_by: 'restored' }
  assert.equal(
    await fixture.machines.list(),
    before.map((machine) => ({
      ...machine,
      cycle: { ...machine.cycle, ...disarmed },
      updated_at: disarmed.disarmed_at,
    })),
  )
  assert.is((await fixture.machines.findHardware(macOf(1)))?.json.includes('box-1'), true)
  assert.is(fixture.store.find('upstream.netboot_tag'), 'v1')
  assert.ok(heard.has('backup') && heard.has('settings'))
  assert.is((await fixture.kinds()).at(-1), 'backup.restored')
  await fixture.machines.update(macOf(10), () => machineOf(10))
  assert.is(await fixture.machines.count(), 4)
  assert.not((await readdir(folder.dir)).includes('.restore'))
  await using archive = await folder.open({ path: join(folder.dir, restored.archive ?? '') })
  assert.equal((await archive.machines.find(macOf(2)))?.labels, ['changed'])
})

test('comes up again with what was restored', async () => {
  await using folder = await createStateFolder()
  {
    await using fixture = await openBackupFixture(folder, { now })
    await populate(fixture)
    await fixture.backUp()
    await fixture.machines.remove(macOf(1))
    await fixture.backups.restore(ID, BY)
  }
  await using state = await folder.open()
  assert.is(await state.machines.count(), 3)
})

test('batches come back as they were, and what they had armed is disarmed', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  await populate(fixture)
  const batches = createBatches(fixture.database)
  const keeper = createBatchKeeper({ ...fixture, batches, findImage: () => null, now })
  const by = { ...BY, at: now().toISOString() }
  const asked = { action: 'flash', by, image: null, target: 'rack-1', machines: 1 }
  const { id } = await batches.begin(asked)
  const [first] = await fixture.machines.list()
  const order = first?.cycle.started_at ?? ''
  const member = { mac: macOf(1), order, refusal: null, left: null }
  await batches.keepMembers(id, [member])
  const kept = batches.list()
  assert.is(keeper.view(kept[0] ?? raise()).counts.waiting, 1)
  await fixture.backUp()
  await batches.change(id, (batch) => ({ ...batch, paused_at: by.at }))
  await batches.leave(id, macOf(1), () => 'failed')
  await batches.begin(asked)
  assert.ok(batches.isPaused(id))
  await fixture.backups.restore(ID, BY)
  assert.equal([batches.list(), batches.isPaused(id)], [kept, false])
  assert.equal(batches.listMembers(id), [member])
  assert.is(keeper.view(kept[0] ?? raise()).counts.disarmed, 1)
})

test('channels point where they did, and those that were added since are gone', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  const channels = createChannels(fixture.database)
  const pointTo = (name: string, ref: string) =>
    channels.save(name, () => ({
      name,
      bty_image_ref: ref.repeat(64),
      note: '',
      moved_at: now().toISOString(),
      moved_by: BY.actor,
    }))
  await pointTo('stable', 'a')
  await pointTo('next', 'b')
  const before = channels.list()
  await fixture.backUp()
  await pointTo('stable', 'c')
  await pointTo('later', 'd')
  await channels.remove('next', () => true)
  await fixture.backups.restore(ID, BY)
  assert.equal(channels.list(), before)
})

test('boot entries are as they were, and a restored machine boots nothing else once', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  const entries = createEntries(fixture.database)
  const sha256 = 'a'.repeat(64)
  const add = (name: string) =>
    entries.save(name, () => ({
      name,
      ...BootEntrySchema.parse({ processor: 'x86_64', kernel: { name: 'linux', sha256 } }),
      saved_at: now().toISOString(),
    }))
  await add('memtest')
  const before = entries.list()
  const machine = { ...machineOf(1), once: createOnce('memtest', now().toISOString()) }
  await fixture.machines.commit(macOf(1), null, machine)
  await fixture.backUp()
  await add('later')
  await fixture.backups.restore(ID, BY)
  assert.equal(entries.list(), before)
  assert.is(fixture.machines.peek(macOf(1))?.once, null)
})

const raise = (): never => {
  throw new Error('there is no batch')
}

test('a token that was revoked since stays revoked, one that was not works', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  const kept = await populate(fixture)
  const revoked = await makeToken(fixture.tokens, {
    name: 'x',
    scopes: ['admin'],
    expires_at: null,
  })
  await fixture.backUp()
  await fixture.tokens.revoke(revoked.record.id)
  await fixture.backups.restore(ID, BY)
  assert.is(fixture.tokens.find(revoked.token), null)
  assert.is(fixture.tokens.find(kept.token)?.name, 'ci')
})

test('an older state brings back no person, role or password that was taken away since', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  const add = async (name: string) => {
    const added = await fixture.people.add(
      { name, role: 'administrate', labels: null },
      `hash of ${name}`,
    )
    assert.ok(added.ok)
    return added.value
  }
  const [removed, changed, kept] = [await add('anna'), await add('otto'), await add('lea')]
  const { sessions } = fixture.people
  const hold = (...owners: readonly (string | null)[]) =>
    owners.map((owner) => {
      const who = owner === null ? undefined : { id: owner, name: '', role: null, labels: null }
      const mark = marks.get(owner) ?? ''
      return sessions.admit({ bty_authed: true, iat: 0, sid: 'one', mark, who }) !== undefined
    })
  await fixture.people.openSessions()
  const owners = [removed.id, changed.id, kept.id, null] as const
  const marks = new Map(owners.map((owner) => [owner, sessions.markOf(owner)]))
  assert.equal(hold(...owners), [true, true, true, true])
  await fixture.backUp()
  await sessions.end(null, 'one', 1)
  await fixture.people.remove(removed.id)
  await fixture.people.setRights(changed.id, { role: 'look' })
  await fixture.people.setPassword(changed.id, 'another hash')
  await fixture.database.write((sql) => sql.run('DELETE FROM people WHERE id = ?', kept.id))
  await fixture.backups.restore(ID, BY)
  assert.equal(
    fixture.people.list().map(({ id, name, role }) => [name, role, fixture.people.passwordOf(id)]),
    [
      ['lea', 'administrate', 'hash of lea'],
      ['otto', 'look', 'another hash'],
    ],
  )
  assert.equal(hold(...owners), [false, false, false, false])
})

test('whoever has the name of a restored person by now keeps it, and there is one of them', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  const add = async (hash: string) => {
    const added = await fixture.people.add({ name: 'anna', role: 'look', labels: null }, hash)
    assert.ok(added.ok)
    return added.value
  }
  const before = await add('the hash of before')
  await fixture.backUp()
  await fixture.database.write((sql) => sql.run('DELETE FROM people WHERE id = ?', before.id))
  const present = await add('the present hash')
  await fixture.backups.restore(ID, BY)
  assert.equal(
    fixture.people.list().map(({ id }) => id),
    [present.id],
  )
  assert.is(fixture.people.passwordOf(present.id), 'the present hash')
})

test('what comes in during the restore harms nothing', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  await populate(fixture)
  await fixture.backUp()
  await fixture.machines.remove(macOf(1))
  const restoring = fixture.backups.restore(ID, BY)
  const writing = Array.from({ length: 20 }, (_, n) =>
    fixture.journal.record(noteOf({ summary: `${n}` })),
  )
  fixture.machines.see(macOf(2), { at: '2026-11-21T07:00:00.000Z', ip: '192.0.2.2' })
  await Promise.all([restoring, ...writing])
  assert.is(await fixture.machines.count(), 3)
  assert.is(fixture.database.sql.get('PRAGMA integrity_check')?.['integrity_check'], 'ok')
})

test('a backup of an older release is upgraded on its way in', async () => {
  await using folder = await createStateFolder()
  {
    await using fixture = await openBackupFixture(folder, { now })
    await populate(fixture)
    await fixture.backUp()
  }
  await using fixture = await openBackupFixture(folder, { now, database: { release: '2.0.0' } })
  await fixture.machines.remove(macOf(1))
  const restored = await fixture.backups.restore(ID, BY)
  assert.is(restored.release, '1.2.3')
  assert.is(restored.machines, 3)
  assert.equal(await fixture.kinds(), [
    'backup.create.requested',
    'backup.create.started',
    'system.schema.reset',
    'backup.restored',
  ])
})

test('a bare inventory comes in as an import does', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder, { now })
  await populate(fixture)
  await fixture.backUp()
  for (const name of ['state.db', 'manifest.json']) await rm(join(fixture.backupDir, ID, name))
  await fixture.machines.remove(macOf(1))
  const restored = await fixture.backups.restore(ID, BY)
  assert.equal([restored.kind, restored.machines, restored.archive], ['inventory', 3, null])
  assert.is((await fixture.machines.find(macOf(1)))?.boot_mode, 'flasher-inventory')
  assert.is((await fixture.machines.find(macOf(2)))?.bty_image_ref, null)
})

/** What somebody, or a disk, can do to a stored backup. */
const DAMAGES: readonly (readonly [string, (dir: string) => Promise<void>, string])[] = [
  ['a changed byte', (dir) => change(join(dir, 'state.db'), flip), 'changed after it was written'],
  ['a missing piece', (dir) => rm(join(dir, 'state.db')), 'missing'],
  [
    'a cut piece',
    (dir) => change(join(dir, 'state.db'), (b) => b.subarray(0, 5000)),
    'was changed after',
  ],
  [
    'another digest',
    (dir) =>
      changeText(join(dir, 'manifest.json'), (text) =>
        text.replaceAll(/[0-9a-f]{64}/g, 'a'.repeat(64)),
      ),
    'changed after it was written',
  ],
  [
    'another line',
    (dir) =>
      changeText(join(dir, 'manifest.json'), (text) => text.replace('"current"', '"earlier"')),
    'earlier release line',
  ],
  [
    'no manifest that can be read',
    (dir) => writeFile(join(dir, 'manifest.json'), '{}'),
    'no backup',
  ],
]
const flip = (bytes: Buffer) => {
  bytes[5000] = (bytes[5000] ?? 0) ^ 1
  return bytes
}
const change = async (path: string, edit: (bytes: Buffer) => Buffer) =>
  writeFile(path, edit(await readFile(path)))
const changeText = async (path: string, edit: (text: string) => string) =>
  writeFile(path, edit(await readFile(path, 'utf8')))

for (const [name, damage, words] of DAMAGES) {
  test(`refused, and nothing is changed: ${name}`, async () => {
    await using folder = await createStateFolder()
    await using fixture = await openBackupFixture(folder, { now })
    await populate(fixture)
    await fixture.backUp()
    await fixture.machines.remove(macOf(1))
    const before = await fixture.machines.list()
    await damage(join(fixture.backupDir, ID))
    const fault = await faultOf(fixture.backups.restore(ID, BY))
    assert.match(fault.message, words)
    assert.equal(await fixture.machines.list(), before)
    assert.is(fixture.backups.restoring(), null)
    const names = await readdir(folder.dir)
    assert.not(names.some((file) => file.endsWith('.bak') || file === '.restore'))
  })
}

test('a database that is whole but foreign is refused', async () => {
  await using folder = await createStateFolder()
  await using other = await createStateFolder()
  {
    await using fixture = await openBackupFixture(other, { now, database: { line: 'earlier' } })
    await fixture.backUp()
  }
  await using fixture = await openBackupFixture(folder, { now })
  await populate(fixture)
  const dir = join(fixture.backupDir, ID)
  await mkdir(dir)
  for (const name of await readdir(join(other.dir, 'backups', ID))) {
    const text = await readFile(join(other.dir, 'backups', ID, name))
    await writeFile(join(dir, name), text)
  }
  await changeText(join(dir, 'manifest.json'), (text) => text.replace('"earlier"', '"current"'))
  const fault = await faultOf(fixture.backups.restore(ID, BY))
  assert.match(fault.message, 'belongs to the earlier release line')
  assert.is(await fixture.machines.count(), 3)
  assert.is((await fixture.journal.list({ limit: 1 }))[0]?.kind, 'backup.restore.failed')
})

const NOW = () => new Date('2026-11-21T06:55:53.000Z')

for (const count of [0, 1, 3]) {
  test(`the file is exactly the document of ${count} machines`, async () => {
    await using folder = await createStateFolder()
    await using state = await folder.open()
    if (count > 0) await populate(state, count)
    const out = join(folder.dir, 'a', 'b')
    assert.is(await bundlesOf(state, NOW).exportTo(out), count)
    assert.equal(await readdir(out), ['inventory.json'])
    const items = await Promise.all(
      (await state.machines.list()).map(async (machine) =>
        buildBundleMachine(machine, await state.machines.findHardware(machine.mac)),
      ),
    )
    const about = { version: RELEASE, now: NOW().toISOString(), templates: [] }
    const text = await readFile(join(out, 'inventory.json'), 'utf8')
    assert.is(text, renderBundle(buildBundle(items, about)))
  })
}

test('what was exported comes in elsewhere: hardware, and nothing that was decided', async () => {
  await using source = await createStateFolder()
  await using target = await createStateFolder()
  {
    await using state = await source.open()
    await populate(state)
  }
  await using from = await source.open()
  const out = join(source.dir, 'out')
  await bundlesOf(from).exportTo(out)
  await using to = await target.open()
  await to.machines.update(macOf(2), () =>
    machineOf(2, {
      boot_mode: 'flasher-flash-always',
      labels: ['old'],
      bty_image_ref: 'c'.repeat(64),
    }),
  )
  await to.machines.update(macOf(99), () => machineOf(99, { labels: ['stays'] }))
  const heard: string[] = []
  to.changes.listen((told) => heard.push(told.topic === 'machine' ? told.mac : told.topic))
  assert.is(await bundlesOf(to, NOW).importFrom(out), 3)
  assert.equal(heard, [macOf(1), macOf(2), macOf(3)])
  assert.is(await to.machines.count(), 4)
  for (const n of [1, 2, 3]) {
    const { known_disks, known_disks_at } = (await from.machines.find(macOf(n))) ?? machineOf(n)
    const fresh = createMachine(macOf(n), 'flasher-inventory', NOW().toISOString())
    assert.equal(await to.machines.find(macOf(n)), { ...fresh, known_disks, known_disks_at })
    assert.is(known_disks?.length, 1)
    const hardware = await to.machines.findHardware(macOf(n))
    assert.equal(JSON.parse(hardware?.json ?? '{}'), { id: `box-${n}`, children: [] })
  }
  assert.equal((await to.machines.find(macOf(99)))?.labels, ['stays'])
})

const bundle = (over: Readonly<Record<string, unknown>>) =>
  JSON.stringify({
    bty_export_version: 3,
    exported_at: '2026-11-21T06:55:53+00:00',
    exported_by_bty_version: '0.66.1',
    machines: [
      { mac: macOf(1), known_disks: null, known_disks_at: null, hw_lshw: null, hw_lshw_at: null },
    ],
    ...over,
  })
const REFUSED: readonly (readonly [string, string, string])[] = [
  ['version 1', bundle({ bty_export_version: 1 }), 'version 1'],
  ['version 2', bundle({ bty_export_version: 2 }), 'version 2'],
  ['version 4', bundle({ bty_export_version: 4 }), 'version 4'],
  ['version as text', bundle({ bty_export_version: '3' }), 'version'],
  ['no version', '{"machines":[]}', 'bty_export_version'],
  ['no JSON', '{"machines":', 'JSON'],
  ['nothing', '', 'JSON'],
  ['a bad MAC behind a good one', bundle({ machines: [{ mac: macOf(1) }, { mac: 'x' }] }), 'MAC'],
  [
    'disks that are no list',
    bundle({ machines: [{ mac: macOf(1), known_disks: 7 }] }),
    'known_disks',
  ],
]
for (const [name, text, word] of REFUSED) {
  test(`refused, naming the file, and nothing is changed: ${name}`, async () => {
    await using folder = await createStateFolder()
    await using state = await folder.open()
    await populate(state, 1)
    const before = await state.machines.list()
    const dir = join(folder.dir, 'in')
    await mkdir(dir)
    await writeFile(join(dir, 'inventory.json'), text)
    const fault = await faultOf(bundlesOf(state).importFrom(dir))
    assert.is(fault.code, 'input-invalid')
    assert.match(fault.message, join(dir, 'inventory.json'))
    assert.match(fault.message, word)
    assert.equal(await state.machines.list(), before)
  })
}

test('a folder without a bundle is named', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  const fault = await faultOf(bundlesOf(state).importFrom(folder.dir))
  assert.is(fault.code, 'input-missing')
  assert.match(fault.message, 'inventory.json')
})

test('an export that fails leaves the one before', async () => {
  await using folder = await createStateFolder()
  const out = join(folder.dir, 'out')
  {
    await using state = await folder.open()
    await populate(state, 2)
    await bundlesOf(state).exportTo(out)
    await state.database.write((sql) => sql.run(`UPDATE hardware SET tree = x'00'`))
    await faultLess(bundlesOf(state).exportTo(out))
  }
  assert.equal(await readdir(out), ['inventory.json'])
  assert.is(JSON.parse(await readFile(join(out, 'inventory.json'), 'utf8')).machines.length, 2)
})

const faultLess = (promise: Promise<unknown>) =>
  promise.then(
    () => assert.unreachable('it should fail'),
    () => undefined,
  )

const SPOILERS: readonly (readonly [string, RegExp])[] = [
  ['CREATE VIEW fleet AS SELECT * FROM machines', /it has a view named fleet/],
  [
    'CREATE TRIGGER gone AFTER UPDATE ON machines BEGIN DELETE FROM tokens; END',
    /it has a trigger named gone/,
  ],
  ['CREATE TABLE notes (text TEXT)', /its table notes is not one/],
  ['DROP TABLE settings', /it has no settings/],
  ['DROP INDEX events_by_kind', /it has no events_by_kind/],
  ['ALTER TABLE machines ADD COLUMN more TEXT', /its table machines is not one/],
  ["UPDATE machines SET record = x'00'", /table machines holds something else .* column record/],
  ['DELETE FROM flasher_state', /not written by this program/],
]

test('only a database that the server can start and work with', async () => {
  await using folder = await createStateFolder()
  await using fixture = await openBackupFixture(folder)
  await populate(fixture)
  for (const [index, [spoil, reason]] of SPOILERS.entries()) {
    const path = join(folder.dir, `copy-${index}.db`)
    await fixture.database.copyTo(path)
    assert.is(inspectState(path, 'current').line, 'current')
    const file = new DatabaseSync(path)
    file.exec(spoil)
    file.close()
    const inspect = async () => inspectState(path, 'current')
    assert.match((await failureOf(inspect())).message, reason, spoil)
  }
})

const DAY = 86_400_000
const START = Date.parse('2026-11-21T06:55:53.000Z')
const YEARS = { min: -20, max: 30 }
const retention = () => ({ count: 10_000, days: 90 })

test('loses no event, no backup that was just made, no sighting, and no archive', async () => {
  const moves = fc.array(fc.integer(YEARS), { minLength: 3, maxLength: 6 })
  await fc.assert(
    fc.asyncProperty(moves, async (offsets) => {
      await using folder = await createStateFolder()
      let at = START
      const clock = () => new Date(at)
      await using fixture = await openBackupFixture(folder, { now: clock })
      fixture.settings.current = { enabled: true, cadence: 'manual', retention: 2 }
      const journal = createJournal(fixture.database, {
        changes: fixture.changes,
        now: clock,
        retention,
      })
      await fixture.machines.update(macOf(1), () => machineOf(1))
      const made: string[] = []
      for (const [index, years] of [0, ...offsets, 0].entries()) {
        at = START + years * 365 * DAY + index * 3_600_000
        await journal.record(noteOf({ summary: `move ${index}` }))
        const job = await fixture.backUp()
        made.unshift(job?.backup_id ?? '')
        at += 60_000
        const seen = clock().toISOString()
        fixture.machines.see(macOf(1), { at: seen, ip: '192.0.2.9' })
        assert.is((await fixture.machines.find(macOf(1)))?.last_seen_at, seen)
        await fixture.machines.update(
          macOf(1),
          (before) => before && { ...before, labels: [`l${index}`] },
        )
        assert.is((await fixture.machines.find(macOf(1)))?.last_seen_at, seen)
        const kept = (await fixture.backups.list()).map(({ backup_id }) => backup_id)
        assert.equal(kept, made.slice(0, 2))
        await journal.prune()
        const events = await journal.list({ limit: 500 })
        const moved = events.filter(({ summary }) => /^move \d/.test(summary)).length
        assert.is(moved, index + 1)
      }
    }),
    { numRuns: 8 },
  )
})

test.run()
