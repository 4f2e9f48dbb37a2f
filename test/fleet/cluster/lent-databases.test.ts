/** The slot of the test runner: test files get databases on one PostgreSQL, and what they leave behind is named. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtempDisposable, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { askForPostgres, openSlot, type Slot } from '#test/support/runner/slots.ts'
import { opened } from '#test/support/opened.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('lent databases')
const URLS = ['../../support/cluster/postgres.ts', 'uvu'].map((name) => import.meta.resolve(name))
const slot = opened(test, async (stack) => {
  const it = await openSlot()
  stack.defer(it.close)
  return it
})
const lend = ({ environment }: Slot) => askForPostgres(environment.FLASHER_TEST_SLOT)

/** Runs a test file with this body in the slot; what it printed. */
async function runFile(body: string): Promise<string> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-lent-'))
  const file = join(folder.path, 'x.test.ts')
  const text = `import { lendDatabases } from '${URLS[0]}'
    import { suite } from '${URLS[1]}'
    const test = suite('x')
    const postgres = lendDatabases(test)
    test('x', async () => { ${body} })
    test.run()`
  await writeFile(file, text)
  const env = { ...process.env, ...slot().environment }
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], { env, encoding: 'utf8' })
  assert.is(status, 0, `${stdout}${stderr}`)
  return stdout
}

const NAME = /database (\S+) of (\S+)/
const SAY = "console.log('database', await postgres.create(), 'of', postgres.dir)"

test('files get databases of their own on one server, and leave none behind', async () => {
  const [, one, dir] = NAME.exec(await runFile(SAY)) ?? []
  assert.is(await slot().check(), '')
  const [, other, again] = NAME.exec(await runFile(SAY)) ?? []
  assert.is(await slot().check(), '')
  assert.ok(one !== undefined && dir !== undefined)
  assert.is(again, dir)
  assert.is.not(other, one)
})

test('what a file leaves behind is named, and gone for the next one', async () => {
  await runFile(`await postgres.query('postgres', 'CREATE DATABASE forgotten')
    await postgres.query('postgres', 'CREATE ROLE nobody')`)
  assert.is(await slot().check(), 'It left behind: database forgotten, role nobody')
  assert.is(await slot().check(), '')
})

/** The file with its process, which PostgreSQL removes at its end. */
const pidFileOf = (dir: string) => join(dir, 'data/postmaster.pid')
const waitForEnd = (dir: string) => waitUntil(async () => !existsSync(pidFileOf(dir)), String)

test('a server that a file ended is named, and the next file gets another one', async () => {
  const { dir } = await lend(slot())
  process.kill(Number.parseInt(readFileSync(pidFileOf(dir), 'utf8')), 'SIGQUIT')
  await waitForEnd(dir)
  assert.is(await slot().check(), 'It left behind: a PostgreSQL that has ended')
  assert.is.not((await lend(slot())).dir, dir)
})

test('the server ends with its slot, whatever ends that', async () => {
  for (const signal of ['SIGTERM', 'SIGKILL', null] as const) {
    const own = await openSlot()
    const { dir } = await lend(own)
    assert.ok(existsSync(pidFileOf(dir)))
    if (signal !== null) own.child.kill(signal)
    await own.close()
    await waitForEnd(dir)
    if (signal === 'SIGKILL') await rm(dir, { recursive: true })
  }
})

test.run()
