/** "Browser UI routes", row by row. */
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { listSettings } from '#kit/config/rules/setting.ts'
import { disarm } from '#server/earlier/rules/machine.ts'
import { SETTINGS } from '#server/earlier/rules/settings.ts'
import { isOverdue, MAX_SILENT_FLASH_MS } from '#server/earlier/rules/state.ts'
import { createRowCaches } from '#server/updates/channel.ts'
import { BY, createEarlierFixture } from '#test/support/server/earlier-machine.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { bodyOf } from '#test/support/server/runs.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('the earlier line: pages')
const MAC = '52:54:00:12:34:56'
const form = (fields: Readonly<Record<string, string>>) => ({
  method: 'POST',
  body: new URLSearchParams(fields),
})

/** The machines of a list, in its order. */
const listRows = (text: string) =>
  [...text.matchAll(/<tr id="row-([\w-]+)"/g)].map(([, row = '']) => row.replaceAll('-', ':'))

test('every page needs a session, and is there with one', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  for (const page of [
    'dashboard',
    'machines',
    `machines/${MAC}`,
    'images',
    'boot',
    'settings',
    'account',
  ]) {
    assert.is((await server.request(`/ui/${page}`)).status, 303, page)
    const answer = await ask(`/ui/${page}`)
    assert.is(answer.status, 200, page)
    const text = await answer.text()
    assert.match(text, '<h1>', page)
    // No external address is contacted.
    assert.not.match(text, /(src|href)="https?:/)
  }
  assert.is((await ask('/ui/machines/52:54:00:00:00:99')).status, 404)
})

test('GET /ui/dashboard counts machines, discovered ones and images', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await server.putImage('a.img', 'x')
  await server.request(`/pxe/${MAC}`)
  await ask('/machines/52:54:00:00:00:02', asJson({ image: 'a.img' }, 'PUT'))
  const text = await (await ask('/ui/dashboard')).text()
  const found = [...text.matchAll(/<strong>(\d+)<\/strong><span class="dim">([^<]*)/g)]
  assert.equal(Object.fromEntries(found.map(([, count, title]) => [title, Number(count)])), {
    Machines: 2,
    Running: 0,
    'Need attention': 1,
    Discovered: 1,
    Images: 1,
  })
})

test('the dashboard: what to do first, then what failed with its reason, what runs and was flashed', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const read = async () => await (await ask('/ui/dashboard')).text()
  const first = await read()
  assert.match(first, 'Setup: 0 of 3 done')
  assert.match(first, /4 of its files are missing[^]*There are no images yet/)
  assert.is(first.match(/class="button primary"/g)?.length, 1)
  assert.match(first, 'No machines yet')

  for (const arch of ['vmlinuz', 'initrd', 'squashfs', 'sha256']) {
    const path = `/boot/flasher-live-x86_64.${arch}`
    assert.is((await ask(path, { method: 'PUT', body: 'x' })).status, 200)
  }
  await ask('/images/a.img', { method: 'PUT', body: 'x' })
  const [failed, sent, done] = ['52:54:00:00:00:01', '52:54:00:00:00:02', '52:54:00:00:00:03']
  for (const mac of [failed, sent, done]) {
    await ask(`/machines/${mac}`, asJson({ image: 'a.img', boot_policy: 'flash' }, 'PUT'))
    await server.request(`/pxe/${mac}`)
  }
  await server.request(`/pxe/${MAC}`)
  await server.request(`/pxe/${done}/done`, { method: 'POST' })
  const report = asJson({ status: 'failed', reason: 'the disk is too small' })
  await server.request(`/pxe/${failed}/status`, report)
  const text = await read()
  assert.not.match(text, 'Setup:')
  assert.match(
    text,
    new RegExp(`${failed}[^]*the disk is too small[^]*${MAC}[^]*Running now[^]*${sent}[^]*${done}`),
  )
})

test('GET /ui/machines: a badge for machines without an image, and the policy of each', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const text = await (await ask('/ui/machines')).text()
  assert.match(text, '>discovered<')
  // A machine that asks the person in front of it says so, not that it boots its disk.
  const row = /<tr id="row-.*?<\/tr>/s.exec(text)?.[0] ?? ''
  assert.match(row, 'New machine without an image. It asks the person at the machine.<')
  const found = await (await ask('/ui/machines?q=policy:flash')).text()
  assert.not.match(found, 'id="row-')
})

test('the list names the state of each machine, finds by it, and shows what failed first, with the reason', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const [failed, armed, sent] = ['52:54:00:00:00:03', '52:54:00:00:00:01', '52:54:00:00:00:02']
  for (const mac of [armed, sent, failed]) {
    await ask(`/machines/${mac}`, asJson({ image: 'a.img', boot_policy: 'flash' }, 'PUT'))
  }
  await server.request(`/pxe/${sent}`)
  const before = await (await ask('/ui/machines')).text()
  assert.equal(listRows(before), [armed, sent, failed])

  const report = asJson({ status: 'failed', reason: 'the disk <sda> is too small' }, 'POST')
  await server.request(`/pxe/${failed}/status`, report)
  const text = await (await ask('/ui/machines')).text()
  assert.equal(listRows(text), [failed, sent, armed])
  assert.match(text, 'The flash failed: the disk &lt;sda&gt; is too small')
  assert.match(text, /state%3Afailed"[^>]*>Failed <span class="count">1</)
  for (const [state, mac] of [
    ['failed', failed],
    ['needs-attention,failed', failed],
    ['running', sent],
    ['armed', armed],
  ] as const) {
    const found = await (await ask(`/ui/machines?q=state:${state}`)).text()
    assert.equal(listRows(found), [mac], state)
  }
  assert.match(await (await ask('/ui/machines?q=state:done')).text(), 'No matching machines')
  await server.request(`/pxe/${sent}/done`, { method: 'POST' })
  assert.equal(listRows(await (await ask('/ui/machines?q=state:done')).text()), [sent])
  const page = await (await ask(`/ui/machines/${failed}`)).text()
  assert.match(page, /id="state"[^]*too small[^]*Its next network boot tries again/)
})

test('POST /ui/machines/{mac} saves, creates, and says what is wrong', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const path = `/ui/machines/${MAC}`
  const saved = await ask(
    path,
    form({ image: 'a.img', boot_policy: 'flash', provisioning_mode: 'cloud-init', hostname: '' }),
  )
  assert.is(saved.status, 303)
  const machine = await (await ask(`/machines/${MAC}`)).json()
  assert.equal([machine.boot_policy, machine.hostname], ['flash', null])
  const text = await (await ask(path)).text()
  assert.match(text, 'a.img is not in the image folder')
  assert.match(text, 'cloud-init needs user-data. Add it below.')
  assert.match(text, 'flasher.image_url=')
  assert.match(text, 'flasher.token=hidden')
  const refused = await ask(path, form({ boot_policy: 'yolo' }))
  const back = await (await ask(refused.headers.get('location') ?? '')).text()
  assert.match(back, 'Not saved: boot_policy')
})

test('to arm "Flash at every network boot" is asked first, with machine and image', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const path = `/ui/machines/${MAC}`
  const fields = { image: 'a.img', boot_policy: 'flash', hostname: 'box-1' }
  const policy = async () => (await (await ask(`/machines/${MAC}`)).json()).boot_policy
  await server.request(`/pxe/${MAC}`)
  assert.match(await (await ask(path)).text(), 'name="confirm" value="ask"')

  const asked = await ask(path, form({ ...fields, confirm: 'ask' }))
  assert.is(asked.status, 200)
  const question = await asked.text()
  assert.match(question, /Flash[^]*a\.img[^]*box-1 \(52:54:00/)
  assert.match(question, 'only suitable disk is erased at every network boot')
  // What is written, and onto what; what keeps the flash from being completed.
  assert.match(question, /class="facing"[^]*a\.img[^]*not in the image folder[^]*suitable disk/)
  assert.match(question, 'Everything on it will be lost.')
  assert.match(question, 'a.img is not in the image folder, so the flash cannot start')
  assert.is(await policy(), 'tui', 'a question changes nothing')

  assert.is((await ask(path, form({ ...fields, confirm: 'yes' }))).status, 303)
  assert.is(await policy(), 'flash')
  assert.is((await ask(path, form({ ...fields, confirm: 'ask' }))).status, 303, 'armed already')
  await ask('/images/b.img', { method: 'PUT', body: 'x'.repeat(2_000_000) })
  const other = await ask(path, form({ ...fields, image: 'b.img', confirm: 'ask' }))
  const again = await other.text()
  assert.match(again, /b\.img[^]*img, <data value="2000000"/)
  assert.not.match(again, 'the flash cannot start')
  // The script of the page gets the address to load, as it would follow a redirect unnoticed.
  const headers = { 'hx-request': 'true' }
  const answered = await ask(path, { ...form({ ...fields, confirm: 'yes' }), headers })
  assert.is(answered.headers.get('hx-redirect'), `${path}?saved=1`)
  assert.is(other.status, 200, 'another image is asked again')
  const local = await ask(path, form({ ...fields, boot_policy: 'local', confirm: 'ask' }))
  assert.is(local.status, 303, 'nothing is erased')
})

test('a machine that a restored state disarmed is armed by the same answer', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const path = `/ui/machines/${MAC}`
  const fields = { image: 'a.img', boot_policy: 'flash', hostname: '' }
  await ask(path, form(fields))
  const { machines } = server
  const [machine] = await machines.list()
  assert.ok(machine)
  await machines.update(machine.mac, () => disarm(machine, '2026-11-26T10:00:00.000Z'))
  assert.match(await (await ask(path)).text(), 'A backup of the server was restored')
  assert.is((await ask(path, form({ ...fields, confirm: 'ask' }))).status, 200)
  await ask(path, form({ ...fields, confirm: 'yes' }))
  assert.match(await (await server.request(`/pxe/${MAC}`)).text(), 'flasher.image_url=')
})

test('POST /ui/images/remove asks first, names who uses the image, and removes it', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const [used, free] = ['a <b>.img', 'b 100%.img']
  await server.putImage(used, 'x')
  await server.putImage(free, 'x')
  await ask(`/machines/${MAC}`, asJson({ image: used, hostname: 'box-1' }, 'PUT'))
  const listed = async () => {
    const rows: unknown = await (await server.request('/images')).json()
    return Object(rows).map(({ name }: { readonly name: string }) => name)
  }
  const post = (fields: Readonly<Record<string, string>>) => ask('/ui/images/remove', form(fields))
  assert.match(await (await ask('/ui/images')).text(), />1 machine<[^]*>no machine</)

  const question = await (await post({ name: used, confirm: 'ask' })).text()
  assert.match(question, 'a &lt;b&gt;.img')
  assert.match(question, /1 machine uses this image and cannot be flashed without it[^]*box-1/)
  const refused = await post({ name: used, confirm: 'yes' })
  assert.match(await refused.text(), 'Not removed: machines use it')
  assert.equal(await listed(), [used, free])
  const unused = await (await post({ name: free, confirm: 'ask' })).text()
  assert.match(unused, 'No machine uses it.')
  assert.not.match(unused, 'name="force"')

  const removed = await post({ name: free, confirm: 'yes' })
  assert.is(removed.status, 303)
  const page = await (await ask(removed.headers.get('location') ?? '')).text()
  assert.match(page, 'b 100%.img was removed.')
  await post({ name: used, confirm: 'yes', force: '1' })
  assert.equal(await listed(), [])
  const events = await server.journal.list({ kind: 'images.removed', limit: 9 })
  assert.equal(
    events.map(({ subject_id }) => subject_id),
    [used, free],
  )
  for (const name of ['../state', '/etc/passwd', '', used]) {
    const gone = await post({ name, confirm: 'yes', force: '1' })
    const text = await (await ask(gone.headers.get('location') ?? '')).text()
    assert.match(text, 'This image was removed.', name)
  }
})

test('an image with which a machine is being flashed stays', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await server.putImage('a.img', 'x')
  await ask(`/machines/${MAC}`, asJson({ image: 'a.img', boot_policy: 'flash' }, 'PUT'))
  await server.request(`/pxe/${MAC}`)
  const report = asJson(bodyOf({ phase: 'write' }))
  assert.is((await server.request(`/pxe/${MAC}/progress`, report)).status, 204)
  const fields = { name: 'a.img', confirm: 'yes', force: '1' }
  const refused = await ask('/ui/images/remove', form(fields))
  const text = await (await ask(refused.headers.get('location') ?? '')).text()
  assert.match(text, `a.img was not removed: ${MAC} is being flashed with it.`)
  assert.is((await server.request('/images/a.img')).status, 200)
  assert.match(await (await ask('/ui/machines?q=state:running')).text(), 'writing')
})

test('provisioning files are saved, shown again, and removed when empty', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const path = `/ui/machines/${MAC}/provision`
  const text = '#cloud-config\r\n<b>&amp;\r\n'
  assert.is((await ask(path, form({ name: 'user-data', text }))).status, 303)
  const kept = await ask(`/machines/${MAC}/provision/user-data`)
  assert.is(await kept.text(), '#cloud-config\n<b>&amp;\n')
  const page = await (await ask(`/ui/machines/${MAC}`)).text()
  assert.match(page, '&lt;b&gt;&amp;amp;')
  assert.is((await ask(path, form({ name: 'user-data', text: ' ' }))).status, 303)
  assert.is((await ask(`/machines/${MAC}/provision/user-data`)).status, 404)
  assert.is((await ask(path, form({ name: '../x', text: 'x' }))).status, 400)
})

test('GET /ui/settings lists every setting of its table; what names a program stays in files', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const page = await (await ask('/ui/settings')).text()
  for (const { section, key, row } of listSettings(SETTINGS)) {
    assert.match(page, `<li class="setting" id="${section}.${key}"`)
    assert.match(page, row.title)
  }
  assert.match(page, 'FLASHER_IMAGE_ROOT</code>. Change it there.')
  assert.match(page, 'Point the DHCP server at the bootstrap script')
  for (const name of ['admin.password_helper', 'paths.pxe_helper', 'workflow.program']) {
    const row = new RegExp(`id="${name}".*?</li>`, 's').exec(page)?.[0] ?? ''
    assert.match(row, 'Security setting', name)
  }
  const folder = /id="paths.boot_dir".*?<\/li>/s.exec(page)?.[0] ?? ''
  assert.not.match(folder, '<input')
  // This line has no card of that name.
  assert.not.match(page, '#netboot-release')
  const found = await (await ask('/ui/settings?q=ssh+port')).text()
  assert.match(found, /id="workflow.time_limit"[^>]* hidden/)
  assert.not.match(found, /id="workflow.ssh_port"[^>]* hidden/)
})

test('POST /ui/settings/config writes the file; a wrong value comes back with its reason', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-earlier-config-'))
  const file = join(folder.path, 'flasher.toml')
  await writeFile(file, '[workflow]\nssh_port = 22\n')
  await using server = await createEarlierServer({ env: { FLASHER_CONFIG_FILE: file } })
  const ask = await server.operator()
  const path = '/ui/settings/config'
  const saved = await ask(
    path,
    form({ 'workflow.ssh_port': '2222', 'was:workflow.ssh_port': '22' }),
  )
  assert.is(saved.headers.get('location'), '/ui/settings?saved=config#workflow.ssh_port')
  assert.match(await readFile(file, 'utf8'), 'ssh_port = 2222')
  const refused = await ask(path, form({ 'workflow.parallel': 'many' }))
  const back = await (await ask(refused.headers.get('location') ?? '')).text()
  assert.match(back, 'Simultaneous workflows</a>: Must be a whole number from 1 to 256')
  const repository = await ask(path, form({ 'boot.release_repo': 'acme/live' }))
  assert.match(repository.headers.get('location') ?? '', 'saved=config')
  assert.match(await readFile(file, 'utf8'), 'release_repo = "acme/live"')
  // Whoever got hold of a session could serve the keys of the server, or upload one of their own.
  for (const name of ['paths.state_dir', 'paths.image_root', 'paths.boot_dir']) {
    const refusal = await ask(path, form({ [name]: '/home/flasher/.ssh' }))
    assert.match(refusal.headers.get('location') ?? '', 'security+setting', name)
  }
  assert.not.match(await readFile(file, 'utf8'), '.ssh')
  const kept = await ask(path, form({ 'workflow.program': '/bin/sh' }))
  assert.match(await (await ask(kept.headers.get('location') ?? '')).text(), 'security setting')
  assert.not.match(await readFile(file, 'utf8'), '/bin/sh')
})

test('/ui/account: whose password it is, the session, and tokens', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const page = await (await ask('/ui/account')).text()
  assert.match(page, 'passwd flasher')
  assert.not.match(page, 'type="password"')
  const created = await ask('/ui/account/tokens', form({ name: 'ci', scopes: 'read', days: '30' }))
  const token = /flt_[\w.-]+|<code[^>]*>([^<]{20,})<\/code>/.exec(await created.text())
  assert.ok(token)
  assert.match(await (await ask('/ui/account')).text(), '<strong>ci</strong>')
})

test('POST /ui/machines adds a machine, and says what is not a MAC address', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const added = await ask('/ui/machines', form({ mac: MAC }))
  assert.is(added.headers.get('location'), `/ui/machines/${MAC}`)
  assert.is((await (await ask(`/machines/${MAC}`)).json()).boot_policy, 'local')
  const refused = await ask('/ui/machines', form({ mac: 'nonsense' }))
  assert.match(
    await (await ask(refused.headers.get('location') ?? '')).text(),
    '&quot;nonsense&quot; is not a MAC address',
  )
})

test('whatever a machine is called, it is text on its pages', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const name = '<img src=x onerror=alert(1)>.img'
  assert.is(
    (await ask(`/machines/${MAC}`, asJson({ image: name, boot_policy: 'flash' }, 'PUT'))).status,
    200,
  )
  for (const path of ['/ui/machines', `/ui/machines/${MAC}`]) {
    assert.not.match(await (await ask(path)).text(), '<img')
  }
})

test('a filter that is misspelt is named, with the one that may be meant', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const read = async (q: string) =>
    await (await ask(`/ui/machines?q=${encodeURIComponent(q)}`)).text()
  assert.match(
    await read('stat:failed'),
    /<code>stat:failed<\/code> is not a filter\. Did you mean/,
  )
  assert.match(await read('policy:flahs'), /finds nothing\. Did you mean[^]*policy:flash/)
  assert.not.match(await read('state:needs-attention policy:tui'), 'Did you mean')
})

test('POST /ui/machines/{mac}/delete', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const path = `/ui/machines/${MAC}/delete`
  const asked = await ask(path, form({ confirm: 'ask' }))
  assert.match(await asked.text(), /Delete <bdi>[^]*No disk is changed/)
  assert.is((await ask(`/machines/${MAC}`)).status, 200, 'a question deletes nothing')
  const again = await ask('/ui/machines/52:54:00:00:00:99/delete', form({ confirm: 'yes' }))
  assert.match(again.headers.get('location') ?? '', 'missing=')
  // Scripts post without an answer, and are not asked.
  const deleted = await ask(path, { method: 'POST' })
  assert.is(deleted.status, 303)
  assert.match(await (await ask(deleted.headers.get('location') ?? '')).text(), 'was deleted')
  assert.is((await ask(`/machines/${MAC}`)).status, 404)
})

test('a row is rendered again once its flash is overdue, and not before', () => {
  const fixture = createEarlierFixture()
  fixture.put({ image: 'a.img', boot_policy: 'flash' })
  fixture.script()
  const { machine } = fixture
  const offered = Date.parse(machine.offered_at ?? BY.at)
  let [now, rendered] = [offered, 0]
  const rows = createRowCaches(() => `row ${(rendered += 1)}`, {
    findRun: () => null,
    isLate: () => isOverdue(machine, new Date(now)),
  }).of('')
  const show = () => rows.render([machine])
  assert.equal([show(), show()], ['data: row 1', 'data: row 1'])
  now += MAX_SILENT_FLASH_MS
  assert.is(show(), 'data: row 1')
  now += 1
  assert.equal([show(), show()], ['data: row 2', 'data: row 2'])
})

test.run()
