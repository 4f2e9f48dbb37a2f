/** /ui/settings: what the catalog left out is named, and nothing is said to be saved that is not. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listSettings } from '#kit/config/rules/setting.ts'
import { SETTINGS } from '#server/current/settings/rules/settings.ts'
import { startPostgres } from '#test/support/cluster/postgres.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { findPort } from '#test/support/http/ports.ts'
import { opened } from '#test/support/opened.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { until } from '#test/support/server/image-cache.ts'
import {
  fieldOf,
  openSettingsSite as open,
  PASSWORD,
  shownIn,
} from '#test/support/settings/settings-site.ts'
import { startFlasher } from '#test/support/terminal/flasher.ts'
import { waitUntil } from '#test/support/waiting.ts'

const run = promisify(execFile)
const test = suite('settings page')

const good = { name: 'good.img', src: 'https://h/good.img' }
const bad = (n: number) => ({ name: `bad-${n}.img`, src: 'nowhere' })

test('entries that were left out are named without being asked for, also after a restart', async () => {
  const entries = [good, ...Array.from({ length: 30 }, (_, n) => bad(n))]
  await using cache = await startHostileServer((_request, response) => {
    response.setHeader('etag', '"one"')
    response.end(JSON.stringify({ entries }))
  })
  await using site = await open({ FLASHER_WITHCACHE_URL: cache.origin })
  for (const start of ['the first start', 'a restart']) {
    await using server = await site.start()
    await until(async () => (await server.page()).includes('bad-0.img'))
    const page = await server.page()
    assert.match(page, /bad-19\.img: its source cannot be used/, start)
    assert.not.match(page, 'bad-20.img')
    assert.match(page, /and 10 more/)
  }
  assert.match(await site.home.text('state/catalog.toml'), /^name = "good\.img"$/m)
})

test('a public address with a path is said to be one without pages, at the start and here', async () => {
  await using site = await open()
  const warns = /has the path \/flasher: boot scripts and boot files are below it, pages are not/
  const start = async (url: string) => {
    await using server = await site.home.start([], {
      FLASHER_ADMIN_PASSWORD: PASSWORD,
      FLASHER_SERVER_PUBLIC_URL: url,
    })
    const { cookie } = await login(server.url, PASSWORD)
    const page = await fetch(`${server.url}/ui/settings`, { headers: { cookie } })
    const text = await page.text()
    server.child.kill('SIGTERM')
    const { stderr } = await server.ended
    return { log: stderr, page: text }
  }
  const below = await start('https://flash.example/flasher')
  assert.match(below.log, warns)
  assert.match(below.page, warns)
  const root = await start('https://flash.example')
  assert.not.match(root.log + root.page, /boot scripts and boot files are below/)
})

test('a form with a field that there is not is refused, and nothing of it is saved', async () => {
  await using site = await open()
  await using server = await site.start()
  const rows = [
    ['upstream', { netboot_rep: 'a/b' }],
    ['upstream', { netboot_repo: 'a/b', tag: 'v1.0.0' }],
    ['upstream', {}],
    ['backup', { backup_enabled: 'on', cadence: 'daily' }],
    ['backup', {}],
    ['config', { 'pxe.loop_limt': '9' }],
    ['config', { 'was:pxe.loop_limit': '9', value: '9' }],
    ['config/edit', { section: 'pxe', key: 'loop_limit', value: '9', more: '' }],
    ['config/edit', { section: 'pxe', key: 'loop_limit' }],
  ] as const
  for (const [form, fields] of rows) {
    const answer = await server.post(`/ui/settings/${form}`, fields)
    assert.is(answer.status, 422, `${form} ${JSON.stringify(fields)}`)
    assert.match(await answer.text(), /has no field|is missing|has nothing/)
  }
  const page = await server.page()
  assert.not.match(page, 'value="a/b"')
})

test('what a form shows and nobody changes stays what the file says', async () => {
  await using site = await open()
  const argv = ['--config', site.home.at('a.toml')]
  await site.home.write('a.toml', '[boot]\nrelease_repo = "a/b"\n')
  {
    await using server = await site.start(argv)
    const fields = { netboot_repo: 'a/b', netboot_tag: 'v2.0.0' }
    assert.is((await server.post('/ui/settings/upstream', fields)).status, 303)
  }
  await site.home.write('a.toml', '[boot]\nrelease_repo = "c/d"\n')
  await using server = await site.start(argv)
  const page = await server.page()
  assert.match(page, 'value="c/d"')
  assert.match(page, 'value="v2.0.0"')
})

test('a field follows from the kind of its setting', async () => {
  await using site = await open()
  await using server = await site.start()
  const page = await server.page()
  for (const [name, ...patterns] of [
    ['metrics.open', /type="checkbox" role="switch" value="true"/, /Default: Off/],
    ['log.level', /<select/, /<option value="info" selected>Information</],
    ['pxe.loop_limit', /type="number"[^>]*placeholder="5"[^>]*min="1" max="1000"/, /1 to 1000\./],
    ['pxe.max_flashes', /type="number"/, /0: no limit\./, /Default: No limit/],
    ['pxe.flash_silence', /placeholder="30 min"/, /Such as 30 s, 5 min/, /Default: 30 minutes/],
    ['tuning.max_upload_bytes', /placeholder="200 GiB"/, /Such as 500 MB or 10 GiB/],
    ['server.public_url', /type="url"/, /Such as https:\/\/flash\.example\.org/],
    ['display.timezone', /list="set-display\.timezone-list"/, /<option value="Europe\/Oslo">/],
    ['withcache.token', /type="password"[^>]*autocomplete="new-password"/],
    ['server.allowed_hosts', /<textarea/, /One per line/],
  ] as const) {
    const field = fieldOf(page, name)
    for (const pattern of patterns) assert.match(field, pattern, name)
    // The label names the field, and help and hint describe it.
    assert.match(field, `<label for="set-${name}">`)
    assert.match(field, `aria-describedby="set-${name}-help`)
  }
  assert.match(fieldOf(page, 'server.port'), /Locked: set by the environment variable/)
  assert.match(fieldOf(page, 'server.session_secret'), /Security setting: can only be changed/)
  assert.match(fieldOf(page, 'cache.port'), 'after a restart of flasher-cache')
})

test('the form saves what was changed, and leaves alone what somebody else changed meanwhile', async () => {
  await using site = await open()
  const argv = ['--config', site.home.at('a.toml')]
  await site.home.write('a.toml', '[pxe] # mine\nloop_limit = 7\n[metrics]\nopen = true\n')
  await using server = await site.start(argv)
  const shown = {
    'was:pxe.loop_limit': '7',
    'pxe.loop_limit': '7',
    'was:metrics.open': 'true',
    'metrics.open': 'true',
    'was:pxe.flash_silence': '',
    'pxe.flash_silence': '',
    'was:server.trusted_proxies': '',
    'server.trusted_proxies': '',
    'withcache.token': '',
  }
  const save = async (fields: Readonly<Record<string, string>>) => {
    const answer = await server.post('/ui/settings/config', { ...shown, ...fields })
    return answer.headers.get('location') ?? String(answer.status)
  }
  assert.is(await save({}), '/ui/settings?saved=unchanged')
  assert.is(
    await save({
      'metrics.open': 'false',
      'pxe.flash_silence': '5 min',
      'server.trusted_proxies': '10.0.0.0/8\r\n\r\n ::1 ',
      'withcache.token': ' hunter2 ',
    }),
    '/ui/settings?saved=config#server.trusted_proxies',
  )
  const text = await site.home.text('a.toml')
  assert.match(text, '[pxe] # mine\nloop_limit = 7\nflash_silence = "5m"\n')
  assert.match(text, '[metrics]\nopen = false\n')
  assert.match(text, /\[ ?"10\.0\.0\.0\/8", "::1" ?\]/)
  assert.match(text, 'token = " hunter2 "')
  assert.not.match(await server.page(), 'hunter2')
  // This page is older than the change above.
  assert.is(await save({ 'pxe.loop_limit': '8' }), '/ui/settings?saved=config#pxe.loop_limit')
  assert.match(await site.home.text('a.toml'), 'open = false')
  const stale = await save({ 'pxe.flash_silence': '9 min' })
  const page = await server.page(stale.replace('/ui/settings', '').split('#')[0])
  assert.match(fieldOf(page, 'pxe.flash_silence'), 'Changed in the meantime to: 5 min.')
  assert.match(fieldOf(page, 'pxe.flash_silence'), 'value="9 min"')
  // Nor is what an editor has written that the server has not read yet.
  const edited = await site.home.text('a.toml')
  await site.home.write('a.toml', edited.replace('loop_limit = 8', 'loop_limit = 11'))
  const unread = await save({ 'was:pxe.loop_limit': '8', 'pxe.loop_limit': '12' })
  assert.match(unread, /Changed\+in\+the\+meantime.*#pxe\.loop_limit$/)
  assert.match(await site.home.text('a.toml'), 'loop_limit = 11')
  // Blanks are no token, and do not remove the one that is there.
  assert.is(await save({ 'withcache.token': '  ' }), '/ui/settings?saved=unchanged')
  assert.match(await site.home.text('a.toml'), 'token = " hunter2 "')
  const reset = await save({ reset: 'pxe.loop_limit', 'pxe.loop_limit': '' })
  assert.is(reset, '/ui/settings?saved=config#pxe.loop_limit')
  assert.not.match(await site.home.text('a.toml'), 'loop_limit')
})

test('bad input is refused beside its field, and nothing that was typed is lost but secrets', async () => {
  await using site = await open()
  const argv = ['--config', site.home.at('a.toml')]
  await site.home.write('a.toml', '[pxe]\nloop_limit = 7\n')
  await using server = await site.start(argv)
  const key = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'B'.repeat(43)} name`
  const many = Array.from({ length: 60 }, () => key).join('\n')
  const answer = await server.post('/ui/settings/config', {
    'pxe.loop_limit': '0',
    'tuning.max_upload_bytes': 'much',
    'server.trusted_proxies': '10.0.0.0/8\n<b>',
    'releases.public_keys': many,
    'withcache.token': 'hunter2',
    'metrics.open': 'true',
  })
  const location = answer.headers.get('location') ?? ''
  assert.match(location, /#server\.trusted_proxies$/)
  const page = await server.page(location.replace('/ui/settings', '').split('#')[0])
  for (const [name, error, value] of [
    ['pxe.loop_limit', 'Must be a whole number from 1 to 1000, not 0.', 'value="0"'],
    [
      'tuning.max_upload_bytes',
      'Must be bytes, or a size like 200 GiB, not &quot;much&quot;.',
      'value="much"',
    ],
    [
      'server.trusted_proxies',
      'Must be a list of addresses and ranges like 10.0.0.0/8, not &quot;&lt;b&gt;&quot;.',
      '10.0.0.0/8\n&lt;b&gt;</textarea>',
    ],
  ] as const) {
    const field = fieldOf(page, name)
    assert.match(field, `<p class="error" id="set-${name}-error">${error}</p>`)
    assert.match(field, `aria-invalid="true"`)
    assert.match(field, `set-${name}-error"`)
    assert.match(field, value, name)
  }
  assert.match(fieldOf(page, 'releases.public_keys'), many)
  assert.match(fieldOf(page, 'metrics.open'), ' checked')
  assert.not.match(page + location, 'hunter2')
  assert.is(await site.home.text('a.toml'), '[pxe]\nloop_limit = 7\n')
})

test('what a read-only file sets is shown locked, with the file', async () => {
  if (process.geteuid?.() !== 0) return
  await using site = await open()
  await site.home.write('a.toml', '[pxe]\nflash_silence = "1h"\n[withcache]\ntoken = "hunter2"\n')
  const path = site.home.at('a.toml')
  await run('mount', ['--bind', path, path])
  try {
    await run('mount', ['-o', 'remount,ro,bind', path])
    await using server = await site.start(['--config', path])
    const page = await server.page()
    const field = fieldOf(page, 'pxe.flash_silence')
    assert.match(field, '<span class="value">1 hour</span>')
    assert.match(field, `Locked: set in <code>${path}</code>, which the server cannot write.`)
    assert.not.match(field, '<input')
    assert.match(fieldOf(page, 'withcache.token'), 'set, not shown')
    assert.match(fieldOf(page, 'pxe.loop_limit'), 'the server cannot write its configuration')
    // What the database keeps can still be saved.
    assert.not.match(page, 'Changes are written to')
    assert.match(fieldOf(page, 'boot.release_repo'), '<input')
    assert.not.match(page, 'hunter2')
    const answer = await server.post('/ui/settings/config', { 'pxe.flash_silence': '2h' })
    assert.match(answer.headers.get('location') ?? '', 'no+file+can+be+written')
  } finally {
    await run('umount', [path])
  }
})

test('a list of host names without the one in use is refused: nobody could mend it here', async () => {
  await using site = await open()
  await using server = await site.start()
  const post = async (list: string) => {
    const answer = await server.post('/ui/settings/config', { 'server.allowed_hosts': list })
    return answer.headers.get('location') ?? ''
  }
  assert.match(await post('a.example'), 'Add+127.0.0.1')
  assert.match(await post('a.example\n127.0.0.1'), 'saved=config')
  assert.match(await server.page(), 'a.example')
})

test('the public address stays while the list of host names does not have its name', async () => {
  await using site = await open()
  const url = 'http://127.0.0.1:1'
  await site.home.write(
    'a.toml',
    `[server]\npublic_url = "${url}"\nallowed_hosts = ["a.example"]\n`,
  )
  await using server = await site.start(['--config', site.home.at('a.toml')])
  const post = async (fields: Readonly<Record<string, string>>) => {
    const answer = await server.post('/ui/settings/config', fields)
    return answer.headers.get('location') ?? ''
  }
  const reset = { reset: 'server.public_url' }
  assert.match(await post(reset), /Add\+127\.0\.0\.1\+to\+the\+allowed.*#server\.public_url$/)
  assert.match(await site.home.text('a.toml'), url)
  assert.match(await post({ 'server.allowed_hosts': 'a.example\n127.0.0.1' }), 'saved=config')
  assert.match(await post(reset), 'saved=')
  assert.not.match(await site.home.text('a.toml'), url)
})

test('a backup schedule that is refused comes back with its error', async () => {
  await using site = await open()
  await using server = await site.start()
  const fields = { backup_enabled: 'on', backup_cadence: 'weekly', backup_retention_count: '0' }
  const location = await server.refused('/ui/settings/backup', fields)
  const page = await server.page(location)
  const row = fieldOf(page, 'backup.retention')
  assert.match(row, /id="set-backup\.retention-error">Must be a whole number from 1 to 10000/)
  assert.match(row, /name="backup\.retention"[^>]*value="0"/)
})

test('a search without a script shows what it finds, by name, key, variable or help', async () => {
  await using site = await open()
  await using server = await site.start()
  // All but the administrator password and its hash, which the account page changes.
  assert.is(shownIn(await server.page()).length, listSettings(SETTINGS).length - 2)
  for (const [query, names] of [
    ['time+zone', ['display.timezone']],
    ['pxe.loop_limit', ['pxe.loop_limit']],
    ['FLASHER_SERVER_PUBLIC_URL', ['server.public_url']],
    ['simultaneous', ['pxe.max_flashes']],
    ['zebra', []],
  ] as const) {
    assert.equal(shownIn(await server.page(`?q=${query}`)), [...names], query)
  }
  const evil = await server.page(`?q=${encodeURIComponent('"><script>alert(1)</script>')}`)
  assert.match(evil, 'value="&quot;&gt;&lt;script&gt;')
})

test('settings have names, sections of the specification are there, and none is empty', async () => {
  await using site = await open()
  await using server = await site.start()
  const page = await server.page()
  for (const id of ['identity', 'network', 'storage']) {
    assert.match(page, new RegExp(`<section class="card"\\s+id="${id}"`), id)
  }
  for (const id of ['ramboot', 'netboot-release', 'backup-schedule']) {
    assert.match(page, `<section class="job" id="${id}">`)
  }
  assert.match(page, '<div id="dhcp-pxe" class="folded">')
  assert.not.match(page, 'id="wizard"')
  assert.not.match(page, /<ul class="settings">\s*<\/ul>/)
  assert.match(page, '<label for="set-display.timezone">Time zone</label>')
  assert.match(
    fieldOf(page, 'tuning.max_upload_bytes'),
    /Default: 200 GiB\. A file or <code>FLASHER_TUNING_MAX_UPLOAD_BYTES<\/code> overrides it\./,
  )
  // In front stand the jobs; a row behind "All settings" opens it where it is found or saved.
  const front = page.slice(0, page.indexOf('id="more"'))
  assert.equal(shownIn(front), listFront())
  for (const [query, isOpen] of [
    ['', false],
    ['?q=time+zone', false],
    ['?q=loop', true],
    ['?saved=config&at=display.timezone', false],
    ['?saved=config&at=pxe.loop_limit', true],
  ] as const) {
    const all = /<details class="card fold"([^>]*)>/.exec(await server.page(query))
    assert.is(all?.[1]?.includes('open'), isOpen, query)
  }
  assert.match(front, 'id="admin.password"')
  assert.match(front, 'id="admin.password_hash"')
})

const listFront = () => [
  'server.public_url',
  'server.tls_cert',
  'server.tls_key',
  'display.timezone',
  'withcache.url',
  'boot.release_repo',
  'boot.release_tag',
  'pxe.max_flashes',
  'proof.enabled',
  'power.networks',
  'backup.enabled',
  'backup.cadence',
  'backup.retention',
  'people.nameless_login',
  'notify.networks',
]

test('DHCP: the file of each architecture, signed ones unless iPXE is chosen', async () => {
  await using site = await open()
  await using server = await site.start()
  const [usual, ipxe] = [await server.page(), await server.page('?loader=ipxe')]
  for (const name of ['shimx64.efi', 'shimaa64.efi', '/boot/shimx64.efi', '/boot/shimaa64.efi']) {
    assert.match(usual, name)
    assert.not.match(ipxe, name)
  }
  for (const name of ['ipxe.efi', 'ipxe-arm64.efi', '/boot/ipxe.efi', '/boot/ipxe-arm64.efi']) {
    assert.match(ipxe, name)
    assert.not.match(usual, name)
  }
  assert.match(usual, /<a\s+href="\?loader=ipxe#dhcp-pxe"/)
  assert.match(usual, 'href="/ui/dhcp"')
})

test('a setting of the database has one field, also where a file sets it', async () => {
  await using site = await open()
  await site.home.write('a.toml', '[boot]\nrelease_repo = "a/b"\n')
  await using server = await site.start(['--config', site.home.at('a.toml')])
  const page = await server.page()
  assert.is(page.split(' name="boot.release_repo"').length - 1, 1)
  const row = fieldOf(page, 'boot.release_repo')
  assert.match(row, /name="boot\.release_repo"[^>]*value="a\/b"/)
})

test('what the page posts says its rows and keeps the search; programs get the address they know', async () => {
  await using site = await open()
  await using server = await site.start()
  const save = async (path: string, fields: Readonly<Record<string, string>>) => {
    const answer = await server.post(`/ui/settings/${path}`, fields)
    return answer.headers.get('location') ?? String(answer.status)
  }
  assert.is(
    await save('config', { q: 'a loop', 'pxe.loop_limit': '9', 'metrics.open': 'true' }),
    '/ui/settings?saved=config&at=pxe.loop_limit+metrics.open&q=a+loop#pxe.loop_limit',
  )
  const both = await server.page('?saved=config&at=metrics.open+pxe.loop_limit&q=zebra')
  assert.equal(shownIn(both).toSorted(), ['metrics.open', 'pxe.loop_limit'])
  for (const name of shownIn(both)) assert.match(fieldOf(both, name), '>Saved<')
  assert.not.match(fieldOf(both, 'display.timezone'), '>Saved<')
  // Nothing is said to be saved by an address that names no such thing.
  assert.not.match(await server.page('?saved=no&at=metrics.open'), '>Saved<')
  assert.is(
    await save('upstream', { q: '', netboot_repo: 'a/b' }),
    '/ui/settings?saved=upstream&at=boot.release_repo#netboot-release',
  )
  assert.is(await save('upstream', { netboot_repo: 'a/c' }), '/ui/settings?saved=upstream')
  assert.match(await save('upstream', { q: 'x', netboot_repo: '?' }), /&q=x#netboot-release$/)
  assert.is(await save('config', { q: 'x' }), '422')
})

test('a typo raises no event; what the server could not do does', async () => {
  await using site = await open()
  await using server = await site.start()
  const kinds = async () => {
    const answer = await server.ask('/ui/events?kind=settings.config.failed')
    return (await answer.text()).split(' was not changed: ').length - 1
  }
  const post = (fields: Readonly<Record<string, string>>) =>
    server.post('/ui/settings/config', fields)
  await post({ 'pxe.loop_limit': 'many', 'server.trusted_proxies': 'nobody' })
  assert.is(await kinds(), 0)
  await post({ 'pxe.loop_limit': 'many', 'server.port': '80' })
  const text = await (await server.ask('/ui/events?kind=settings.config.failed')).text()
  assert.match(text, 'server.port was not changed')
  assert.not.match(text, 'pxe.loop_limit was not changed')
})

const postgres = opened(test, () => startPostgres())
const PROGRAM = fileURLToPath(new URL('../../../../runtime/bin/flasher-web.mjs', import.meta.url))

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
