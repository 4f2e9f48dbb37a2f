/** Commands beside servers that share a database: each works, or is refused with a sentence that names the way, and nothing changes. */
import { readdir } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { askAs, startServer, until } from '#test/support/cluster/servers.ts'
import { macOf } from '#test/support/server/state.ts'

const test = suite('commands beside servers that share a database')
const postgres = lendDatabases(test)

const RUNS = /only the one that leads changes it[\s\S]*on the pages or by the API of any of them/
const SERVED = /already serves[\s\S]*Stop the other server/

test('a backup and an export are made; what would change something is refused, on every server', async () => {
  const url = postgres.urlOf(await postgres.create())
  await using first = await startServer(url)
  await first.leads()
  const ask = await askAs(first)
  const mac = macOf(1)
  assert.is(
    (await ask(`/machines/${mac}`, { method: 'PUT', body: '{"labels":["kept"]}' })).status,
    200,
  )
  await using second = await startServer(url)
  await second.standsBy()

  for (const server of [first, second]) {
    const { home } = server
    const run = (...argv: string[]) => home.run(argv, { FLASHER_DATABASE_URL: url })
    await until(async () => {
      const made = await run('export', home.at('bundle'))
      return made.stdout.includes(': 1 machines')
    }, 60_000)
    const backup = await run('backup')
    assert.is(backup.code, 0, backup.stderr)
    assert.match(backup.stdout, /Backup \S+[\s\S]*not in the events/)
    assert.is((await readdir(home.at('state/backups'))).length, 1)

    const refusals = [
      [RUNS, 'import', home.at('bundle')],
      [RUNS, 'people', 'add', 'ada', 'operate', '--generate'],
      [SERVED, 'restore', '2026-11-27T00-00-00Z'],
      [SERVED, 'database', 'import'],
      [SERVED, 'database', 'detach'],
      [SERVED, 'database', 'accept-older'],
    ] as const
    for (const [words, ...argv] of refusals) {
      const { code, stderr } = await run(...argv)
      assert.is.not(code, 0, argv.join(' '))
      assert.match(stderr, words, argv.join(' ') + stderr)
    }
  }
  const page = await (await ask('/ui/backups')).text()
  const [made = ''] = await readdir(first.home.at('state/backups'))
  assert.match(page, made, 'the server lists what the command made')
  assert.is((await ask(`/machines/${mac}`)).status, 200)
})

test.run()
