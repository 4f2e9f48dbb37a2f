/** The pages of what is booted once: entries of administrators, the card of a machine, its question, and many machines. */
import { createHash } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { addPerson, asForm, createCurrentServer } from '#test/support/people/current-server.ts'
import { REF } from '#test/support/server/machine-fixture.ts'
import { asJson } from '#test/support/server/server.ts'

const test = suite('pages of what is booted once')
const MACS = ['52:54:00:00:00:01', '52:54:00:00:00:02'] as const
const KERNEL = 'a memory test'
const FORM = {
  name: 'memtest',
  processor: 'x86_64',
  firmware: 'any',
  kernel: 'memtest.bin',
  kernel_sha256: createHash('sha256').update(KERNEL).digest('hex'),
}

async function open() {
  const server = await createCurrentServer()
  const admin = await server.operator()
  await server.putBootFile('memtest.bin', KERNEL)
  for (const mac of MACS)
    assert.is(
      (await admin(`/machines/${mac}`, asJson({ boot_mode: 'ipxe-exit' }, 'PUT'))).status,
      200,
    )
  const otto = await addPerson(server, 'otto', 'operate')
  const read = async (ask: typeof admin, path: string) => await (await ask(path)).text()
  return { server, admin, otto, read, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

test('an administrator adds an entry, and what is wrong comes back as it was typed', async () => {
  await using site = await open()
  const { admin, otto, read } = site
  const save = (fields: object) => admin('/ui/boot-entries/save', asForm({ ...FORM, ...fields }))
  assert.match(await read(admin, '/ui/boot-entries'), 'No boot entries')
  assert.is((await otto('/ui/boot-entries/save', asForm(FORM))).status, 403)
  assert.not.match(await read(otto, '/ui/boot-entries'), 'Add boot entry')
  const wrong = await save({ kernel_sha256: 'a'.repeat(64) })
  assert.is(wrong.status, 303)
  const back = await read(admin, wrong.headers.get('location') ?? '')
  assert.match(back, 'The file memtest.bin has the SHA-256')
  assert.is((await save({})).headers.get('location'), '/ui/boot-entries?saved=memtest')
  const listed = await read(admin, '/ui/boot-entries')
  assert.match(listed, 'memtest.bin')
  assert.match(listed, 'Refused where Secure Boot is')
  const gone = await admin('/ui/boot-entries/memtest/remove', asForm({ confirm: 'yes' }))
  assert.is(gone.headers.get('location'), '/ui/boot-entries?removed=memtest')
})

test('a machine, and many: the question says what an installer may do, and the page what is next', async () => {
  await using site = await open()
  const { admin, otto, read } = site
  await admin('/ui/boot-entries/save', asForm(FORM))
  const [mac] = MACS
  const page = `/ui/machines/${mac}`
  assert.match(await read(otto, page), 'Boot something else once')
  const order = (confirm: string) => otto(`${page}/do/once`, asForm({ entry: 'memtest', confirm }))
  assert.match(await (await order('ask')).text(), 'An installer may erase every disk')
  assert.match(await (await otto(`/machines/${mac}`)).text(), /^(?!.*"once")/)
  assert.is((await order('yes')).headers.get('location'), `${page}?once=1`)
  const next = await read(otto, page)
  assert.match(next, 'Boots memtest once.')
  assert.match(next, 'Cancel the other boot')
  assert.match(await read(otto, '/ui/machines'), 'boot once')
  assert.match(await read(otto, '/ui/machines?q=state:once'), mac)
  assert.match(await read(admin, '/ui/boot-entries'), '1 machine')
  const saved = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
  await admin(`/machines/${mac}`, asJson(saved, 'PUT'))
  const flash = (more: object) =>
    otto(`${page}/do/flash`, asForm({ confirm: 'S1', was: '', ...more }))
  assert.match(
    await (await flash({ power: '1' })).text(),
    'It is set to boot something else once. Cancel that first.',
  )
  await otto(`${page}/do/cancel-once`, asForm({}))
  const bulk = (fields: Readonly<Record<string, string>>) => {
    const body = new URLSearchParams({ action: 'once', ...fields })
    for (const each of MACS) body.append('macs', each)
    return otto('/ui/machines/bulk', { method: 'POST', body })
  }
  assert.match(await (await bulk({})).text(), 'memtest (x86_64, BIOS and UEFI)')
  const asked = await (await bulk({ entry: 'memtest' })).text()
  assert.match(asked, 'An installer may erase every disk')
  assert.match(asked, 'the number of machines')
  const done = await (await bulk({ entry: 'memtest', sure: '2' })).text()
  assert.match(done, 'Ordered 2 machines to boot something else once')
  for (const each of MACS)
    assert.match(await read(otto, `/ui/machines/${each}`), 'Boots memtest once')
})

test.run()
