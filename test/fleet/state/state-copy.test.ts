import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFile, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createStateFolder, faultOf, machineOf, macOf } from '#test/support/server/state.ts'

const test = suite('state.db on its own')

/** How many machines a copy of the one file holds. */
async function countInCopy(path: string): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-copy-'))
  try {
    await copyFile(path, join(folder, 'state.db'))
    using copy = new DatabaseSync(join(folder, 'state.db'), { readOnly: true })
    return Number(copy.prepare('SELECT count(*) AS n FROM machines').get()?.['n'])
  } finally {
    await rm(folder, { recursive: true })
  }
}

test('a copy of it alone is whole once the server was quiet for a moment', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  for (let n = 1; n <= 40; n += 1) await state.machines.update(macOf(n), () => machineOf(n))
  assert.is(await countInCopy(folder.path), 0)
  const until = performance.now() + 30_000
  while ((await countInCopy(folder.path)) < 40 && performance.now() < until) await sleep(200)
  assert.is(await countInCopy(folder.path), 40)
})

test('one without tables, like a copy of an earlier release, is put aside with an event', async () => {
  await using folder = await createStateFolder()
  {
    using bare = new DatabaseSync(folder.path)
    bare.exec('PRAGMA journal_mode = WAL')
  }
  assert.is((await stat(folder.path)).size, 4096)
  await using state = await folder.open()
  const [event, ...more] = await state.journal.list({ limit: 5 })
  assert.is(event?.kind, 'system.schema.reset')
  assert.match(event?.summary ?? '', /^state\.db had no tables, .*state\.db-wal.*put aside as/)
  assert.equal(more, [])
  assert.equal(state.database.reset?.from_version, 'pre-versioning')
  assert.ok((await readdir(folder.dir)).includes(state.database.reset?.archived_at ?? '-'))
})

test('what was written ahead of a file that was moved away is kept, and read by no other', async () => {
  await using folder = await createStateFolder()
  const ahead = join(folder.dir, 'ahead')
  {
    await using state = await folder.open()
    await state.machines.update(macOf(1), () => machineOf(1))
    await copyFile(`${folder.path}-wal`, ahead)
  }
  await rm(folder.path)
  await rename(ahead, `${folder.path}-wal`)
  await using state = await folder.open()
  assert.is(await state.machines.count(), 0)
  const kept = (await readdir(folder.dir)).filter((name) => name.startsWith('state.db-wal.lost.'))
  assert.is(kept.length, 1)
})

test('while another program has it open it is not replaced, and goes on', async () => {
  await using folder = await createStateFolder()
  await using state = await folder.open()
  await state.machines.update(macOf(1), () => machineOf(1))
  const other = join(folder.dir, 'other.db')
  await state.database.copyTo(other)
  const script = `const { DatabaseSync } = require('node:sqlite')
    const file = new DatabaseSync(process.argv[1])
    file.prepare('SELECT count(*) FROM machines').get()
    console.log('open')
    setTimeout(() => {}, 60000)`
  const program = spawn(process.execPath, ['-e', script, folder.path], { stdio: 'pipe' })
  try {
    await once(program.stdout, 'data')
    const fault = await faultOf(state.database.replaceWith(other))
    assert.is(fault.code, 'busy')
    assert.match(
      fault.message,
      new RegExp(`^process ${program.pid} \\(.*\\) has .*state\\.db open$`),
    )
    await state.machines.update(macOf(2), () => machineOf(2))
    assert.is(await state.machines.count(), 2)
  } finally {
    program.kill()
    await once(program, 'close')
  }
  await state.database.replaceWith(other)
  assert.is(await state.machines.count(), 1)
})

test('a damaged one is replaced by a database that is whole, and stays as it was otherwise', async () => {
  await using folder = await createStateFolder()
  const other = join(folder.dir, 'other.db')
  {
    await using state = await folder.open()
    await state.machines.update(macOf(1), () => machineOf(1))
    await state.database.copyTo(other)
  }
  const damaged = Buffer.alloc(8192, 'no database at all')
  await writeFile(folder.path, damaged)
  await writeFile(`${folder.path}-wal`, 'of the damaged one')
  assert.match((await faultOf(folder.open())).message, /damaged or not a database/)
  {
    await using state = await folder.open({ replacesDamaged: true })
    assert.ok(state.database.isStandIn())
    const broken = join(folder.dir, 'broken.db')
    await writeFile(broken, damaged)
    await faultOf(state.database.replaceWith(broken))
  }
  assert.equal(await readFile(folder.path), damaged)
  assert.equal(
    (await readdir(folder.dir)).filter((name) => name.includes('stand-in')),
    [],
  )
  {
    await using state = await folder.open({ replacesDamaged: true })
    const archive = await state.database.replaceWith(other)
    assert.match(archive, /^state\.db\.damaged\./)
    assert.not(state.database.isStandIn())
    assert.is(await state.machines.count(), 1)
    assert.equal(await readFile(join(folder.dir, archive)), damaged)
  }
  await using state = await folder.open()
  assert.is(await state.machines.count(), 1)
})

test.run()
