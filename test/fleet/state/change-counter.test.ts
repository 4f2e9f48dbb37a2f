import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideStateDoubt } from '#fleet/state/rules/change-count.ts'
import { openChangeCounter } from '#fleet/state/commits.ts'
import { openSqlite } from '#fleet/state/sqlite.ts'
import {
  createStateFolder,
  machineOf,
  macOf,
  type StateFolder,
} from '#test/support/server/state.ts'

const test = suite('change counter')

const countFile = ({ dir }: StateFolder) => join(dir, 'changes.json')
const readCountFile = (folder: StateFolder) => JSON.parse(readFileSync(countFile(folder), 'utf8'))

/** Changes a machine in a life of its own, and says what was doubted at its start. */
async function live(folder: StateFolder, label = 'x') {
  await using state = await folder.open()
  const { doubt } = state.database
  await state.machines.update(macOf(1), () => machineOf(1, { labels: [label] }))
  return doubt
}

test('a state that nobody has touched is never doubted, and each change counts', async () => {
  await using folder = await createStateFolder()
  assert.is(await live(folder), null)
  const first = readCountFile(folder)
  assert.is(await live(folder, 'y'), null)
  const second = readCountFile(folder)
  assert.is(second.id, first.id)
  assert.ok(second.count > first.count, `${first.count}, then ${second.count}`)
})

test('a copy that is older than the file beside it is doubted, until it is trusted', async () => {
  await using folder = await createStateFolder()
  await live(folder)
  copyFileSync(folder.path, `${folder.path}.copy`)
  await live(folder, 'y')
  copyFileSync(`${folder.path}.copy`, folder.path)
  {
    await using state = await folder.open()
    assert.is(state.database.doubt, 'older')
    await state.database.write(state.database.trust)
  }
  assert.is(await live(folder), null)
})

test('without the file beside it, or with one that cannot be read, it is doubted', async () => {
  await using folder = await createStateFolder()
  await live(folder)
  rmSync(countFile(folder))
  {
    await using state = await folder.open()
    assert.is(state.database.doubt, 'missing')
  }
  writeFileSync(countFile(folder), '{"id":')
  await using state = await folder.open()
  assert.is(state.database.doubt, 'missing')
})

test('the database of another state directory is doubted', async () => {
  await using folder = await createStateFolder()
  await using other = await createStateFolder()
  await live(folder)
  for (let n = 0; n < 5; n += 1) await live(other, `${n}`)
  copyFileSync(other.path, folder.path)
  await using state = await folder.open()
  assert.is(state.database.doubt, 'foreign')
})

test('a change that comes while the file is being written is in it in the end', async () => {
  await using folder = await createStateFolder()
  using file = openSqlite(folder.path)
  file.execute('CREATE TABLE change_count (id TEXT PRIMARY KEY, count INTEGER NOT NULL)')
  let isAwaited = false
  const change = () => {
    isAwaited = false
    counter.count()
    counter.finish(file)
  }
  const counter = await openChangeCounter(file, {
    current: () => file,
    adopt: () => isAwaited && change(),
    isOwner: true,
  })
  change()
  isAwaited = true
  await counter.flush()
  await counter.flush()
  assert.equal(readCountFile(folder), { ...file.get('SELECT id, count FROM change_count') })
})

test('a command beside the server that is the first to change something leaves no doubt', async () => {
  await using folder = await createStateFolder()
  {
    await using _server = await folder.open()
    await using visitor = await folder.open({ visit: true })
    assert.is(visitor.database.isOwner, false)
    await visitor.machines.update(macOf(1), () => machineOf(1))
  }
  await using state = await folder.open()
  assert.is(state.database.doubt, null)
})

test('a kill leaves a file that is behind, which is no reason to doubt', async () => {
  await using folder = await createStateFolder()
  await live(folder)
  const early = readFileSync(countFile(folder))
  await live(folder, 'y')
  writeFileSync(countFile(folder), early)
  assert.is(await live(folder), null)
})

test('an upgrade is not doubted; the file of the release before it, put back later, is', async () => {
  await using folder = await createStateFolder()
  await live(folder)
  copyFileSync(folder.path, `${folder.path}.copy`)
  for (const release of ['2.0.0', '2.1.0']) {
    await using state = await folder.open({ release })
    assert.is(state.database.doubt, null)
    await state.machines.update(macOf(1), () => machineOf(1, { labels: [release] }))
  }
  copyFileSync(`${folder.path}.copy`, folder.path)
  await using state = await folder.open({ release: '2.1.0' })
  assert.is(state.database.doubt, 'older')
})

test('a database that did not count yet is taken as it is, and only where nothing was counted', () => {
  const beside = { id: 'a', count: 3 }
  assert.is(decideStateDoubt(null, null), null)
  assert.is(decideStateDoubt(null, { id: 'a', count: 0 }), null)
  assert.is(decideStateDoubt(null, beside), 'older')
  assert.is(decideStateDoubt(beside, beside), null)
  assert.is(decideStateDoubt({ id: 'a', count: 4 }, beside), null)
})

test('a command beside the server counts, and leaves the file to the server', async () => {
  await using folder = await createStateFolder()
  await live(folder)
  {
    await using _server = await folder.open()
    const before = readCountFile(folder)
    {
      await using visitor = await folder.open({ visit: true })
      assert.is(visitor.database.doubt, null)
      await visitor.machines.update(macOf(2), () => machineOf(2))
    }
    assert.equal(readCountFile(folder), before)
  }
  assert.ok(existsSync(countFile(folder)))
  assert.is(await live(folder), null)
})

test.run()
