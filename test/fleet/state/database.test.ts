import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDatabase, type Database } from '#fleet/state/database.ts'
import { createStateFolder, failureOf, faultOf, RELEASE } from '#test/support/server/state.ts'

const test = suite('database')
const OURS = { release: RELEASE, line: 'current' }
const insert = (database: Database, name: string, value = '') =>
  database.write((sql) =>
    sql.run('INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)', name, value, ''),
  )
const namesIn = (database: Database) =>
  database.sql.all('SELECT name FROM settings ORDER BY name').map((row) => row['name'])

test('keeps what was written, in one private file once it is closed', async () => {
  await using folder = await createStateFolder()
  {
    await using database = await createDatabase({ path: folder.path, ...OURS })
    await insert(database, 'a')
    assert.is(database.reset, null)
  }
  assert.equal(readdirSync(folder.dir).toSorted(), ['state.db', 'state.db.lock'])
  assert.is(statSync(folder.path).mode & 0o777, 0o600)
  await using database = await createDatabase({ path: folder.path, ...OURS })
  assert.equal(namesIn(database), ['a'])
})

test('a state directory without a database is a first start, and nothing to report', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  assert.is(state.database.wasEmpty, false)
  assert.is(await state.journal.countAlarms(), 0)
})

test('a write that throws is undone alone; those of the same moment stand', async () => {
  await using folder = await createStateFolder()
  await using database = await createDatabase({ path: folder.path, ...OURS })
  const outcomes = await Promise.allSettled([
    insert(database, 'a'),
    database.write((sql) => {
      sql.run('INSERT INTO settings (name, value, updated_at) VALUES (?, ?, ?)', 'b', '', '')
      throw new Error('thought better of it')
    }),
    insert(database, 'a'),
    insert(database, 'c'),
  ])
  assert.equal(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'rejected', 'fulfilled'],
  )
  assert.equal(namesIn(database), ['a', 'c'])
})

test('the writes of one moment are on disk together, in their order', async () => {
  await using folder = await createStateFolder()
  await using database = await createDatabase({ path: folder.path, ...OURS })
  const done: number[] = []
  await Promise.all(
    Array.from({ length: 200 }, async (_, n) => {
      await insert(database, String(n).padStart(3, '0'))
      done.push(n)
    }),
  )
  assert.is(namesIn(database).length, 200)
  assert.equal(
    done,
    done.toSorted((a, b) => a - b),
  )
})

/** The files below a folder that this process has open. */
const listOpen = (folder: string): readonly string[] =>
  readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/self/fd/${fd}`)
      return target.startsWith(folder) ? [target] : []
    } catch {
      return []
    }
  })

test('who writes again as soon as a write is done, while it is closed, leaves no file open', async () => {
  await using folder = await createStateFolder()
  const database = await createDatabase({ path: folder.path, ...OURS })
  await insert(database, 'before')
  const writing = (async () => {
    for (let n = 0; ; n += 1) await insert(database, `late-${n}`)
  })()
  const closing = database[Symbol.asyncDispose]()
  await Promise.allSettled([writing, closing])
  assert.equal(listOpen(folder.dir), [])
})

test('what was asked for before the end is written at the end', async () => {
  await using folder = await createStateFolder()
  const database = await createDatabase({ path: folder.path, ...OURS })
  let isFlushed = false
  database.beforeClosing(async () => {
    await insert(database, 'late')
    isFlushed = true
  })
  const writing = insert(database, 'a')
  await database[Symbol.asyncDispose]()
  await writing
  assert.ok(isFlushed)
  await using again = await createDatabase({ path: folder.path, ...OURS })
  assert.equal(namesIn(again), ['a', 'late'])
})

test('a second server on the same file is refused, and told whose it is', async () => {
  await using folder = await createStateFolder()
  await using database = await createDatabase({ path: folder.path, ...OURS })
  const failure = await faultOf(createDatabase({ path: folder.path, ...OURS }))
  assert.is(failure.code, 'conflict')
  assert.match(failure.message, `process ${process.pid} already serves ${folder.path}`)
  await insert(database, 'a')
})

test('the lock of another process holds until that process is killed', async () => {
  await using folder = await createStateFolder()
  const holder = spawn(process.execPath, [
    '--input-type=module',
    '-e',
    `import { createDatabase } from ${JSON.stringify(join(import.meta.dirname, '../../../runtime/fleet/state/database.ts'))}
     const database = await createDatabase(${JSON.stringify({ path: folder.path, ...OURS })})
     console.log('open')
     setInterval(() => database, 1000)`,
  ])
  try {
    await once(holder.stdout, 'data')
    const failure = await failureOf(createDatabase({ path: folder.path, ...OURS }))
    assert.match(failure.message, `process ${holder.pid} already serves`)
  } finally {
    holder.kill('SIGKILL')
    await once(holder, 'exit')
  }
  await using database = await createDatabase({ path: folder.path, ...OURS })
  await insert(database, 'a')
})

test('a visitor works beside the server, and each sees what the other wrote', async () => {
  await using folder = await createStateFolder()
  await using server = await createDatabase({ path: folder.path, ...OURS })
  const before = server.epoch()
  {
    await using visitor = await createDatabase({ path: folder.path, ...OURS, visit: true })
    await insert(server, 'server')
    await insert(visitor, 'visitor')
    assert.equal(namesIn(visitor), ['server', 'visitor'])
  }
  assert.equal(namesIn(server), ['server', 'visitor'])
  assert.is.not(server.epoch(), before)
  const after = server.epoch()
  await insert(server, 'own')
  assert.is(server.epoch(), after)
})

test('a visitor does not upgrade a file that a server uses', async () => {
  await using folder = await createStateFolder()
  await using server = await createDatabase({ path: folder.path, ...OURS })
  const failure = await failureOf(
    createDatabase({ path: folder.path, ...OURS, release: '2.0.0', visit: true }),
  )
  assert.match(failure.message, 'written by release 1.2.3')
  await insert(server, 'a')
})

test('a copy is whole while writing goes on', async () => {
  await using folder = await createStateFolder()
  await using database = await createDatabase({ path: folder.path, ...OURS })
  await Promise.all(
    Array.from({ length: 300 }, (_, n) => insert(database, `before-${n}`, 'x'.repeat(9000))),
  )
  const copy = join(folder.dir, 'copy.db')
  let steps = 0
  const copying = database.copyTo(copy, { onProgress: () => (steps += 1) })
  for (let n = 0; n < 20; n += 1) await insert(database, `during-${n}`)
  await copying
  assert.ok(steps > 1)
  await using other = await createDatabase({ path: copy, ...OURS })
  const names = namesIn(other)
  assert.is(names.filter((name) => String(name).startsWith('before-')).length, 300)
})

test('a copy that is cancelled stops', async () => {
  await using folder = await createStateFolder()
  await using database = await createDatabase({ path: folder.path, ...OURS })
  await Promise.all(
    Array.from({ length: 300 }, (_, n) => insert(database, `${n}`, 'x'.repeat(9000))),
  )
  const failure = await failureOf(
    database.copyTo(join(folder.dir, 'copy.db'), {
      signal: AbortSignal.abort(new Error('enough')),
    }),
  )
  assert.is(failure.message, 'enough')
  await insert(database, 'still here')
})

test('another file takes the place of this one, which stays as .bak', async () => {
  await using folder = await createStateFolder()
  const other = join(folder.dir, 'other.db')
  {
    await using database = await createDatabase({ path: other, ...OURS })
    await insert(database, 'from the other')
  }
  {
    await using database = await createDatabase({ path: folder.path, ...OURS })
    await insert(database, 'mine')
    const before = database.epoch()
    const archive = await database.replaceWith(other)
    assert.equal(namesIn(database), ['from the other'])
    assert.is.not(database.epoch(), before)
    await insert(database, 'next')
    await using old = await createDatabase({ path: join(folder.dir, archive), ...OURS })
    assert.equal(namesIn(old), ['mine'])
  }
  await using again = await createDatabase({ path: folder.path, ...OURS })
  assert.equal(namesIn(again), ['from the other', 'next'])
})

test('writing goes on through a replacement; what cannot be used changes nothing', async () => {
  await using folder = await createStateFolder()
  const other = join(folder.dir, 'other.db')
  {
    await using database = await createDatabase({ path: other, ...OURS, line: 'earlier' })
    await insert(database, 'foreign')
  }
  await using database = await createDatabase({ path: folder.path, ...OURS })
  await insert(database, 'mine')
  const [replacing, ...writing] = [
    failureOf(database.replaceWith(other)),
    ...Array.from({ length: 50 }, (_, n) => insert(database, `w${n}`)),
  ]
  assert.match((await replacing).message, 'earlier release line')
  await Promise.all(writing)
  assert.is(namesIn(database).length, 51)
  assert.not(existsSync(join(folder.dir, 'state.db.new')))
  assert.equal(
    readdirSync(folder.dir).filter((name) => name.endsWith('.bak')),
    [],
  )
})

test.run()
