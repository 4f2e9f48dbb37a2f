/** What GRUB and shim want from a server, byte by byte; and contacts of GRUB that are no boots. */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { PASSWORD, startSite } from '#test/support/browser/browser.ts'
import { codeOf, exchange } from '#test/support/http/raw-http.ts'
import { login } from '#test/support/server/flasher-web.ts'
import { diskOf, entryOf, MAC, REF, setOf } from '#test/support/server/machine-fixture.ts'
import {
  asJson,
  createTestServer,
  listen,
  type TestServerOptions,
} from '#test/support/server/server.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('GRUB')

const SET = setOf('x86_64')
const SCRIPT = `/pxe/${MAC}.grub`
const ARMED = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }

/** With a live system, and a machine that has listed its disk. */
async function startServer(options: TestServerOptions = {}) {
  await using undo = new AsyncDisposableStack()
  const server = undo.use(await createTestServer({ ...options, catalog: [entryOf(REF)] }))
  const socket = undo.use(await listen(server))
  for (const name of [SET.vmlinuz, SET.initrd, SET.squashfs])
    await server.putBootFile(name, 'bytes')
  await server.putBootFile('grubx64.efi', 'bytes')
  await server.request(`/pxe/${MAC}`)
  await server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [diskOf('S1')] }))
  const ask = await server.operator()
  const held = undo.move()
  return {
    ...server,
    /** As GRUB does by PXE: its `Host` has no port. */
    send: (method: 'GET' | 'HEAD', target: string, host = '127.0.0.1') =>
      exchange(
        socket.port,
        `${method} ${target} HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: GRUB 2.12-9+deb13u2\r\nConnection: close\r\n\r\n`,
      ),
    port: socket.port,
    async put(body: unknown) {
      assert.is((await ask(`/machines/${MAC}`, asJson(body, 'PUT'))).status, 200)
    },
    async readRecords() {
      return {
        machines: await server.machines.list(),
        events: await server.journal.list({ limit: 200 }),
      }
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

const bodyOf = (text: string) => text.slice(text.indexOf('\r\n\r\n') + 4)
/** GRUB compares byte by byte. */
const lengthOf = (text: string) => /\r\nContent-Length: (\d+)\r\n/.exec(text)?.[1]

test('every file: 200, HTTP/1.1, Content-Length in this very case, by HEAD and by GET', async () => {
  await using server = await startServer()
  const query = `?buildarch=x86_64&platform=efi&server=127.0.0.1:${server.port}&offered=`
  const targets = [
    `/boot/${SET.vmlinuz}?mac=${MAC}`,
    `/boot/${SET.initrd}?mac=${MAC}`,
    '/boot/grubx64.efi',
    '/boot//grubx64.efi',
    '/grub/grub.cfg',
    '/grub//grub.cfg',
    SCRIPT,
    `${SCRIPT}${query}`,
    `/pxe//${MAC}.grub${query}`,
  ]
  for (const target of targets) {
    const head = await server.send('HEAD', target)
    const got = await server.send('GET', target)
    assert.match(head, /^HTTP\/1\.1 200 /, target)
    assert.match(got, /^HTTP\/1\.1 200 /, target)
    assert.is(bodyOf(head), '', target)
    assert.is(lengthOf(head), String(bodyOf(got).length), target)
    assert.is(lengthOf(got), String(bodyOf(got).length), target)
    assert.not.match(got, /transfer-encoding|content-encoding|location:/i)
  }
})

test('a part of a file: 206 with its length, as GRUB asks for after it has looked at the start', async () => {
  await using server = await startServer()
  const target = `GET /boot/${SET.vmlinuz} HTTP/1.1\r\nHost: x\r\nRange: bytes=1-\r\nConnection: close\r\n\r\n`
  const got = await exchange(server.port, target)
  assert.match(got, /^HTTP\/1\.1 206 /)
  assert.equal([lengthOf(got), bodyOf(got)], ['4', 'ytes'])
})

test('files that GRUB and shim look for in vain are a 404 with a length, and the connection goes on', async () => {
  await using server = await startServer()
  const paths = [
    '/boot//revocations_sku.efi',
    '/boot//revocations_sbat.efi',
    '/boot//shim_certificate_0.efi',
    '/grub/x86_64-efi/command.lst',
    '/grub/x86_64-efi/fs.lst',
  ]
  const asked = [
    ...paths.flatMap((path) => [`HEAD ${path}`, `GET ${path}`]),
    'GET /boot/grubx64.efi',
  ]
  const answers = await exchange(
    server.port,
    asked.map((line) => `${line} HTTP/1.1\r\nHost: x\r\n\r\n`).join(''),
    500,
  )
  const codes = [...answers.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, code]) => code)
  assert.equal(codes, [...paths.flatMap(() => ['404', '404']), '200'])
  assert.is(answers.match(/\r\nContent-Length: \d+\r\n/g)?.length, codes.length)
  assert.match(answers, /\r\n\r\nbytes$/)
})

test('no port in Host: it comes from the query, and nothing points elsewhere', async () => {
  await using server = await startServer()
  await server.put(ARMED)
  const { port } = server
  const script = bodyOf(await server.send('GET', `${SCRIPT}?server=127.0.0.1:${port}`))
  assert.match(script, `if linux "(http,127.0.0.1:${port})/boot/${SET.vmlinuz}?mac=${MAC}" `)
  assert.match(script, ` flasher.server=http://127.0.0.1:${port} `)
  assert.match(script, ` flasher.squashfs=http://127.0.0.1:${port}/boot/`)
  const hostile = bodyOf(await server.send('GET', `${SCRIPT}?server=elsewhere.test:1234`))
  assert.not.match(hostile, 'elsewhere')
  assert.is(codeOf(await server.send('GET', `${SCRIPT}?server=127.0.0.1:${port}`, 'a b')), 400)
})

test('HEAD of a script records nothing, and no machine is discovered by it', async () => {
  await using server = await startServer()
  await server.put(ARMED)
  const before = await server.readRecords()
  for (let times = 0; times < 5; times += 1) await server.send('HEAD', SCRIPT)
  await server.send('HEAD', `/boot/${SET.initrd}?mac=${MAC}`)
  await server.send('HEAD', '/pxe/52:54:00:00:00:99.grub')
  assert.equal(await server.readRecords(), before)
})

test('what GRUB asks for again within one boot is not counted, and leaves one event', async () => {
  await using server = await startServer()
  await server.put(ARMED)
  const read = async () => {
    const machine = await server.machines.find(MAC)
    const events = await server.journal.list({ limit: 200 })
    return {
      offers: machine?.cycle.offers,
      noted: events.filter(({ kind }) => kind === 'netboot.pxe.offered').length,
    }
  }
  const { noted } = await read()
  const ask = async (offered: string) =>
    bodyOf(await server.send('GET', `${SCRIPT}?offered=${offered}`))
  assert.match(await ask(''), 'set offered=to-live')
  assert.equal(await read(), { offers: 1, noted: noted + 1 })
  for (let times = 0; times < 20; times += 1) assert.match(await ask('to-live'), 'vmlinuz')
  assert.equal(await read(), { offers: 1, noted: noted + 1 })
  // The machine has restarted, or was sent to its disk before: those are boots.
  assert.match(await ask(''), 'vmlinuz')
  assert.equal(await read(), { offers: 2, noted: noted + 2 })
  assert.match(await ask('to-disk'), 'vmlinuz')
  assert.is((await read()).offers, 3)
})

test('at the limit the last boot may repeat its attempts, and the next one is stopped', async () => {
  await using server = await startServer({ env: { FLASHER_PXE_LOOP_LIMIT: '2' } })
  await server.put(ARMED)
  const ask = async (offered: string) =>
    bodyOf(await server.send('GET', `${SCRIPT}?offered=${offered}`))
  await ask('')
  await ask('')
  for (let times = 0; times < 3; times += 1) assert.match(await ask('to-live'), 'vmlinuz')
  assert.match(await ask(''), 'chainloader')
  const kinds = (await server.journal.list({ limit: 200 })).map(({ kind }) => kind)
  assert.is(kinds.filter((kind) => kind === 'netboot.loop.suspected').length, 1)
})

test('whether Secure Boot was on is what the last list of disks said of it', async () => {
  await using server = await startServer()
  const post = (more: object) =>
    server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [diskOf('S1')], ...more }))
  const read = async () => (await server.machines.find(MAC))?.secure_boot
  assert.is(await read(), null)
  for (const [said, expected] of [
    [{ secure_boot: true }, true],
    [{}, true],
    [{ secure_boot: false }, false],
    [{ secure_boot: 'yes' }, false],
  ] as const) {
    assert.is((await post(said)).status, 204)
    assert.is(await read(), expected, JSON.stringify(said))
  }
  const ask = await server.operator()
  assert.is((await (await ask(`/machines/${MAC}`)).json()).secure_boot, false)
})

test('the address of its BMC is what its live system said last, where that is an address', async () => {
  await using server = await startServer()
  const post = (bmc_address: unknown) =>
    server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [diskOf('S1')], bmc_address }))
  const said = [
    '10.20.0.11',
    undefined,
    'bmc.evil.example',
    '10.20.0.11:80',
    ['10.0.0.1'],
    'fd00::1',
  ]
  for (const each of said) {
    assert.is((await post(each)).status, 204)
    assert.is((await server.machines.find(MAC))?.bmc_address, '10.20.0.11', String(each))
  }
  assert.is((await post('10.20.0.12')).status, 204)
  const ask = await server.operator()
  assert.is((await (await ask(`/machines/${MAC}`)).json()).bmc_address, '10.20.0.12')
})

test('an unknown machine is discovered by GRUB; one that names itself badly is a 400', async () => {
  await using server = await startServer()
  const got = bodyOf(await server.send('GET', '/pxe/52:54:00:00:00:77.grub?buildarch=x86_64'))
  assert.match(got, 'vmlinuz')
  const [found] = (await server.machines.list()).filter(({ mac }) => mac.endsWith('77'))
  assert.equal([found?.arch, found?.boot_mode], ['x86_64', 'flasher-inventory'])
  assert.is(codeOf(await server.send('GET', '/pxe/nonsense.grub')), 400)
})

const [BEGUN, FAULTY] = ['52:54:00:00:00:01', '52:54:00:00:00:02']
const FLASH = {
  boot_mode: 'flasher-flash-once',
  bty_image_ref: REF,
  target_disk_serial: 'S1',
}
/** Nothing that is stored of a machine can be changed, as on a disk without room. */
const NO_ROOM = `CREATE TRIGGER no_room BEFORE UPDATE ON machines
  BEGIN SELECT RAISE(ABORT, 'no room'); END`

test('a machine whose flash has begun asks again until the fault is over; one that has not begun boots its disk', async () => {
  await using server = await createTestServer({
    catalog: [entryOf(REF)],
    env: { FLASHER_PXE_SERVERS: 'http://b' },
  })
  const { vmlinuz, initrd, squashfs } = setOf('x86_64')
  for (const name of [vmlinuz, initrd, squashfs]) await server.putBootFile(name, 'bytes')
  const ask = await server.operator()
  for (const mac of [BEGUN, FAULTY]) await ask(`/machines/${mac}`, asJson(FLASH, 'PUT'))
  const read = async (path: string) => {
    const answer = await server.request(path)
    assert.is(answer.status, 200)
    return await answer.text()
  }
  assert.match(await read(`/pxe/${BEGUN}`), 'flasher.server=')
  await read(`/pxe/${BEGUN}/plan`)
  using file = new DatabaseSync(join(server.dir, 'state.db'))
  file.exec(NO_ROOM)
  const waits = await read(`/pxe/${BEGUN}`)
  assert.match(waits, 'waits: the server has an error, and the disk may be half written')
  assert.match(waits, 'chain --timeout 3000 --replace --autofree http://b/pxe/')
  assert.match(await read(`/pxe/${BEGUN}.grub`), 'may be half written')
  assert.match(await read(`/pxe/${FAULTY}`), /^sanboot |exit/m)
  assert.not.match(await read(`/pxe/${FAULTY}`), 'waits')
  file.exec('DROP TRIGGER no_room')
  for (const mac of [BEGUN, FAULTY]) assert.match(await read(`/pxe/${mac}`), 'flasher.server=', mac)
})

const BOX = macOf(1)
const PAGE = `/ui/machines/${BOX}`

/** The real program without a live system, and one who is logged in. */
async function open() {
  const site = await startSite({ FLASHER_PATHS_BOOT_DIR: '/nonexistent/boot' })
  const { cookie } = await login(site.url, PASSWORD)
  const ask = (path: string, init: RequestInit = {}) => {
    const headers = new Headers(init.headers)
    headers.set('cookie', cookie)
    return fetch(`${site.url}${path}`, { redirect: 'manual', ...init, headers })
  }
  const json = async (path: string, method: string, body: unknown) => {
    const headers = { 'content-type': 'application/json' }
    return await (await ask(path, { method, headers, body: JSON.stringify(body) })).json()
  }
  const [image] = await (await ask('/images')).json()
  await site.boxes.boot(1)
  await json(`/machines/${BOX}`, 'PUT', {
    boot_mode: 'flasher-flash-once',
    bty_image_ref: image.ref,
    target_disk_serial: serialOf(1),
  })
  return {
    ...site,
    ask,
    json,
    text: async (path: string) => await (await ask(path)).text(),
    post: (path: string, fields: Readonly<Record<string, string>>) =>
      ask(path, { method: 'POST', body: new URLSearchParams(fields) }),
  }
}

const BUTTON = `action="${PAGE}/do/boot-disk"`

test('its page says why it waits and asks; the answer is recorded with who gave it', async () => {
  await using site = await open()
  assert.match(await site.boxes.boot(1), 'boots its own disk')
  assert.not.match(await site.text(PAGE), BUTTON)

  await fetch(`${site.url}/pxe/${BOX}/plan`)
  assert.match(await site.boxes.boot(1), 'waits: the disk may be half written')
  const waiting = await site.text(PAGE)
  assert.match(waiting, 'Waiting for a live system')
  assert.match(waiting, BUTTON)

  for (const fields of [{}, { confirm: 'ask' }, { confirm: 'yes', was: '[]' }]) {
    const asked = await site.post(`${PAGE}/do/boot-disk`, { ...fields })
    assert.is(asked.status, 200)
    assert.match(await asked.text(), 'so anybody on the network could have asked for it')
  }
  assert.match(await site.boxes.boot(1), 'waits:', 'a question does nothing')

  const question = await (await site.post(`${PAGE}/do/boot-disk`, { confirm: 'ask' })).text()
  const was = (/name="was" value="([^"]*)"/.exec(question)?.[1] ?? '').replaceAll('&quot;', '"')
  const saved = await site.post(`${PAGE}/do/boot-disk`, { confirm: 'yes', was })
  assert.equal([saved.status, saved.headers.get('location')], [303, `${PAGE}?disk=1`])
  assert.match(await site.boxes.boot(1), 'boots its own disk (disk-allowed)')
  const after = await site.text(PAGE)
  assert.match(after, 'as an operator chose')
  assert.not.match(after, BUTTON)

  await fetch(`${site.url}/pxe/${BOX}/plan`)
  assert.match(await site.boxes.boot(1), 'boots its own disk (disk-allowed)', 'nobody undoes it')
  const { events } = await (await site.ask(`/events?subject_id=${BOX}`)).json()
  const event = events.find(({ kind }: { kind: string }) => kind === 'machine.boot-disk')
  assert.equal([event.actor, event.source_ip], ['operator', '127.0.0.1'])
  assert.match(event.summary, `${BOX} was set to boot its disk`)
})

test('scripts have it as an action, refused where no flash is without an end', async () => {
  await using site = await open()
  const bulk = () => site.json('/machines/bulk', 'POST', { action: 'boot-disk', macs: [BOX] })
  const refused = await bulk()
  assert.equal([refused.done, refused.results[0].result], [0, 'refused'])
  const page = await site.post(`${PAGE}/do/boot-disk`, { confirm: 'ask' })
  assert.match(page.headers.get('location') ?? '', /error=/)
  await fetch(`${site.url}/pxe/${BOX}/plan`)
  assert.is((await bulk()).done, 1)
  assert.match(await site.boxes.boot(1), 'boots its own disk (disk-allowed)')
})

test.run()
