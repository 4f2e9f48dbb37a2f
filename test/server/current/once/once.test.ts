/** Something else booted once, over HTTP: entries, orders, both scripts, files that use an order up, and a machine's own answers. */
import { createHash } from 'node:crypto'
import { readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { SHIM_FILES } from '#appliance/assets.ts'
import { explainUntrusted } from '#engine/bootable/rules/boot-facts.ts'
import { parseVendorKeys } from '#engine/bootable/rules/key-list.ts'
import { DIGEST_DIGITS } from '#engine/inventory/rules/firmware-facts.ts'
import { createEntryFiles } from '#fleet/once/entry-files.ts'
import { isOver } from '#fleet/once/rules/once-order.ts'
import { startOrderExpiry } from '#server/current/machines/flash-gate.ts'
import { disarm } from '#server/current/machines/rules/disarming.ts'
import { openPowerLab } from '#test/support/power/power-lab.ts'
import { parseEfiProgram } from '#engine/bootable/rules/efi-program.ts'
import { askAs, startServer, until } from '#test/support/cluster/servers.ts'
import { lendDatabases } from '#test/support/cluster/postgres.ts'
import { diskOf, entryOf, MAC, REF } from '#test/support/server/machine-fixture.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'

const test = suite('something else, booted once')

const OTHER_MAC = '52:54:00:12:34:57'
const KERNEL = Buffer.from('a memory test')
const INITRD = Buffer.from('an initrd')
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const MEMTEST = {
  processor: 'x86_64',
  kernel: { name: 'memtest.bin', sha256: sha256(KERNEL) },
}
const INSTALLER = {
  ...MEMTEST,
  kernel: { name: 'linux', sha256: sha256(KERNEL) },
  initrd: { name: 'initrd.gz', sha256: sha256(INITRD) },
  arguments: 'auto=true url={{answers}}preseed.cfg ds=nocloud;s={{answers}} --- quiet',
  answers: 'd-i netcfg/get_hostname string {{name}}\n',
}
const ARMED = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
const TEMPLATE = { hostname: '{{name}}', packages: ['vim'] }

const kernel = (name: string, digest = sha256(KERNEL)) => ({ kernel: { name, sha256: digest } })

async function open(env: Readonly<Record<string, string>> = {}) {
  const clock = { seconds: 1_800_000_000 }
  const server = await createTestServer({
    catalog: [entryOf(REF)],
    env,
    now: () => new Date(clock.seconds * 1000),
  })
  const ask = await server.operator()
  await server.putBootFile('memtest.bin', KERNEL)
  await server.putBootFile('linux', KERNEL)
  await server.putBootFile('initrd.gz', INITRD)
  const put = async (path: string, body: unknown) => {
    const answer = await ask(path, asJson(body, 'PUT'))
    assert.is(answer.status, 200, await answer.clone().text())
    return await answer.json()
  }
  await put('/boot-entries/memtest', MEMTEST)
  await put(`/machines/${MAC}`, { ...ARMED, name: 'web-1' })
  return {
    server,
    clock,
    ask,
    put,
    order: async (entry: string, more: object = {}) =>
      await ask(`/machines/${MAC}/once`, asJson({ entry, ...more })),
    script: async (path = `/pxe/${MAC}`) => await (await server.request(path)).text(),
    /** The address of the files, as the script has it. */
    async address() {
      const script = await (await server.request(`/pxe/${MAC}`)).text()
      return /\/pxe\/[-0-9a-f]+\/once\/[\w-]{43}\//.exec(script)?.[0] ?? ''
    },
    get: (path: string) => server.request(path),
    kinds: async () =>
      (await server.journal.list({ limit: 50 })).map(({ kind }: { readonly kind: string }) => kind),
    once: async () => (await (await ask(`/machines/${MAC}`)).json()).once,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

test('a boot entry is kept with checksums that its files have, under conditions, and removed', async () => {
  await using site = await open()
  const kept = await site.ask('/boot-entries/memtest')
  const tag = kept.headers.get('etag') ?? ''
  assert.is((await kept.json()).trouble, null)
  const change = (headers: HeadersInit) =>
    site.ask('/boot-entries/memtest', {
      ...asJson({ ...MEMTEST, note: 'RAM' }, 'PUT'),
      headers: { 'content-type': 'application/json', ...headers },
    })
  assert.is((await change({ 'if-match': '"other"' })).status, 412)
  assert.is((await change({ 'if-match': tag })).status, 200)
  assert.is((await change({ 'if-match': tag })).status, 412)
  assert.is((await change({ 'if-none-match': '*' })).status, 412)
  await site.order('memtest')
  const held = await site.ask('/boot-entries/memtest', { method: 'DELETE' })
  assert.match(await held.text(), '1 machines are set to boot memtest once')
  await site.ask(`/machines/${MAC}/once`, { method: 'DELETE' })
  assert.is((await site.ask('/boot-entries/memtest', { method: 'DELETE' })).status, 204)
  assert.is((await site.ask('/boot-entries/memtest')).status, 404)
  const kinds = await site.kinds()
  for (const kind of ['settings.boot_entry.saved', 'settings.boot_entry.removed'])
    assert.ok(kinds.includes(kind), kind)
})

test('an entry that could not be booted, or could say something else, is refused by name', async () => {
  await using site = await open()
  const refusal = async (fields: object, name = 'bad') => {
    const answer = await site.ask(`/boot-entries/${name}`, asJson({ ...MEMTEST, ...fields }, 'PUT'))
    assert.is(answer.status, 422, JSON.stringify(fields))
    const [first] = (await answer.json()).detail
    return `${first.loc.slice(1).join('.')}: ${first.msg}`
  }
  assert.match(await refusal(kernel('none.bin')), 'the file none.bin is not in the boot folder')
  assert.match(await refusal(kernel('linux', 'a'.repeat(64))), /kernel: the file linux has the SHA/)
  for (const name of ['../state.db', 'a/b', '.active.json', '%2e%2e%2fx', 'x\0y', '..'])
    assert.match(await refusal(kernel(name)), 'kernel.name')
  assert.match(await refusal(kernel('linux', 'A'.repeat(64))), 'kernel.sha256')
  assert.match(await refusal({ kernel: null }), 'either a kernel or an EFI program')
  assert.match(await refusal({ arguments: 'a\nreboot' }), 'must be one line')
  assert.match(await refusal({ arguments: 'a\u2028b' }), 'must be one line')
  for (const word of [
    'a=${net0}',
    '"a b"',
    "a='b'",
    'a\\b',
    '&&',
    ';',
    'a|b',
    '`x`',
    '{{secret.a}}',
  ])
    assert.match(await refusal({ arguments: word }), 'arguments: ', word)
  assert.match(await refusal({ arguments: 'a'.repeat(1201) }), 'arguments')
  assert.match(await refusal({ arguments: '{{answers}} '.repeat(5) }), 'can stand there 4 times')
  assert.match(await refusal({ answers: '{{nam}}' }), '{{nam}} is not a placeholder')
  assert.match(await refusal({ firmware: 'bios', kernel: null, program: MEMTEST.kernel }), 'uefi')
  assert.match(await refusal({}, '..%2fx'), 'at most 64 letters')
})

test('the next boot starts it by iPXE and by GRUB, and the one after that does what is configured', async () => {
  await using site = await open()
  const before = await (await site.ask(`/machines/${MAC}`)).json()
  assert.match(await site.script(), 'flasher-netboot-pc')
  const ordered = await (await site.order('memtest')).json()
  assert.is(ordered.once.entry, 'memtest')
  assert.is(ordered.boot_mode, before.boot_mode)
  // Nobody uses an order up by asking for its script.
  for (let turn = 0; turn < 8; turn += 1) assert.match(await site.script(), 'starts memtest once')
  const path = await site.address()
  const script = await site.script()
  assert.match(script, `kernel http://flasher.test:8080${path}kernel || goto again`)
  assert.not.match(script, 'initrd')
  const grub = await site.script(`/pxe/${MAC}.grub?server=flasher.test:8080`)
  assert.match(grub, `if linux "(http,flasher.test:8080)${path}kernel"; then`)
  assert.is((await site.server.request(`${path}kernel`, { method: 'HEAD' })).status, 200)
  assert.match(await site.script(), 'starts memtest once')
  const sent = await site.get(`${path}kernel`)
  assert.is(await sent.text(), KERNEL.toString())
  assert.ok((await site.once()).used_at)
  // The same boot may fetch it again.
  assert.is((await site.get(`${path}kernel`)).status, 200)
  assert.match(await site.script(), 'flasher-netboot-pc')
  assert.is((await site.get(`${path}kernel`)).status, 404)
  const record = site.server.machines.peek(MAC)
  assert.is(record?.once, null)
  assert.is(record?.saw_flasher_boot, false)
  assert.is(record?.cycle.offers, 2)
  const kinds = await site.kinds()
  assert.is(kinds.filter((kind: string) => kind === 'machine.once.booted').length, 1)
})

test('it ends unused after a day, is cancelled, and comes back by no undo', async () => {
  await using site = await open()
  await site.order('memtest')
  const path = await site.address()
  assert.is((await site.order('memtest')).status, 409)
  await site.ask(`/machines/${MAC}/once`, { method: 'DELETE' })
  assert.is((await site.get(`${path}kernel`)).status, 404)
  assert.is((await site.ask(`/machines/${MAC}/undo`, { method: 'POST' })).status, 409)
  assert.is(await site.once(), undefined)
  await site.order('memtest')
  const again = await site.address()
  site.clock.seconds += 24 * 3600
  assert.is((await site.get(`${again}kernel`)).status, 404)
  assert.match(await site.script(), 'flasher-netboot-pc')
  assert.ok((await site.kinds()).includes('machine.once.expired'))
  assert.is((await site.ask(`/machines/${MAC}/once`, { method: 'DELETE' })).status, 409)
})

test('a locked machine, a capture, a disk that may be half written, and other machines are refused', async () => {
  await using site = await open()
  const refusal = async (entry = 'memtest') => {
    const answer = await site.order(entry)
    assert.is(answer.status, 409)
    return await answer.text()
  }
  const bulk = (action: string, parameters: object = {}) =>
    site.ask('/machines/bulk', asJson({ action, macs: [MAC], parameters }))
  assert.match(await refusal('none'), 'There is no boot entry none')
  await bulk('lock')
  assert.match(await refusal(), 'Locked')
  await bulk('unlock')
  await site.put('/boot-entries/arm', { ...MEMTEST, processor: 'arm64', firmware: 'uefi' })
  await site.script(`/pxe/${MAC}?buildarch=x86_64`)
  assert.match(await refusal('arm'), 'arm is for arm64, and this machine has x86_64')
  const { results } = await (await bulk('once', { entry: 'memtest' })).json()
  assert.equal(results, [{ mac: MAC, result: 'done', reason: null }])
  // Locked since: it waits, and nothing of it is sent.
  await bulk('lock')
  assert.not.match(await site.script(), 'memtest')
  await bulk('unlock')
  assert.match(await site.script(), 'starts memtest once')
  const capture = await bulk('capture', { name: '{mac}.img.zst' })
  assert.match(JSON.stringify(await capture.json()), 'It is set to boot something else once')
  await bulk('disarm')
  assert.is(await site.once(), undefined)
  await site.put(`/machines/${MAC}`, { boot_mode: 'ipxe-exit' })
  await site.put(`/machines/${MAC}`, ARMED)
  const disks = { disks: [diskOf('S1')] }
  assert.is((await site.server.request(`/pxe/${MAC}/inventory`, asJson(disks))).status, 204)
  assert.is((await (await site.get(`/pxe/${MAC}/plan`)).json()).mode, 'flash')
  assert.match(await refusal(), 'the disk may be half written')
})

test('a file that is changed, or gone, is not sent, and the machine does what is configured', async () => {
  await using site = await open()
  await site.order('memtest')
  const path = await site.address()
  const file = join(site.server.boot, 'memtest.bin')
  await writeFile(file, 'another program')
  const changed = await site.get(`${path}kernel`)
  assert.is(changed.status, 409)
  assert.not.match(await changed.text(), 'another program')
  assert.match(await site.script(), 'flasher-netboot-pc')
  await rm(file)
  assert.is((await site.get(`${path}kernel`)).status, 409)
  await writeFile(file, KERNEL)
  assert.is((await site.get(`${path}kernel`)).status, 200)
})

test('a machine finds its own answers below an address: for one boot, the same bytes each time', async () => {
  await using site = await open()
  await site.put('/first-boot/web', TEMPLATE)
  await site.put('/boot-entries/debian', INSTALLER)
  await site.put(`/machines/${MAC}`, { ...ARMED, first_boot: 'web' })
  await site.put(`/machines/${OTHER_MAC}`, { ...ARMED, name: 'web-2', first_boot: 'web' })
  assert.is((await site.order('debian')).status, 200)
  const path = await site.address()
  const script = await site.script()
  const base = `http://flasher.test:8080${path}`
  assert.match(script, `initrd=initrd auto=true url=${base}preseed.cfg ds=nocloud;s=${base} ---`)
  const grub = await site.script(`/pxe/${MAC}.grub?server=flasher.test:8080`)
  assert.match(grub, `"ds=nocloud;s=${base}"`)
  // Before its boot, nobody begins the half hour.
  assert.is((await site.get(`${path}user-data`)).status, 404)
  assert.is((await site.get(`${path}kernel`)).status, 200)
  assert.is((await site.server.request(`${path}user-data`, { method: 'HEAD' })).status, 200)
  assert.is(site.server.machines.peek(MAC)?.once?.answered_at, null)
  const read = async (name: string, at = path) => {
    const answer = await site.get(`${at}${name}`)
    return `${answer.status} ${await answer.text()}`
  }
  assert.is(await read('preseed.cfg'), '200 d-i netcfg/get_hostname string web-1\n')
  assert.match(await read('user-data'), /^200 #cloud-config\n[^]*"hostname": "web-1"/)
  const meta = await read('meta-data')
  assert.match(meta, /^200 instance-id: "flasher-[0-9a-f]{12}"\nlocal-hostname: "web-1"\n$/)
  assert.is(await read('vendor-data'), '200 ')
  assert.is(await read('network-config'), '200 ')
  // Packages are not for Ignition.
  assert.match(await read('config.ign'), '404')
  for (const name of ['none', '__proto__', '..%2fkernel', 'linux'])
    assert.match(await read(name), '404')
  const other = path.replace('34-56', '34-57')
  assert.match(await read('user-data', other), '404')
  assert.match(
    await read(
      'user-data',
      path.replace(/once\/./, (begin) => (begin.endsWith('A') ? 'once/B' : 'once/A')),
    ),
    '404',
  )
  site.clock.seconds += 29 * 60
  assert.is(await read('meta-data'), meta)
  await site.put('/first-boot/web', { ...TEMPLATE, packages: ['ed'] })
  assert.match(await read('user-data'), /^409 .*was changed since/)
  await site.put('/first-boot/web', TEMPLATE)
  assert.match(await read('user-data'), '"vim"')
  site.clock.seconds += 60
  assert.match(await read('user-data'), '404')
  // The machine may still fetch what it boots.
  assert.is((await site.get(`${path}kernel`)).status, 200)
  assert.is((await site.get(`${path}initrd`)).status, 200)
  await site.script()
  assert.match(await read('kernel'), '404')
  assert.ok((await site.kinds()).includes('machine.once.answered'))
})

test('a template with secrets answers only machines that prove their boot', async () => {
  await using site = await open()
  await site.put('/first-boot/web', {
    commands: ['join {{secret.token}}'],
    secrets: { token: 'geheim-77' },
  })
  await site.put('/boot-entries/debian', INSTALLER)
  await site.put(`/machines/${MAC}`, { ...ARMED, first_boot: 'web' })
  assert.match(await (await site.order('debian')).text(), '[pxe] tokens = require')
  site.server.set({ FLASHER_PXE_TOKENS: 'require' })
  assert.is((await site.order('debian')).status, 200)
  const path = await site.address()
  await site.get(`${path}kernel`)
  assert.match(await (await site.get(`${path}user-data`)).text(), 'join geheim-77')
  site.server.set({ FLASHER_PXE_TOKENS: 'off' })
  assert.is((await site.get(`${path}meta-data`)).status, 409)
  assert.not.match(JSON.stringify(await site.server.journal.list({ limit: 50 })), 'geheim')
  assert.not.match(await (await site.ask(`/machines/${MAC}`)).text(), 'geheim')
})

test('Secure Boot is offered only what its shim or its firmware trusts, with the reason', async () => {
  await using site = await open()
  const shim = await readFile('/usr/lib/shim/shimx64.efi.signed')
  await site.server.putBootFile('signed.efi', shim)
  const file = { name: 'signed.efi', sha256: sha256(shim) }
  await site.put('/boot-entries/signed', {
    ...MEMTEST,
    firmware: 'uefi',
    kernel: null,
    program: file,
  })
  const keys = { digests: '', others: 0 }
  const issuer = parseEfiProgram(shim)?.signatures[0]?.issuer
  const certificate = { fingerprint: '0'.repeat(64), name: 'Microsoft', subject: issuer }
  const facts = { kind: 'uefi', processor: 'x64', secure_boot: true, sbat_level: null }
  const report = async (certificates: readonly object[]) => {
    const revoked = { ...keys, certificates: [] }
    const firmware = { ...facts, allowed: { ...keys, certificates }, revoked }
    const body = { disks: [diskOf('S1')], secure_boot: true, firmware }
    const answer = await site.server.request(`/pxe/${MAC}/inventory`, asJson(body))
    assert.is(answer.status, 204, await answer.clone().text())
  }
  await report([])
  assert.match(await (await site.order('memtest')).text(), 'it is no EFI program')
  assert.match(
    await (await site.order('signed')).text(),
    /does not start signed\.efi: it is signed by/,
  )
  await report([certificate])
  const trusted = await site.order('signed')
  assert.is(trusted.status, 200, await trusted.clone().text())
  // A program that comes back has run.
  const grub = await site.script(`/pxe/${MAC}.grub?server=flasher.test:8080`)
  assert.match(grub, /if chainloader .*\n +boot\n +break\n/)
  assert.match(await site.script(), '\nboot && goto otherwise || goto otherwise\n')
})

test('a shim names whom it trusts and what it has revoked: kernels of Debian start', async () => {
  const shim = await readFile('/usr/lib/shim/shimx64.efi.signed')
  const keys = parseVendorKeys(shim)
  assert.equal(
    keys?.trusted.certificates.map(({ name }) => name),
    ['Debian Secure Boot CA'],
  )
  assert.ok((keys?.revoked.digests.length ?? 0) >= 100 * DIGEST_DIGITS)
  const signed = await readFile('/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed')
  const program = parseEfiProgram(signed)
  if (program === null || keys === null) throw new Error('Debian signs them otherwise')
  assert.is(explainUntrusted(program, null, keys), null)
  const digest = keys.revoked.digests.slice(0, DIGEST_DIGITS).padEnd(64, '0')
  assert.is(explainUntrusted({ ...program, digest }, null, keys), 'the shim has revoked it')
  for (let bytes = 0; bytes < shim.length; bytes += 9973) parseVendorKeys(shim.subarray(0, bytes))

  await using site = await open()
  await site.server.putBootFile(SHIM_FILES.x86_64, shim)
  await site.server.putBootFile('vmlinuz', signed)
  await site.put('/boot-entries/debian', { ...MEMTEST, ...kernel('vmlinuz', sha256(signed)) })
  const disks = { disks: [diskOf('S1')], secure_boot: true }
  assert.is((await site.server.request(`/pxe/${MAC}/inventory`, asJson(disks))).status, 204)
  assert.is((await site.order('memtest')).status, 409)
  const ordered = await site.order('debian')
  assert.is(ordered.status, 200, await ordered.clone().text())
})

test('an entry stays what it was while machines wait for it', async () => {
  await using site = await open()
  await site.order('memtest')
  const change = (more: object) =>
    site.ask('/boot-entries/memtest', asJson({ ...MEMTEST, ...more }, 'PUT'))
  const held = await change(kernel('linux'))
  assert.is(held.status, 422)
  assert.match(
    await held.text(),
    `machines are set to boot memtest once: ${MAC}. Cancel that first`,
  )
  assert.is((await change({ note: 'RAM' })).status, 200)
  await site.ask(`/machines/${MAC}/once`, { method: 'DELETE' })
  assert.is((await change(kernel('linux'))).status, 200)
})

test('a machine that finds the entry to be for others ends its order, and does what is configured', async () => {
  await using site = await open()
  await site.put('/boot-entries/bios', { ...MEMTEST, firmware: 'bios' })
  await site.order('bios')
  const [, path = '', unfit = ''] =
    /chain --replace .*(\/pxe\/[^ $]+)\?.*(&unfit=[\w-]{43})/.exec(await site.script()) ?? []
  const grub = await site.script(`/pxe/${MAC}.grub?server=flasher.test:8080`)
  assert.match(grub, `platform=$grub_platform&server=flasher.test:8080${unfit}"\nfi\n`)
  for (const other of [`${unfit}A`, unfit.replace(/.$/, '!'), '&unfit=hidden', '&unfit='])
    assert.match(await site.script(`${path}?platform=efi${other}`), 'starts bios once')
  const next = await site.script(`${path}?platform=efi&buildarch=x86_64${unfit}`)
  assert.match(next, 'flasher-netboot-pc')
  assert.is(await site.once(), undefined)
  const [event] = await site.server.journal.list({ kind: 'machine.once.unfit', limit: 1 })
  assert.match(event?.summary ?? '', 'firmware efi, processor x86_64')
})

test('the bytes that are sent are those that were hashed', async () => {
  await using site = await open()
  const file = join(site.server.boot, 'memtest.bin')
  await site.order('memtest')
  const path = await site.address()
  const before = await stat(file)
  await writeFile(file, 'a memory tesT')
  await utimes(file, before.atime, before.mtime)
  assert.is((await site.get(`${path}kernel`)).status, 409)
  await writeFile(file, KERNEL)
  const bootFiles = { dir: site.server.boot }
  await using files = createEntryFiles({ bootFiles, entries: () => [], changed: () => undefined })
  const opened = await files.open('memtest.bin', sha256(KERNEL))
  const piece = Buffer.alloc(4)
  const { signal } = new AbortController()
  assert.is(await opened?.read(piece, 0, signal), 4)
  await writeFile(file, 'a memory tesT')
  let said: unknown = null
  await opened?.read(piece, 4, signal).catch((thrown: unknown) => (said = thrown))
  assert.match(String(said), 'changed while it was sent')
  await opened?.close()
  await opened?.close()
})

test('a file that cannot be read is one that is missing', async () => {
  const mem = { ...MEMTEST, kernel: { name: 'mem', sha256: sha256(KERNEL) } }
  const entry = { initrd: null, program: null, ...mem }
  const given = { bootFiles: { dir: '/proc/self' }, changed: () => undefined }
  await using files = createEntryFiles({ ...given, entries: () => [entry] })
  await files.look()
  assert.match(files.findTrouble(entry) ?? '', 'mem is not in the boot folder, or cannot be read')
  assert.is(await files.open('mem', sha256(KERNEL)), null)
})

test('only who fetches it from its first byte uses the order up', async () => {
  await using site = await open()
  await site.order('memtest')
  const path = `${await site.address()}kernel`
  const ask = async (headers: Readonly<Record<string, string>>) =>
    (await site.server.request(path, { headers })).status
  const etag = (await site.server.request(path, { method: 'HEAD' })).headers.get('etag') ?? ''
  assert.is(await ask({ 'if-none-match': etag }), 304)
  assert.is(await ask({ range: 'bytes=99-' }), 416)
  assert.is(await ask({ range: 'bytes=2-4' }), 206)
  assert.is((await site.once()).used_at, null)
  assert.is(await ask({ range: 'bytes=0-4' }), 206)
  const record = site.server.machines.peek(MAC)
  if (record === null) throw new Error('it is gone')
  assert.ok(record.once?.used_at)
  // It is no order any more, and goes after a day.
  const now = () => new Date(site.clock.seconds * 1000).toISOString()
  assert.is(disarm({ ...record, boot_mode: 'ipxe-exit' }, now()).once, record.once)
  assert.not(record.once !== null && isOver(record.once, now()))
  site.clock.seconds += 24 * 3600
  using _expiry = startOrderExpiry(site.server.site, {})
  await until(async () => site.server.machines.peek(MAC)?.once === null, 10_000)
})

test('with power, nobody flashes what boots something else once', async () => {
  await using lab = await openPowerLab()
  await lab.server.putBootFile('memtest.bin', KERNEL)
  assert.is((await lab.ask('/boot-entries/memtest', asJson(MEMTEST, 'PUT'))).status, 200)
  await lab.ask(`/machines/${MAC}`, asJson(ARMED, 'PUT'))
  await lab.ask(`/machines/${MAC}/once`, asJson({ entry: 'memtest' }))
  const flash = await lab.ask(`/machines/${MAC}/flash`, asJson({ power: true }))
  assert.is(flash.status, 409)
  assert.match(await flash.text(), 'It is set to boot something else once. Cancel that first.')
  const bulk = { action: 'flash', macs: [MAC], power: true }
  const { results } = await (await lab.ask('/machines/bulk', asJson(bulk))).json()
  assert.match(results[0].reason, 'It is set to boot something else once')
  assert.is(lab.fake.connections(), 0)
})

const postgres = lendDatabases(test)

test('two servers: entries and orders are kept, and the next one to lead goes on', async () => {
  const url = postgres.urlOf(await postgres.create())
  await using first = await startServer(url)
  await first.leads()
  await using second = await startServer(url)
  await second.standsBy()
  for (const { home } of [first, second]) await writeFile(home.at('state/boot/memtest.bin'), KERNEL)
  const ask = await askAs(second)
  const send = async (path: string, method: string, body: unknown) => {
    const answer = await ask(path, { method, body: JSON.stringify(body) })
    assert.is(answer.status, 200, await answer.clone().text())
  }
  await send('/boot-entries/memtest', 'PUT', MEMTEST)
  await send(`/machines/${MAC}`, 'PUT', { boot_mode: 'ipxe-exit' })
  await send(`/machines/${MAC}/once`, 'POST', { entry: 'memtest' })
  const script = async () => await (await fetch(`${second.url}/pxe/${MAC}`)).text()
  const path = /\/pxe\/[-0-9a-f]+\/once\/[\w-]{43}\//.exec(await script())?.[0] ?? ''
  first.kill('SIGKILL')
  await until(async () => (await script()).includes(path), 60_000)
  const sent = await fetch(`${second.url}${path}kernel`)
  assert.is(await sent.text(), KERNEL.toString())
  assert.not.match(await script(), 'memtest')
})

test.run()
