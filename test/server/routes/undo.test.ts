/** A minute of Undo over HTTP: values come back, nothing is armed by them, and whatever changed since wins. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createEventRecorder } from '#server/routes/fleet.ts'
import { openBatchLab, RACK } from '#test/support/batch/batch-lab.ts'
import { entryOf, OTHER_REF, REF } from '#test/support/server/machine-fixture.ts'
import { asJson, createTestServer, readJson } from '#test/support/server/server.ts'

const test = suite('undo over HTTP')
const [MAC = '', OTHER = ''] = RACK
const FLASH = { boot_mode: 'flasher-flash-once' }

async function open() {
  const clock = { ms: Date.parse('2026-11-27T01:00:00Z') }
  const lab = await openBatchLab({ now: () => new Date(clock.ms) })
  return {
    ...lab,
    wait: (seconds: number) => void (clock.ms += seconds * 1000),
    undo: (mac = MAC) => lab.ask(`/machines/${mac}/undo`, { method: 'POST' }),
    machine: (mac = MAC) => readJson(lab.ask(`/machines/${mac}`)),
    [Symbol.asyncDispose]: () => lab[Symbol.asyncDispose](),
  }
}

test('arming is undone: the machine is as it was, and boots its disk', async () => {
  await using lab = await open()
  lab.wait(61)
  await lab.put(MAC, FLASH)
  assert.is((await readJson(lab.undo())).boot_mode, 'ipxe-exit')
  assert.is(await lab.boot(MAC), 'ipxe-exit')
  assert.is((await lab.undo()).status, 409, 'once')
})

for (const [what, edit] of [
  ['a mode', { boot_mode: 'ipxe-exit' }],
  ['an image', { ...FLASH, bty_image_ref: OTHER_REF }],
  ['a disk', { ...FLASH, target_disk_serial: 'S2' }],
] as const) {
  test(`undoing ${what} of an armed machine brings the values back, disarmed`, async () => {
    await using lab = await open()
    await lab.put(MAC, FLASH)
    await lab.put(MAC, edit)
    const { boot_mode, bty_image_ref: ref, target_disk_serial: serial } = await readJson(lab.undo())
    assert.equal([boot_mode, ref, serial], ['flasher-flash-once', REF, 'S1'])
    assert.is(await lab.boot(MAC), 'withdrawn')
    assert.is((await lab.plan(MAC)).mode, 'exit')
  })
}

test('undoing a label of an armed machine leaves its order as it is', async () => {
  await using lab = await open()
  await lab.put(MAC, FLASH)
  await lab.bulk('label', { add: ['x'] }, [MAC])
  assert.equal((await readJson(lab.undo())).labels, ['rack-03'])
  assert.is(await lab.boot(MAC), 'flash')
})

test('undoing a lock or an unlock arms nothing', async () => {
  await using lab = await open()
  for (const actions of [['lock'], ['lock', 'unlock']]) {
    await readJson(lab.ask(`/machines/${MAC}`, asJson({ ...(await bodyOf(lab)), ...FLASH }, 'PUT')))
    await readJson(lab.ask(`/machines/${MAC}/flash`, asJson({})))
    for (const action of actions) await lab.bulk(action, {}, [MAC])
    await readJson(lab.undo())
    assert.is((await lab.plan(MAC)).mode, 'exit', actions.join())
    await lab.bulk('unlock', {}, [MAC])
    assert.is((await lab.plan(MAC)).mode, 'exit', actions.join())
  }
})

test('a disarm brings nothing back: undo says so, of one machine and of a batch', async () => {
  await using lab = await open()
  await lab.put(MAC, FLASH)
  lab.wait(1)
  const { batch } = await lab.bulk('disarm', {}, [MAC])
  assert.equal(lab.server.site.fleet.listUndoable(batch), [], 'no button offers it')
  assert.is((await readJson(lab.act(batch, 'undo'))).done, 0)
  const before = await lab.machine()
  const refused = await lab.undo()
  assert.is(refused.status, 409)
  assert.match((await refused.json()).detail, 'undo never arms one. Arm it again.')
  assert.equal(await lab.machine(), before)
  assert.is((await lab.plan(MAC)).mode, 'exit')
})

const bodyOf = async (lab: { machine(): Promise<Record<string, unknown>> }) => {
  const { bty_image_ref, labels, target_disk_serial } = await lab.machine()
  return { bty_image_ref, labels, target_disk_serial }
}

test('a deletion answers 204, then 404, and is undone with its hardware, disarmed', async () => {
  await using lab = await open()
  await lab.put(MAC, FLASH)
  const disks = [{ path: '/dev/sda', serial: 'S1' }]
  const lshw = { id: 'box', class: 'system' }
  await lab.server.request(`/pxe/${MAC}/inventory`, asJson({ disks, lshw }))
  assert.is((await lab.ask(`/machines/${MAC}`, { method: 'DELETE' })).status, 204)
  assert.is((await lab.ask(`/machines/${MAC}`)).status, 404)
  const { boot_mode, labels } = await readJson(lab.undo())
  assert.equal([boot_mode, labels], ['flasher-flash-once', ['rack-03']])
  assert.is((await readJson(lab.ask(`/machines/${MAC}/lshw.json`))).id, 'box')
  assert.is((await lab.plan(MAC)).mode, 'exit')
})

test('it is refused after a minute, a contact, an edit of somebody else, and a new discovery', async () => {
  await using lab = await open()
  await lab.put(MAC, FLASH)
  lab.wait(61)
  assert.is((await lab.undo()).status, 409)

  await lab.put(MAC, { ...FLASH, bty_image_ref: OTHER_REF })
  await lab.boot(MAC)
  assert.is((await lab.undo()).status, 409, 'it was offered a boot')

  await lab.put(OTHER, FLASH)
  const { token } = await (
    await lab.ask('/tokens', asJson({ name: 'ci', scopes: ['machines'] }))
  ).json()
  const asToken = { method: 'POST', headers: { authorization: `Bearer ${token}` } }
  const refused = await lab.server.request(`/machines/${OTHER}/undo`, asToken)
  assert.is(refused.status, 409, 'it is not theirs')

  await lab.ask(`/machines/${OTHER}`, { method: 'DELETE' })
  await lab.boot(OTHER)
  assert.is((await lab.undo(OTHER)).status, 409, 'it came again')
})

test('a deletion that is undone knows of the plan that was on its way to the disk', async () => {
  await using lab = await open()
  await lab.put(MAC, FLASH)
  await lab.boot(MAC)
  const { fleet, machines } = lab.server.site
  const before = machines.peekAll().find(({ mac }) => mac === MAC)
  if (before === undefined) throw new Error(MAC)
  const cycle = { ...lab.server.machines.peek(before.mac)?.cycle, planned: true }
  const planned = Object.assign(structuredClone(before), { cycle })
  const given = fleet.commit(
    before.mac,
    { actor: 'pxe-client', ip: null },
    machines.newest(before.mac),
    { machine: planned, events: [] },
  )
  await fleet.remove(before.mac, { actor: 'operator', ip: null })
  assert.is(await given, true)
  await readJson(lab.undo())
  assert.is(await lab.boot(MAC), 'held-back')
})

test('a batch is undone machine by machine; what has come since stays', async () => {
  await using lab = await open()
  const id = await lab.arm()
  const { fleet } = lab.server.site
  assert.is(fleet.listUndoable(id).length, 4)
  await lab.boot(MAC)
  assert.is(fleet.listUndoable(id).length, 3, 'the button says what it does')
  const { done } = await readJson(lab.act(id, 'undo'))
  assert.is(done, 3)
  assert.is((await lab.machine(OTHER)).boot_mode, 'ipxe-exit')
  assert.is((await lab.machine()).boot_mode, 'flasher-flash-once')
})

test('each is named but those of every contact, which say each reason once', async () => {
  const said: string[] = []
  let why: string | null = 'the database is away'
  const recordOrCount = async () => {
    if (why !== null) throw new Error(why)
  }
  const log = {
    ...console,
    error: (text: string) => said.push(text),
  }
  const record = createEventRecorder({ journal: { recordOrCount }, log })
  const tell = async (kind: 'netboot.pxe.offered' | 'machine.flash_started') => {
    const by = { subject_id: MAC, actor: 'pxe-client', ip: '192.0.2.1' } as const
    await record([{ kind, summary: 'an event', details: {} }], by)
    await new Promise(setImmediate)
  }
  for (let contact = 0; contact < 3; contact += 1) await tell('netboot.pxe.offered')
  await tell('machine.flash_started')
  await tell('machine.flash_started')
  why = 'another server leads'
  await tell('netboot.pxe.offered')
  why = null
  await tell('netboot.pxe.offered')
  why = 'another server leads'
  await tell('netboot.pxe.offered')
  assert.equal(said, [
    'event netboot.pxe.offered: the database is away',
    'event machine.flash_started: the database is away',
    'event machine.flash_started: the database is away',
    'event netboot.pxe.offered: another server leads',
    'event netboot.pxe.offered: another server leads',
  ])
})

const WAITED_FLASH = {
  boot_mode: 'flasher-flash-once',
  bty_image_ref: REF,
  target_disk_serial: 'S1',
}

async function openWait() {
  const server = await createTestServer({ catalog: [entryOf(REF), entryOf(OTHER_REF)] })
  const ask = await server.operator()
  await ask(`/machines/${MAC}`, asJson(WAITED_FLASH, 'PUT'))
  const events = async () => (await server.journal.list({ kind: 'machine.flash', limit: 9 })).length
  return {
    server,
    ask,
    plan: () => server.request(`/pxe/${MAC}/plan`),
    done: (query = '') => server.request(`/pxe/${MAC}/done${query}`, { method: 'POST' }),
    /** Armed once the answer of another request has come. */
    async wait(seconds = 60) {
      const before = await events()
      const waiting = ask(`/machines/${MAC}/flash`, asJson({ wait: seconds }))
      while ((await events()) === before) await new Promise((resolve) => setTimeout(resolve, 5))
      return async () => (await (await waiting).json()).outcome
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
type Site = Awaited<ReturnType<typeof openWait>>

const ENDS: Readonly<Record<string, readonly [string, (site: Site) => Promise<unknown>]>> = {
  'the machine is deleted': ['deleted', ({ ask }) => ask(`/machines/${MAC}`, { method: 'DELETE' })],
  'it is disarmed': [
    'disarmed',
    ({ ask }) =>
      ask(`/machines/${MAC}`, asJson({ ...WAITED_FLASH, boot_mode: 'ipxe-exit' }, 'PUT')),
  ],
  'it is given another image': [
    'replaced',
    ({ ask }) =>
      ask(`/machines/${MAC}`, asJson({ ...WAITED_FLASH, bty_image_ref: OTHER_REF }, 'PUT')),
  ],
  'it is armed once more': [
    'replaced',
    ({ ask }) => ask(`/machines/${MAC}/flash`, { method: 'POST' }),
  ],
  'it is flashed': [
    'flashed',
    async ({ plan, done }) => {
      await plan()
      await done()
    },
  ],
  'its flash fails': [
    'failed',
    async ({ plan, server }) => {
      await plan()
      await server.request(`/pxe/${MAC}/status`, asJson({ status: 'failed', reason: 'no space' }))
    },
  ],
}
for (const [name, [outcome, end]] of Object.entries(ENDS)) {
  test(`${outcome}: ${name}`, async () => {
    await using site = await openWait()
    const answer = await site.wait()
    await end(site)
    assert.is(await answer(), outcome)
  })
}

test('a done of the flash before ends no wait', async () => {
  await using site = await openWait()
  await site.plan()
  await site.done()
  const answer = await site.wait(0.5)
  await site.done()
  assert.is(await answer(), 'timeout')
  assert.is((await (await site.plan()).json()).mode, 'flash')
})

test('a done that names its run ends its own order, after the next was begun too', async () => {
  await using site = await openWait()
  await site.plan()
  const run = 'run-00000001'
  const post = (phase: string) =>
    site.server.request(
      `/pxe/${MAC}/progress`,
      asJson({ run, phase, bytes_read: 1, bytes_written: 1, total_bytes: 4, rate: 1 }),
    )
  await post('write')
  const answer = await site.wait(0.5)
  await site.plan()
  await site.done(`?run=${run}`)
  assert.is(await answer(), 'timeout')
  assert.is((await (await site.plan()).json()).mode, 'flash')
  const { runs } = await (await site.ask(`/runs?mac=${MAC}`)).json()
  assert.equal(
    runs.map((each: { id: string; state: string }) => [each.id, each.state]),
    [[run, 'done']],
  )
  assert.is(Object.hasOwn(runs[0], 'order'), false)
})

test.run()
