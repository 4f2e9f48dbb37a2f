/** `flasher-web restore` without an argument: the operator chooses, in a real terminal. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome } from '#test/support/server/flasher-web.ts'
import { EXITED, openTerminal, type TerminalOptions } from '#test/support/terminal/tmux.ts'

const test = suite('flasher-web restore')
const PROGRAM = fileURLToPath(new URL('../../runtime/bin/flasher-web.mjs', import.meta.url))

/** A backup of ours, one of another line made of it, and hardware alone as the ancestor made it. */
async function createFixture() {
  const home = await createServerHome()
  const folder = (id: string) => home.at(`state/backups/${id}`)
  const made = await home.run(['backup'])
  const id = /^Backup (\S+)$/m.exec(made.stdout)?.[1] ?? ''
  const strange = '2026-03-04T05-06-07Z'
  const bare = '2026-01-02T03-04-05Z'
  const manifest = await readFile(`${folder(id)}/manifest.json`, 'utf8')
  await mkdir(folder(strange))
  await writeFile(
    `${folder(strange)}/manifest.json`,
    manifest.replaceAll(id, strange).replace('"line": "current"', '"line": "earlier\\u001b[2J"'),
  )
  await mkdir(folder(bare))
  const inventory = await readFile(`${folder(id)}/inventory.json`, 'utf8')
  await writeFile(`${folder(bare)}/inventory.json`, inventory)
  return { home, id, strange, bare, open: (options?: TerminalOptions) => open(home.env, options) }
}

const open = (env: Readonly<Record<string, string>>, options: TerminalOptions = {}) =>
  openTerminal([process.execPath, PROGRAM, 'restore'], {
    columns: 100,
    ...options,
    env: { ...env, ...options.env },
  })

test('lists the newest first, says why one cannot be restored, and restores the chosen one', async () => {
  const fixture = await createFixture()
  await using _home = fixture.home
  await using terminal = await fixture.open()
  const screen = await terminal.waitFor('Esc leaves')
  const rows = screen.filter((line) => /\d{4}-\d\d-\d\dT/.test(line))
  assert.match(screen.join('\n'), /\? Restore which backup\?\n {2}Backup +Made {2}Machines +Size/)
  assert.equal(
    rows.map((row) => row.slice(0, 22)),
    [`❯ ${fixture.id}`, `- ${fixture.strange}`, `  ${fixture.bare}`],
  )
  assert.match(rows[0] ?? '', /Z +(now|\d+ (s|min) ago) +0 +[\d.]+ kB$/)
  assert.match(rows[1] ?? '', /d ago +0 +[\d.]+ kB +\(of the earlier\\x1b\[2J line\)$/)
  assert.match(rows[2] ?? '', /d ago +hardware only$/)
  await terminal.press('Down', 'Enter')
  await terminal.waitFor('That one cannot be chosen.')
  await terminal.press('Up', 'Enter')
  const after = (await terminal.waitFor(EXITED)).join('\n')
  assert.match(after, `✔ Restore which backup? ${fixture.id}`)
  assert.match(after.replaceAll('\n', ''), `Restored 0 machines from ${fixture.id}`)
  assert.match(after, `${EXITED}0`)
})

test('is left by Ctrl-C, Esc and Ctrl-D, and nothing has changed then', async () => {
  const fixture = await createFixture()
  await using home = fixture.home
  for (const key of ['C-c', 'Escape', 'C-d']) {
    await using terminal = await fixture.open({ env: { LANG: 'C' } })
    const screen = await terminal.waitFor('Esc: leave')
    assert.ok(screen.some((line) => line.startsWith(`> ${fixture.id}`)))
    await terminal.press(key)
    const after = (await terminal.waitFor(EXITED)).join('\n')
    assert.match(after, 'flasher-web: cancelled')
    assert.match(after, `${EXITED}1`)
  }
  assert.match((await home.run(['restore', fixture.id])).stdout, fixture.id)
})

test('takes the place of a database that is damaged', async () => {
  const fixture = await createFixture()
  await using home = fixture.home
  const damaged = Buffer.alloc(20_000, 'no database')
  await writeFile(home.at('state/state.db'), damaged)
  const bare = await home.run(['restore', fixture.bare])
  assert.match(bare.stderr, /holds hardware alone, and .*state\.db is damaged/)
  assert.equal(await readFile(home.at('state/state.db')), damaged)
  const restored = await home.run(['restore', fixture.id])
  const archive = /kept as (state\.db\.damaged\.\S+\.bak)/.exec(restored.stdout)?.[1] ?? ''
  assert.equal(await readFile(home.at(`state/${archive}`)), damaged)
  assert.is((await home.run(['backup'])).code, 0)
})

test('names the program that has the database open', async () => {
  const fixture = await createFixture()
  await using home = fixture.home
  using held = new DatabaseSync(home.at('state/state.db'))
  held.prepare('SELECT count(*) FROM machines').get()
  const refused = await home.run(['restore', fixture.id])
  assert.match(refused.stderr, `process ${process.pid} (`)
  assert.match(refused.stderr, /state\.db open.*\n.*End that program and try again/)
  held.close()
  assert.is((await home.run(['restore', fixture.id])).code, 0)
})

test('explains what to do where there is nothing to choose, or nobody to ask', async () => {
  await using home = await createServerHome()
  const alone = await home.run(['restore'])
  assert.equal([alone.code, alone.stdout], [2, ''])
  assert.match(alone.stderr, /^flasher-web: missing: ID\|FILE\n {2}On a terminal, .* lists/)
  const empty = await home.run(['restore', ''])
  assert.equal([empty.code, /ID\|FILE needs a value/.test(empty.stderr)], [2, true])
  await using dumb = await open(home.env, { env: { TERM: 'dumb' } })
  assert.match((await dumb.waitFor(EXITED)).join('\n'), /missing: ID\|FILE[^]*exit code 2/)
  await using terminal = await open(home.env)
  const screen = (await terminal.waitFor(EXITED)).join('\n')
  assert.match(screen, /there are no backups yet\n {2}"flasher-web backup" makes one/)
  assert.match(screen, `${EXITED}1`)
})
test.run()
