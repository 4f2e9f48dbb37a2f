import { UNCOUNTED } from '#test/support/server/web-machines.ts'
import { rm, writeFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderNewc } from '#build/initrd/newc.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import { listActions } from '#server/current/machines/machine-calls.ts'
import { viewMachine } from '#server/current/view/machine-view.ts'
import { allowDisk } from '#server/current/machines/rules/operator-edits.ts'
import { SETTINGS } from '#server/current/settings/rules/settings.ts'
import { findNamed } from '#kit/config/rules/setting.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import {
  createFixture,
  diskOf,
  type Fixture,
  PXE_RULES,
} from '#test/support/server/machine-fixture.ts'
import { RUN } from '#test/support/server/runs.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('forms of the pages, as scripts post them')
const MAC = '52:54:00:00:00:01'
const REF = 'ab'.repeat(32)

/** The real program, and one who is logged in. */
async function open() {
  const stack = new AsyncDisposableStack()
  const home = stack.use(await createServerHome())
  const server = stack.use(await home.start([], { FLASHER_ADMIN_PASSWORD: 'secret' }))
  const loggedIn = await fetch(`${server.url}/ui/login`, {
    method: 'POST',
    body: new URLSearchParams({ password: 'secret' }),
    redirect: 'manual',
  })
  const cookie = loggedIn.headers.getSetCookie()[0]?.split(';')[0] ?? ''
  const ask = async (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('cookie', cookie)
    return await fetch(`${server.url}${path}`, { redirect: 'manual', ...init, headers })
  }
  return {
    home,
    ask,
    /** Status and where it leads. */
    async post(path: string, fields: Readonly<Record<string, string>> = {}, headers = {}) {
      const answer = await ask(path, { method: 'POST', body: new URLSearchParams(fields), headers })
      return [answer.status, answer.headers.get('location')] as const
    },
    /** The page that a form led to. */
    text: async (location: string | null) => await (await ask(location ?? '')).text(),
    async machine() {
      return await (await ask(`/machines/${MAC}`)).json()
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('a machine: saved as posted, refused with what was typed, deleted', async () => {
  await using site = await open()
  const path = `/ui/machines/${MAC}`
  const flash = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, labels: ' b, a,,A ' }
  const [status, location] = await site.post(path, flash)
  assert.is(status, 303)
  assert.match(location ?? '', new RegExp(`^${path}\\?error=[^&]*requires[^&]*&notice=[\\w-]{12}$`))
  assert.match(await site.text(location), /Select the disk to flash/, 'there is no machine yet')
  assert.is((await site.ask(`/machines/${MAC}`)).status, 404)

  assert.equal(await site.post(path, { ...flash, target_disk_serial: 'S1' }), [303, '/ui/machines'])
  const saved = await site.machine()
  assert.equal(
    [saved.labels, saved.boot_mode, saved.bty_image_ref, saved.target_disk_serial],
    [['a', 'b'], 'flasher-flash-once', REF, 'S1'],
  )
  const [, again] = await site.post(path, flash)
  const page = await site.text(again)
  assert.match(again ?? '', /boot_mode%3Dflasher-flash-once\+requires\+a\+target\+disk/)
  assert.match(page, 'Select the disk to flash.')
  assert.match(page, /value=" b, a,,A "/)
  // The disks are not known: one field takes the serial number away, and nothing else has its name.
  assert.is(page.match(/name="target_disk_serial"/g)?.length, 1)
  const [, bad] = await site.post(path, { sanboot_drive: 'C:' })
  assert.match(bad ?? '', /error=validation\+failed%3A\+sanboot_drive/)
  const [, label] = await site.post(path, { labels: 'ok, büro 1' })
  assert.match(label ?? '', /error=validation\+failed%3A\+labels\.1/)
  assert.match(
    await site.text(label),
    /The label &quot;büro 1&quot;: a label cannot hold &quot;ü&quot;/,
  )

  for (const click of ['first', 'second']) {
    const deleted = [303, `/ui/machines?deleted=${encodeURIComponent(MAC)}`]
    assert.equal(await site.post(`${path}/delete`), deleted, `${click} click`)
  }
  await site.post('/ui/theme', { theme: 'dark' })
  assert.equal(await site.post(`${path}/delete`), [
    303,
    `/ui/machines?missing=${encodeURIComponent(MAC)}`,
  ])
  assert.is((await site.ask(path)).status, 404)
  assert.is((await site.ask('/ui/machines/no-mac')).status, 400)
})

test('undo opens the question, whose answer arms the machine', async () => {
  await using site = await open()
  const path = `/ui/machines/${MAC}`
  const mode = 'flasher-flash-once'
  await site.post(path, { boot_mode: mode, bty_image_ref: REF, target_disk_serial: 'S1' })
  await site.post(`${path}/do/disarm`)
  const edit = /name="edit" value="([0-9a-f]+)"/.exec(await site.text(path))?.[1] ?? ''
  const undone = await site.ask(`${path}/undo`, {
    method: 'POST',
    body: new URLSearchParams({ edit }),
  })
  const question = await undone.text()
  assert.not.match(question, 'Undone')
  assert.match(question, 'Nothing was undone. The edit disarmed the machine')
  const action = /action="([^"]+)"[^>]*>\s*<input[^>]*name="was"/.exec(question)?.[1] ?? ''
  const was = (/name="was" value="([^"]*)"/.exec(question)?.[1] ?? '').replaceAll('&quot;', '"')
  const [status, location] = await site.post(action, { was, confirm: 'S1' })
  assert.equal([status, location], [303, `${path}?armed=1`])
})

test('a name: the host name until one is given, found by search, kept where a form has none', async () => {
  await using site = await open()
  const path = `/ui/machines/${MAC}`
  const shown = async () => /<bdi>.*?<\/bdi>/.exec(await site.text('/ui/machines'))?.[0]
  const found = async (q: string) =>
    (await (await site.ask(`/machines?${new URLSearchParams({ q })}`)).json()).length
  await site.ask(`/pxe/${MAC}?buildarch=x86_64&hostname=nuc-7.lab`)
  await site.ask(`/pxe/${MAC}?hostname=%3Cb%3E`)
  assert.is(await shown(), '<bdi>nuc-7.lab</bdi>')
  assert.is(await found('name:nuc-7.lab'), 1)
  await site.post(path, { name: ' <b>Ü 4</b> ' })
  assert.is(await shown(), '<bdi>&lt;b&gt;Ü 4&lt;/b&gt;</bdi>')
  await site.post(path, { labels: 'one' })
  assert.is((await site.machine()).name, '<b>Ü 4</b>')
  for (const q of ['name:<b>ü*', 'name:"<b>ü 4</b>"', 'nuc-7', 'Ü']) assert.is(await found(q), 1, q)
  assert.is(await found('-name:nuc-7.lab'), 0)
  const [, refused] = await site.post(path, { name: 'a\u202eb' })
  assert.match(await site.text(refused), 'U+202E')
  await site.post(path, { name: '' })
  assert.is(await shown(), '<bdi>nuc-7.lab</bdi>')
})

test('options: saved by name, kept where a form has none or no such value', async () => {
  await using site = await open()
  const path = `/ui/machines/${MAC}`
  const options = async () =>
    (await site.text(path)).match(/(?<=<option value=")(ttyS\d|true|false)(?=" selected)/g)
  await site.post(path, {})
  assert.equal(await options(), ['ttyS0', 'false'])
  await site.post(path, { serial_console: 'ttyS1', grow: 'true' })
  for (const form of [{}, { serial_console: 'x', grow: '' }]) await site.post(path, form)
  assert.equal(await options(), ['ttyS1', 'true'])
})

test('an armed machine is disarmed; mode, image and disk stay, and it can be undone', async () => {
  await using site = await open()
  const path = `/ui/machines/${MAC}`
  const flash = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
  await site.post(path, flash)
  assert.equal(await site.post(`${path}/do/disarm`), [303, `${path}?saved=1`])
  const { boot_mode, bty_image_ref, target_disk_serial } = await site.machine()
  assert.equal([boot_mode, bty_image_ref, target_disk_serial], [flash.boot_mode, REF, 'S1'])
  const page = await site.text(path)
  assert.match(page, 'Disarmed.')
  const edit = /name="edit" value="([0-9a-f]+)"/.exec(page)?.[1] ?? ''
  const [status] = await site.post(`${path}/undo`, { edit })
  assert.is(status, 200, 'the question before a flash is open')
  assert.not.match(await site.text(path), 'Ready to be flashed', 'and nothing is armed by it')
})

test('what a link says is selected is not shown as selected', async () => {
  await using site = await open()
  await site.post(`/ui/machines/${MAC}`, {})
  const page = await site.text(`/ui/machines/${MAC}?target_disk_serial=EVIL&bty_image_ref=EVIL`)
  assert.not.match(page, 'value="EVIL"')
  assert.not.match(page, '(gone)')
})

test('a form that is out of date overwrites nothing', async () => {
  await using site = await open()
  await site.post(`/ui/machines/${MAC}`, { labels: 'one' })
  const html = await (await site.ask(`/ui/machines/${MAC}`)).text()
  const was = (/name="was" value="([^"]*)"/.exec(html)?.[1] ?? '').replaceAll('&quot;', '"')
  await site.post(`/ui/machines/${MAC}`, { labels: 'two' })
  const [, location] = await site.post(`/ui/machines/${MAC}`, {
    labels: 'three',
    was,
    confirm: 'ask',
  })
  const page = await site.text(location)
  assert.match(page, /was changed in the meantime/)
  assert.match(page, 'value="three"')
  assert.equal((await site.machine()).labels, ['two'])
})

test('settings: saved above files, refused with the reason, secrets never shown', async () => {
  await using site = await open()
  assert.equal(
    await site.post('/ui/settings/upstream', { netboot_repo: 'a/b', netboot_tag: 'v1.0.0' }),
    [303, '/ui/settings?saved=upstream'],
  )
  const [, bad] = await site.post('/ui/settings/upstream', { netboot_repo: 'no repository' })
  assert.match(bad ?? '', /#boot\.release_repo$/)
  assert.match(await site.text(bad), 'value="no repository"')
  const good = { backup_enabled: 'on', backup_cadence: 'daily', backup_retention_count: '3' }
  assert.equal(await site.post('/ui/settings/backup', good), [
    303,
    '/ui/settings?saved=backup#backup-schedule',
  ])
  const wrong = { ...good, backup_retention_count: '0' }
  assert.is((await site.post('/ui/settings/backup', wrong))[0], 422)
  assert.is((await site.post('/ui/settings/backup', wrong, { accept: 'text/html' }))[0], 303)
  const page = await (await site.ask('/ui/settings')).text()
  assert.match(page, /value="a\/b"/)
  assert.not.match(page, />secret</)
  assert.not.match(page, /value="secret"/)
})

test('configuration lines: written, refused, not for what the environment says', async () => {
  await using site = await open()
  const edit = (section: string, key: string, value: string) =>
    site.post('/ui/settings/config/edit', { section, key, value })
  assert.equal(await edit('pxe', 'loop_limit', '9'), [
    303,
    '/ui/settings?saved=config#pxe.loop_limit',
  ])
  assert.match(await site.home.text('state/flasher.toml'), /loop_limit = 9/)
  assert.equal(await edit('server', 'public_url', 'https://a.example'), [
    303,
    '/ui/settings?saved=config#server.public_url',
  ])
  for (const [section, key, value, says] of [
    ['pxe', 'loop_limit', 'many', /Must be a whole number from 1 to 1000, not &quot;many&quot;\./],
    ['server', 'port', '80', /environment variable FLASHER_SERVER_PORT/],
    ['admin', 'password', 'x', /Security setting: can only be changed/],
    ['no', 'such', 'x', /No such setting/],
  ] as const) {
    const [, location] = await edit(section, key, value)
    assert.match(
      location ?? '',
      new RegExp(`^/ui/settings\\?error=[^&]+&notice=[\\w-]{12}#${section}\\.${key}$`),
    )
    const page = await site.text(location)
    assert.match(page, says)
    const name = `${section}.${key}`
    assert.match(page, `<a href="#${name}">${findNamed(SETTINGS, name)?.title ?? name}</a>: `)
  }
})

test('events: JSON for scripts; assets: a closed list, kept for ever', async () => {
  await using site = await open()
  const answer = await site.ask('/ui/events/acknowledge', {
    method: 'POST',
    body: new URLSearchParams([
      ['ids', '1'],
      ['ids', 'x'],
      ['acknowledged', '1'],
    ]),
  })
  assert.equal(await answer.json(), { updated: 1, acknowledged: true })
  const page = await (await site.ask('/ui/dashboard')).text()
  const urls = [...page.matchAll(/(?:href|src)="(\/static\/[^"]+)"/g)].map(([, url]) => url ?? '')
  assert.ok(urls.length >= 7)
  for (const url of urls) {
    const asset = await site.ask(url)
    assert.is(asset.status, 200, url)
    assert.match(asset.headers.get('cache-control') ?? '', /immutable/)
  }
  for (const path of [
    '/static/',
    '/static/htmx.org@2.0.11/package.json',
    '/static/..%2f..%2fpackage.json',
  ]) {
    assert.is((await site.ask(path)).status, 404, path)
  }
})

test('backups: a file where their folder should be is said on the page', async () => {
  await using site = await open()
  const folder = site.home.at('state/backups')
  await rm(folder, { recursive: true })
  await writeFile(folder, 'no folder')
  const page = await site.ask('/ui/backups')
  assert.is(page.status, 200)
  const text = await page.text()
  assert.match(text, 'The backup folder is a file')
  assert.match(text, 'paths.backup_dir')
  const [status, location] = await site.post('/ui/backups/2026-11-21T06-55-53Z/delete')
  assert.is(status, 303)
  assert.match(await site.text(location), 'The backup folder is a file')
})

test('netboot: a set of another system is named on the page, with the reason', async () => {
  await using site = await open()
  const name = 'flasher-netboot-pc-x86_64-v9.9.9'
  const initrd = gzipSync(renderNewc([{ kind: 'folder', name: 'conf' }], 0))
  for (const part of ['vmlinuz', 'initrd', 'squashfs']) {
    const body = part === 'initrd' ? new Uint8Array(initrd) : 'any'
    const sent = await site.ask(`/boot/${name}.${part}`, { method: 'PUT', body })
    assert.is(sent.ok, true)
  }
  const page = await (await site.ask('/ui/netboot')).text()
  assert.match(page, `${name}.initrd has no etc/root.manifest`)
  assert.not.match(page, '</svg>active</span>')
})

const MACS = ['52:54:00:a1:00:07', '52:54:00:a1:00:08'] as const
const [SHOWN, OTHER] = ['ab'.repeat(32), 'cd'.repeat(32)]

async function openSeen() {
  const stack = new AsyncDisposableStack()
  const home = stack.use(await createServerHome())
  const server = stack.use(await home.start([], { FLASHER_ADMIN_PASSWORD: 'secret words' }))
  const { cookie } = await login(server.url, 'secret words')
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('cookie', cookie)
    return fetch(`${server.url}${path}`, { redirect: 'manual', ...init, headers })
  }
  const put = (mac: string, bty_image_ref: string) =>
    ask(
      `/machines/${mac}`,
      asJson({ boot_mode: 'flasher-flash-once', target_disk_serial: 'S1', bty_image_ref }, 'PUT'),
    )
  for (const mac of MACS) await put(mac, SHOWN)
  return {
    put,
    async bulk(more: Readonly<Record<string, string>> = {}) {
      const body = new URLSearchParams([
        ...MACS.map((mac) => ['macs', mac]),
        ...Object.entries({ action: 'flash', ...more }),
      ])
      return await (await ask('/ui/machines/bulk', { method: 'POST', body })).text()
    },
    async write(mac: string) {
      for (const path of ['', '/plan']) await fetch(`${server.url}/pxe/${mac}${path}`)
      const body = asJson({ ...UNCOUNTED, run: 'c0ffee00-0001', phase: 'write' })
      assert.is((await fetch(`${server.url}/pxe/${mac}/progress`, body)).status, 204)
    },
    batches: async () => (await (await ask('/batches')).json()).batches.length,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const seenIn = (page: string): string => /name="seen" value="([^"]+)"/.exec(page)?.[1] ?? ''

test('an image that was assigned since is asked about anew', async () => {
  await using site = await openSeen()
  const seen = seenIn(await site.bulk())
  assert.ok(seen !== '')
  await site.put(MACS[0], OTHER)
  const again = await site.bulk({ sure: '2', seen })
  assert.match(again, 'Something has changed since this was shown')
  assert.is(await site.batches(), 0)
  assert.is.not(seenIn(again), seen)
  await site.bulk({ sure: '2', seen: seenIn(again) })
  assert.is(await site.batches(), 1)
})

test('a script that posts the number alone is not asked', async () => {
  await using site = await openSeen()
  await site.bulk({ sure: '2' })
  assert.is(await site.batches(), 1)
})

test('where no network of BMCs is allowed, the page of a machine has the field for it', async () => {
  await using site = await open()
  await site.ask(`/machines/${MACS[0]}`, asJson({ name: 'one' }, 'PUT'))
  const path = `/ui/machines/${MACS[0]}`
  assert.match(await site.text(path), 'Power control is off.')
  const [, refused] = await site.post(`${path}/power/networks`, { networks: 'nonsense' })
  assert.match(await site.text(refused), 'value="nonsense"')
  const [status, location] = await site.post(`${path}/power/networks`, { networks: '10.0.5.0/24' })
  assert.is(status, 303)
  const page = await site.text(location)
  assert.not.match(page, 'Power control is off.')
  assert.match(page, 'Connect a BMC')
  // The settings page changes it where it was saved.
  const changed = { 'power.networks': '10.0.6.0/24', 'was:power.networks': '10.0.5.0/24' }
  const [, saved] = await site.post('/ui/settings/config', changed)
  assert.match(saved ?? '', 'saved=upstream')
  assert.match(await site.text('/ui/settings?q=power.networks'), '10.0.6.0/24')
})

test('a machine that is being written is left out until somebody ticks it; the result can be undone', async () => {
  await using site = await openSeen()
  await site.write(MACS[0])
  const question = await site.bulk()
  assert.match(question, 'Its disk is being written now.')
  assert.match(question, 'Also those whose disks are being written now (1)')
  assert.match(question, 'Disks that will be erased (1)')
  const both = await site.bulk({ writing: '1' })
  assert.match(both, 'Disks that will be erased: running (1)')
  assert.match(both, 'Disks that will be erased: needs attention (1)')
  const done = await site.bulk({ sure: '1', seen: seenIn(question) })
  assert.match(done, '/undo"')
  assert.match(done, 'Its disk is being written now.')
})

test('labels are given without a question, and shown', async () => {
  await using site = await openSeen()
  const page = await site.bulk({ action: 'label', add: 'rack-7', remove: '', at_once: '1' })
  assert.match(page, 'rack-7')
  assert.not.match(page, 'Ready to be flashed')
  assert.is(await site.batches(), 1)
})

/** The primary one in capitals. */
const offered = ({ machine, surroundings }: Fixture, run: Run | null = null) =>
  listActions(viewMachine(machine, surroundings, run))
    .map(({ action, isPrimary }) => (isPrimary ? action.toUpperCase() : action))
    .join(' ')

test('from its discovery to its end: nothing but its run while it is flashed', () => {
  const fixture = createFixture()
  assert.is(offered(fixture), '')
  fixture.disks(diskOf('S1'))
  assert.is(offered(fixture), 'refresh')
  fixture.flash('flasher-flash-once')
  assert.is(offered(fixture), 'disarm')
  fixture.script()
  fixture.bootFile()
  assert.is(offered(fixture), '', 'it is on its way')
  fixture.plan()
  assert.is(offered(fixture, RUN), 'show-run')
  fixture.done()
  assert.is(offered(fixture), 'flash')
})

test('in a paused batch: go on with it, or be disarmed', () => {
  const fixture = createFixture()
  fixture.disks(diskOf('S1'))
  fixture.flash('flasher-flash-once')
  const { machine } = fixture
  const cycle = { ...machine.cycle, batch: 'b1', paused_at: '2026-11-29T12:00:00Z' }
  assert.is(offered({ ...fixture, machine: { ...machine, cycle } }), 'RESUME disarm')
})

test('what failed is to be flashed again first of all', () => {
  const failed = createFixture()
  failed.flash('flasher-flash-once')
  failed.script()
  failed.plan()
  failed.failed('no space')
  assert.is(offered(failed), 'FLASH')

  const looping = createFixture()
  looping.flash('flasher-flash-once')
  for (let boot = 0; boot <= PXE_RULES.loop_limit; boot++) looping.script()
  assert.is(offered(looping), 'FLASH')
})

test('a half-written disk is neither disarmed nor booted without a question', () => {
  const fixture = createFixture()
  fixture.flash('flasher-flash-once')
  fixture.plan()
  assert.is(offered(fixture), '', 'its next boot flashes it again')
  fixture.surroundings = { ...fixture.surroundings, sets: () => ({ x86_64: null, arm64: null }) }
  assert.match(offered(fixture), 'boot-disk')
  assert.is(offered(fixture, { ...RUN, stalled: true }), 'show-run flash boot-disk')
  const allowed = allowDisk(fixture.machine, fixture.now())
  assert.ok(allowed.ok)
  fixture.machine = allowed.value
  assert.is(offered(fixture), 'flash')
})

test('a disk whose flash never ended can be vouched for in a mode that flashes nothing', () => {
  const fixture = createFixture()
  fixture.flash('flasher-flash-once')
  fixture.plan()
  fixture.put({ boot_mode: 'ipxe-exit' })
  assert.is(offered(fixture), 'boot-disk')
  const allowed = allowDisk(fixture.machine, fixture.now())
  assert.ok(allowed.ok)
  fixture.machine = allowed.value
  assert.is(offered(fixture), '')
})

test('a locked machine is unlocked before it is flashed; a missing disk is selected anew', () => {
  const locked = createFixture()
  locked.flash('flasher-flash-once')
  locked.machine = { ...locked.machine, locked: true }
  assert.is(offered(locked), 'UNLOCK')
  locked.put({ boot_mode: 'ipxe-exit' })
  assert.ok(locked.machine.locked)
  assert.is(offered(locked), 'UNLOCK', 'in every mode')

  const missing = createFixture()
  missing.disks(diskOf('S2'))
  missing.flash('flasher-flash-once')
  assert.is(offered(missing), '')
})

test.run()
