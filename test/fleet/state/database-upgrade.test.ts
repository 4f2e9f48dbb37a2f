import {
  chownSync,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SCHEMA } from '#fleet/state/schema.ts'
import {
  createStateFolder,
  faultOf,
  machineOf,
  macOf,
  makeToken,
  noteOf,
  AT,
} from '#test/support/server/state.ts'

const test = suite('database upgrade')
const NOW = () => new Date('2026-11-21T06:55:53.193Z')
type Folder = Awaited<ReturnType<typeof createStateFolder>>

const archivesIn = (dir: string) => readdirSync(dir).filter((name) => name.endsWith('.bak'))
const edit = (path: string, sql: string) => {
  const file = new DatabaseSync(path)
  file.exec(sql)
  file.close()
}

/** A fleet of three, as release 1.2.3 leaves it. */
async function fill(folder: Folder) {
  await using state = await folder.open()
  for (const n of [1, 2, 3]) {
    const machine = machineOf(n, {
      boot_mode: 'flasher-flash-once',
      bty_image_ref: 'a'.repeat(64),
      labels: [`rack-${n}`],
      target_disk_serial: `S${n}`,
      locked: n === 3,
    })
    await state.machines.update(macOf(n), () => machine)
  }
  state.machines.see(macOf(2), { at: '2026-11-21T06:00:00.000Z', ip: '192.0.2.2' })
  await state.machines.saveHardware(macOf(1), '{"id":"box"}', AT)
  await state.store.save({ 'backup.cadence': 'weekly' })
  await state.journal.record(noteOf())
  const { token } = await makeToken(state.tokens, {
    name: 'ci',
    scopes: ['flash'],
    expires_at: null,
  })
  const person = await state.people.add({ name: 'anna', role: 'operate', labels: null }, 'a hash')
  assert.ok(person.ok)
  return { token, person: person.value, machines: await state.machines.list() }
}

for (const release of ['1.2.4', '2.0.0-rc.1', '0.9.0']) {
  test(`to ${release}: put aside, and the fleet, hardware, settings and tokens carried over`, async () => {
    await using folder = await createStateFolder()
    const before = await fill(folder)
    await using state = await folder.open({ release, now: NOW })
    const archive = 'state.db.1.2.3.20261121T065553Z.bak'
    const reset = { from_version: '1.2.3', to_version: release, archived_at: archive }
    assert.equal(state.database.reset, reset)
    assert.equal(archivesIn(folder.dir), [archive])
    assert.equal(await state.machines.list(), before.machines)
    assert.is((await state.machines.findHardware(macOf(1)))?.json, '{"id":"box"}')
    assert.equal(state.store.list(), { 'backup.cadence': 'weekly' })
    assert.is(state.tokens.find(before.token)?.name, 'ci')
    assert.equal(state.people.passwordOf(before.person.id), 'a hash')
    assert.equal(state.people.list(), [before.person])
    const events = await state.journal.list({ limit: 10 })
    assert.is(events[1]?.kind, 'machine.upserted', 'the events come along')
    assert.equal(
      events.slice(0, 1).map(({ kind, actor, subject_kind, details }) => ({
        kind,
        actor,
        subject_kind,
        details,
      })),
      [{ kind: 'system.schema.reset', actor: 'system', subject_kind: 'system', details: reset }],
    )
    assert.match(events[0]?.summary ?? '', /3 machines.* and events, .* the people were kept/)
    assert.is(await state.journal.countAlarms(), 1)
    assert.equal(
      readdirSync(folder.dir).filter((name) => name.includes('.new')),
      [],
    )
  })
}

test('the same release opens it as it is', async () => {
  await using folder = await createStateFolder()
  await fill(folder)
  await using state = await folder.open()
  assert.is(state.database.reset, null)
  assert.equal(archivesIn(folder.dir), [])
  assert.is((await state.journal.list({ limit: 10 })).length, 1)
})

test('the archive opens with the release that wrote it, with its events', async () => {
  await using folder = await createStateFolder()
  await fill(folder)
  {
    await using state = await folder.open({ release: '9.9.9', now: NOW })
    await state.machines.remove(macOf(1))
  }
  const path = join(folder.dir, archivesIn(folder.dir)[0] ?? '')
  await using old = await folder.open({ path })
  assert.is(await old.machines.count(), 3)
  assert.is((await old.journal.list({ limit: 10 }))[0]?.kind, 'machine.upserted')
})

test('two upgrades in one second do not overwrite each other', async () => {
  await using folder = await createStateFolder()
  await fill(folder)
  for (const release of ['2.0.0', '1.2.3', '2.0.0']) {
    await using state = await folder.open({ release, now: NOW })
    assert.is(await state.machines.count(), 3)
  }
  assert.equal(archivesIn(folder.dir).toSorted(), [
    'state.db.1.2.3.20261121T065553Z.1.bak',
    'state.db.1.2.3.20261121T065553Z.bak',
    'state.db.2.0.0.20261121T065553Z.bak',
  ])
})

test('only the newest archives stay; what is not ours to remove stays too', async () => {
  await using folder = await createStateFolder()
  await fill(folder)
  const foreign = ['state.db.bak', 'notes.bak', 'other.db.1.2.3.20200101T000000Z.bak']
  for (const name of foreign) writeFileSync(join(folder.dir, name), 'mine')
  for (let n = 1; n <= 6; n += 1) {
    const now = () => new Date(Date.UTC(2026, 0, n))
    await using state = await folder.open({ release: `2.${n}.0`, keepArchives: 3, now })
    assert.is(await state.machines.count(), 3)
  }
  assert.equal(
    archivesIn(folder.dir).toSorted(),
    [
      ...foreign,
      'state.db.2.3.0.20260104T000000Z.bak',
      'state.db.2.4.0.20260105T000000Z.bak',
      'state.db.2.5.0.20260106T000000Z.bak',
    ].toSorted(),
  )
})

test('a file without a marker is put aside, and nothing of it taken over', async () => {
  await using folder = await createStateFolder()
  edit(
    folder.path,
    `CREATE TABLE machines (mac TEXT PRIMARY KEY); INSERT INTO machines VALUES ('x')`,
  )
  await using state = await folder.open({ now: NOW })
  const archive = 'state.db.pre-versioning.20261121T065553Z.bak'
  assert.equal(archivesIn(folder.dir), [archive])
  assert.is(await state.machines.count(), 0)
  const [event] = await state.journal.list({ limit: 1 })
  assert.equal(event?.details, {
    from_version: 'pre-versioning',
    to_version: '1.2.3',
    archived_at: archive,
  })
})

test('the deployed ancestor is named by its own version, made safe for a file name', async () => {
  await using folder = await createStateFolder()
  edit(
    folder.path,
    `CREATE TABLE bty_version (version TEXT PRIMARY KEY);
     INSERT INTO bty_version VALUES ('../0.66.1 dev/x')`,
  )
  await using state = await folder.open({ now: NOW })
  assert.equal(archivesIn(folder.dir), ['state.db..._0.66.1_dev_x.20261121T065553Z.bak'])
  assert.is(state.database.reset?.from_version, '../0.66.1 dev/x')
})

test('tables of a newer shape are put aside only', async () => {
  await using folder = await createStateFolder()
  await fill(folder)
  edit(folder.path, `UPDATE flasher_state SET release = '9.0.0', "schema" = ${SCHEMA + 1}`)
  await using state = await folder.open({ now: NOW })
  assert.is(await state.machines.count(), 0)
  assert.is(archivesIn(folder.dir).length, 1)
})

test('a file of the other line is refused and not touched', async () => {
  await using folder = await createStateFolder()
  await fill(folder)
  const before = readFileSync(folder.path)
  const fault = await faultOf(folder.open({ line: 'earlier', release: '9.0.0' }))
  assert.is(fault.code, 'conflict')
  assert.match(fault.message, `${folder.path} belongs to the current release line (1.2.3)`)
  assert.match(fault.hint ?? '', 'state directory')
  assert.equal(readFileSync(folder.path), before)
  assert.equal(archivesIn(folder.dir), [])
})

test('what a crash in the middle of an upgrade left is cleared away', async () => {
  await using folder = await createStateFolder()
  await fill(folder)
  writeFileSync(`${folder.path}.new`, 'half a database')
  writeFileSync(`${folder.path}.new-journal`, 'and its journal')
  await using state = await folder.open({ release: '2.0.0' })
  assert.is(await state.machines.count(), 3)
  assert.not(existsSync(`${folder.path}.new`))
  assert.not(existsSync(`${folder.path}.new-journal`))
})

test('what was not folded into the file before a kill is carried over too', async () => {
  await using folder = await createStateFolder()
  await fill(folder)
  // A connection that is not closed before the files are copied: as a kill leaves them.
  const writer = new DatabaseSync(folder.path)
  writer.exec(`PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
    INSERT INTO settings (name, value, updated_at) VALUES ('in.log', '1', '')`)
  const killed = join(folder.dir, 'killed.db')
  for (const tail of ['', '-wal'])
    writeFileSync(`${killed}${tail}`, readFileSync(`${folder.path}${tail}`))
  writer.close()
  await using state = await folder.open({ path: killed, release: '2.0.0' })
  assert.is(state.store.find('in.log'), '1')
  assert.is(await state.machines.count(), 3)
})

const DAMAGES: readonly (readonly [string, (path: string) => void])[] = [
  ['text', (path) => writeFileSync(path, 'these are my notes, not a database\n'.repeat(200))],
  ['cut in half', (path) => truncateSync(path, Math.floor(statSync(path).size / 8192) * 4096)],
  [
    'overwritten in the middle',
    (path) => {
      const bytes = readFileSync(path)
      bytes.fill(0x5a, 4096, 12_288)
      writeFileSync(path, bytes)
    },
  ],
]
for (const [name, damage] of DAMAGES) {
  test(`a damaged file is named with a hint, and left as it is: ${name}`, async () => {
    await using folder = await createStateFolder()
    await fill(folder)
    damage(folder.path)
    const before = readFileSync(folder.path)
    for (const release of ['1.2.3', '2.0.0']) {
      const fault = await faultOf(folder.open({ release }))
      assert.is(fault.code, 'input-invalid')
      assert.match(fault.message, folder.path)
      assert.match(fault.hint ?? '', 'restore a backup')
    }
    assert.equal(readFileSync(folder.path), before)
    assert.equal(archivesIn(folder.dir), [])
  })
}

test('an empty file is a new database, and on record as one that lost what it held', async () => {
  await using folder = await createStateFolder()
  writeFileSync(folder.path, '')
  {
    await using state = await folder.open()
    assert.is(state.database.reset, null)
    assert.is(state.database.wasEmpty, true)
    assert.is(await state.machines.count(), 0)
    const [event] = await state.journal.list({ limit: 9 })
    assert.is(event?.kind, 'system.state.empty')
    assert.match(event?.summary ?? '', /state\.db was empty/)
    assert.is(await state.journal.countAlarms(), 1)
  }
  await using again = await folder.open()
  assert.is(again.database.wasEmpty, false)
  assert.is(await again.journal.countAlarms(), 1)
})

test('a file that root makes belongs to whom the folder belongs', async () => {
  if (process.getuid?.() !== 0) return
  await using folder = await createStateFolder()
  chownSync(folder.dir, 1234, 1234)
  for (const release of ['1.2.3', '2.0.0']) {
    await using state = await folder.open({ release })
    await state.store.save({ a: release })
    for (const name of readdirSync(folder.dir)) {
      assert.is(statSync(join(folder.dir, name)).uid, 1234, name)
    }
  }
})

test('a folder that is missing is named', async () => {
  await using folder = await createStateFolder()
  const path = join(folder.dir, 'nowhere', 'state.db')
  const fault = await faultOf(folder.open({ path }))
  assert.match(fault.message, path)
})

test.run()
