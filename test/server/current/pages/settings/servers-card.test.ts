import { fileURLToPath } from 'node:url'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { opened } from '#test/support/opened.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { startFlasher } from '#test/support/terminal/flasher.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('the card of servers')
const postgres = opened(test, () => startPostgres())
const PASSWORD = 'a password of the tests'
const PROGRAM = fileURLToPath(
  new URL('../../../../../runtime/bin/flasher-web.mjs', import.meta.url),
)

test('the settings page and the metrics say who leads, how far each one is, and what differs', async () => {
  const name = await postgres().create()
  const url = postgres().urlOf(name)
  await using first = await createServerHome()
  await using second = await createServerHome()
  const env = { FLASHER_ADMIN_PASSWORD: PASSWORD, FLASHER_DATABASE_URL: url }
  await using leads = await first.start([], {
    ...env,
    FLASHER_PXE_TOKENS: 'require',
    FLASHER_SERVER_PUBLIC_URL: 'http://127.0.0.1:1',
  })
  const started = startFlasher([], {
    program: PROGRAM,
    env: { ...second.env, ...env, FLASHER_SERVER_PORT: String(await findPort()) },
  })
  try {
    await started.saw('standing by')
    const { cookie } = await login(leads.url, PASSWORD)
    const read = async (path: string) =>
      (await fetch(`${leads.url}${path}`, { headers: { cookie } })).text()
    const readPage = async () => (await read('/ui/settings')).replaceAll(/\s+/g, ' ')
    await waitUntil(
      async () => (await readPage()).includes('2 servers'),
      () => 'both servers are listed',
    )
    const page = await readPage()
    // Both have this host's name, so either may be the first.
    assert.match(page, /pxe\.tokens<\/code>.*(?:: require<.*: off<|: off<.*: require<)/)
    assert.not.match(page, /<code>server\.public_url<\/code><\/td>/)
    assert.match(page, 'synchronous_standby_names is empty')
    assert.match(page, 'database.key is not set')
    assert.match(page, `${first.at('state/backups')}`)
    const metrics = await read('/metrics')
    assert.match(metrics, /^flasher_server_behind_changes\{server="[^"]+"\} \d+$/m)
    // Both run on this host and have its name: Prometheus refuses a series that is there twice.
    assert.is(metrics.match(/^flasher_server_silent_seconds\{/gm)?.length, 1)
    assert.match(metrics, /^flasher_leader_since_seconds \d{10}/m)
    const status = await second.run(['database', 'status'], env)
    assert.match(status.stdout, /^Differs +pxe\.tokens: (?:require .*, off|off .*, require) /m)
    assert.is(status.stdout.match(/^Server /gm)?.length, 2)
    // When the database is back, whoever asks first leads: only the one that is looked at is left.
    started.child.kill('SIGTERM')
    await started.ended
    // What it said last is not shown as if it were so now: another server may lead by then.
    await postgres().stop()
    let shown = ''
    await waitUntil(
      async () => (shown = await readPage()).includes('Not available at the moment'),
      () => shown,
    )
    assert.match(shown, 'The socket of the database is not there')
    assert.not.match(await read('/metrics'), 'flasher_server_behind_changes{')
    await postgres().start()
    await waitUntil(
      async () => (await readPage()).includes('2 servers'),
      () => 'the card shows them again',
    )
  } finally {
    started.child.kill('SIGTERM')
    await started.ended
  }
})

test.run()
