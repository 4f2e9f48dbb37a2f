/** The database of a deployed server of the earlier line, taken over by ours. */
import { mkdir, readdir } from 'node:fs/promises'
import { DatabaseSync } from 'node:sqlite'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { createSystemAccount, hashOf } from '#test/support/system/system-account.ts'

const test = suite('the state of a deployed server')

/** The table as the deployed server makes it. */
const TABLE = `CREATE TABLE machines (
  mac TEXT PRIMARY KEY, image TEXT, provisioning_mode TEXT NOT NULL DEFAULT 'none', hostname TEXT,
  cijoe_workflow_ref TEXT, last_known_good TEXT, discovered_at TEXT, last_seen_at TEXT,
  last_seen_ip TEXT, boot_policy TEXT NOT NULL DEFAULT 'local', last_flashed_at TEXT,
  last_workflow_run_at TEXT, last_workflow_status TEXT, last_workflow_output_path TEXT,
  created_at TEXT NOT NULL, updated_at TEXT NOT NULL)`
const AT = '2026-05-08T10:00:00.123456+00:00'

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
    AT,
    AT,
    '192.0.2.7',
    AT,
    AT,
  )
  insert.run('aa:bb:cc:dd:ee:02', null, 'tui', 'none', null, 'no JSON', null, null, null, AT, AT)
  insert.run('nonsense', null, 'tui', 'none', null, null, null, null, null, AT, AT)
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
