/** The power of machines over HTTP: what is set, what is done, what is refused, what goes on record. */
import { readFile, stat } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openPowerLab, OTHER } from '#test/support/power/power-lab.ts'
import { BMC_USER } from '#test/support/power/redfish-fake.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { MAC, macOf, REF } from '#test/support/server/machine-fixture.ts'
import { asJson, readJson } from '#test/support/server/server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('power over HTTP')
const POWER = `/machines/${MAC}/power`

test('is set, turned on from the network, seen with its age, and on record', async () => {
  await using lab = await openPowerLab()
  assert.is((await lab.ask(POWER)).status, 404)
  const view = await lab.set({ credential: BMC_USER })
  assert.is(view.state, 'unknown')
  assert.is(view.user, 'admin')
  assert.not.match(JSON.stringify(view), /s3cret/)
  const done = await readJson(lab.ask(POWER, asJson({ action: 'on', boot: 'network' })))
  assert.equal(done, { state: 'on', confirmed: true, changed: true, boot: 'set' })
  const seen = await readJson(lab.ask(POWER))
  assert.is(seen.state, 'on')
  assert.ok(seen.age_seconds <= 5 && seen.seen_at !== null)
  const events = await lab.events()
  assert.equal(
    events.map(({ kind }) => kind),
    ['machine.power.on'],
  )
  const { mode } = await stat(lab.file)
  assert.is(mode & 0o777, 0o600)
  assert.match(await readFile(lab.file, 'utf8'), /s3cret/)
})

test('credentials: its own, then that of its label, then that of all', async () => {
  await using lab = await openPowerLab()
  await lab.set()
  const refused = await lab.ask(POWER, asJson({ action: 'read' }))
  assert.is(refused.status, 502)
  const put = (path: string, body: object) =>
    lab.ask(`/power/credentials${path}`, asJson(body, 'PUT'))
  assert.is((await put('', { user: 'nobody', password: 'x' })).status, 204)
  assert.is((await readJson(lab.ask(POWER))).credential_from, 'all')
  const unlisted = await put('/labels/rack-1', BMC_USER)
  assert.is(unlisted.status, 422)
  assert.match((await unlisted.json()).detail, '/power/credentials/labels/rack-1 {"addresses"')
  const addresses = ['127.0.0.1']
  assert.is((await put('/labels/rack-1', { ...BMC_USER, addresses })).status, 204)
  assert.is((await put('/labels/rack-1', { password: BMC_USER.password })).status, 204)
  const view = await readJson(lab.ask(POWER))
  assert.equal([view.credential_from, view.credential_label], ['label', 'rack-1'])
  await readJson(lab.ask(POWER, asJson({ action: 'read' })))
  assert.equal(await readJson(lab.ask('/power/credentials')), {
    all: 'nobody',
    labels: { 'rack-1': 'admin' },
    addresses: { 'rack-1': addresses },
  })
  await lab.set({ credential: { user: 'own', password: 'y' } })
  assert.is((await readJson(lab.ask(POWER))).credential_from, 'machine')
  // Another address: what was given for the first one is not sent there.
  const moved = await readJson(
    lab.ask(POWER, asJson({ way: 'redfish', address: 'http://127.0.0.9:1' }, 'PUT')),
  )
  assert.is(moved.credential_from, 'label')
})

test('the password of a label goes to the addresses alone that are listed for it', async () => {
  await using lab = await openPowerLab()
  await lab.set()
  const path = '/power/credentials/labels/rack-1'
  const list = async (...addresses: readonly string[]) =>
    assert.is((await lab.ask(path, asJson({ ...BMC_USER, addresses }, 'PUT'))).status, 204)
  const read = async () => await lab.ask(POWER, asJson({ action: 'read' }))
  for (const others of [['10.20.0.0/24'], ['0.0.0.0/0'], ['127.0.0.2']]) {
    await list(...others)
    const { detail, failure } = await (await read()).json()
    assert.is(failure.kind, 'address')
    assert.match(detail, `the password of the label rack-1 may not be sent to 127.0.0.1`)
    assert.match(detail, `PUT ${path} {"addresses"`)
  }
  assert.is(lab.fake.asked.length, 0, 'nothing was asked')
  await list('10.20.0.0/24', '127.0.0.0/8')
  assert.is((await read()).status, 200)
})

test('who does not administrate gives no machine the password of another rack, and takes none', async () => {
  await using lab = await openPowerLab()
  await lab.set()
  const secret = { ...BMC_USER, addresses: ['127.0.0.1'] }
  await lab.ask('/power/credentials/labels/secret', asJson(secret, 'PUT'))
  const operate = await lab.token('read', 'machines', 'flash', 'power')
  const change = async (add: string, remove: string) => {
    const parameters = { add: [add], remove: [remove] }
    const body = asJson({ action: 'label', macs: [MAC], parameters })
    const [{ result, reason }] = (await readJson(operate('/machines/bulk', body))).results
    return [result, reason]
  }
  const [result, reason] = await change('secret', 'none')
  assert.is(result, 'refused')
  assert.match(reason, 'The label secret has a password for BMCs')
  assert.equal(await change('free', 'rack-1'), ['done', null])
  const whole = { boot_mode: 'ipxe-exit', labels: ['secret'] }
  assert.is((await operate(`/machines/${MAC}`, asJson(whole, 'PUT'))).status, 403)
  assert.is((await lab.ask(`/machines/${MAC}`, asJson(whole, 'PUT'))).status, 200)
  assert.is((await change('free', 'secret'))[0], 'refused')
  assert.is((await operate(`/machines/${MAC}/undo`, { method: 'POST' })).status, 409)
  assert.is((await readJson(lab.ask(POWER))).credential_label, 'secret')
})

test('a token needs the scope power, and only admin says where a BMC is', async () => {
  await using lab = await openPowerLab()
  await lab.set({ credential: BMC_USER })
  const machines = await lab.token('read', 'machines', 'flash')
  assert.is((await machines(POWER, asJson({ action: 'on' }))).status, 403)
  assert.is((await machines(POWER, asJson(lab.bmc, 'PUT'))).status, 403)
  const flash = asJson({ power: true })
  assert.is((await machines(`/machines/${MAC}/flash`, flash)).status, 403)
  const power = await lab.token('power')
  assert.is((await power(POWER, asJson({ action: 'on' }))).status, 200)
  assert.is((await power(POWER, asJson(lab.bmc, 'PUT'))).status, 403)
  assert.is((await power('/power/credentials')).status, 403)
})

test('what is being written is cut off only where that is asked twice, its neighbour at the outlet, too', async () => {
  await using lab = await openPowerLab()
  await lab.set({ credential: BMC_USER, outlet: 'pdu-1/7' })
  await lab.set({ credential: BMC_USER, outlet: 'pdu-1/7' }, OTHER)
  assert.equal((await readJson(lab.ask(POWER))).shares_outlet_with, [OTHER])
  lab.fake.state.isOn = true
  await lab.begin()
  for (const mac of [MAC, OTHER]) {
    for (const action of ['off', 'restart']) {
      const refused = await lab.ask(`/machines/${mac}/power`, asJson({ action }))
      assert.is(refused.status, 409)
      assert.match((await refused.json()).detail, /being written/)
    }
  }
  assert.is(lab.fake.state.isOn, true)
  await readJson(lab.ask(POWER, asJson({ action: 'off', even_while_writing: true })))
  assert.is(lab.fake.state.isOn, false)
})

for (const action of ['off', 'restart'] as const) {
  test(`${action}: a run that begins after it was asked, and before the power is cut, is not cut off`, async () => {
    await using lab = await openPowerLab()
    await lab.set({ credential: BMC_USER })
    lab.fake.state.isOn = true
    lab.fake.lies.slowMs = 100
    const asking = lab.ask(POWER, asJson({ action }))
    while (lab.fake.asked.length === 0) await sleep(5)
    await lab.begin()
    const refused = await asking
    assert.is(refused.status, 409)
    assert.match((await refused.json()).detail, /being written/)
    assert.is(lab.fake.state.isOn, true)
    assert.match((await lab.events())[0]?.summary ?? '', /being written/)
  })
}

test('a request that waited is not sent to a BMC that the machine no longer has', async () => {
  await using lab = await openPowerLab()
  await lab.set({ credential: BMC_USER })
  lab.fake.lies.slowMs = 100
  const first = lab.ask(POWER, asJson({ action: 'read' }))
  while (lab.fake.asked.length === 0) await sleep(5)
  const second = lab.ask(POWER, asJson({ action: 'on' }))
  await sleep(50)
  await lab.set({ address: 'http://127.0.0.9:1' })
  assert.is((await first).status, 200)
  const late = await second
  assert.is(late.status, 503)
  assert.match((await late.json()).detail, /changed in the meantime/)
  assert.is(lab.fake.state.isOn, false)
})

test('a deleted machine takes its BMC and its password with it', async () => {
  await using lab = await openPowerLab()
  await lab.set({ credential: BMC_USER })
  await lab.set({ credential: BMC_USER }, OTHER)
  assert.is((await lab.ask(`/machines/${MAC}`, { method: 'DELETE' })).status, 204)
  const bulk = { action: 'delete', macs: [OTHER] }
  assert.is((await readJson(lab.ask('/machines/bulk', asJson(bulk)))).done, 1)
  assert.not.match(await readFile(lab.file, 'utf8'), /s3cret|52:54/)
})

test('many at once: a preview changes nothing, then each has its event', async () => {
  await using lab = await openPowerLab()
  await lab.set({ credential: BMC_USER, outlet: 'pdu-1/7' })
  const body = { action: 'on', boot: 'network', q: 'rack-1', dry_run: true }
  const preview = await readJson(lab.ask('/power/bulk', asJson(body)))
  assert.equal([preview.started, preview.refused], [1, 1])
  assert.match(
    preview.results.find(({ mac }: { mac: string }) => mac === OTHER).reason,
    /no power control is set up/,
  )
  assert.is(lab.fake.asked.length, 0)
  await readJson(lab.ask('/power/bulk', asJson({ ...body, dry_run: false })))
  for (let turn = 0; turn < 100 && (await lab.events()).length === 0; turn += 1) await sleep(50)
  assert.match((await lab.events())[0]?.summary ?? '', /was turned on/)
  assert.is(lab.fake.state.isOn, true)
})

test('nothing is sent where no network is allowed, and the event says so', async () => {
  await using lab = await openPowerLab({ networks: [] })
  await lab.set({ credential: BMC_USER })
  const refused = await lab.ask(POWER, asJson({ action: 'on' }))
  assert.is(refused.status, 409)
  assert.match((await refused.json()).detail, /under Settings, Networks of BMCs/)
  assert.is(lab.fake.connections(), 0)
  assert.match((await lab.events())[0]?.summary ?? '', /no BMC network is allowed/)
})

test('a list is taken whole or not at all', async () => {
  await using lab = await openPowerLab()
  const send = (text: string) => lab.ask('/power/import', { method: 'POST', body: text })
  const good = `mac,way,address,user,password,outlet\n${MAC},redfish,${lab.fake.address},admin,s3cret,\n${OTHER},ipmi,10.0.0.7,"ad""min"," x,y",pdu/2\n`
  assert.equal(await readJson(send(good)), { imported: 2 })
  await readJson(lab.ask(POWER, asJson({ action: 'read' })))
  assert.is((await readJson(lab.ask(`/machines/${OTHER}/power`))).user, 'ad"min')
  const other = `\ufeffmac;way;address;user;password\r\n${OTHER};ipmi;10.0.0.8;ops;'=1+1\r\n`
  assert.equal(await readJson(send(other)), { imported: 1 }, 'as spreadsheets of other countries')
  const spelled = `sep=;\nmac;way;address;user\n${OTHER.toUpperCase().replaceAll(':', '')};ipmi;10.0.0.8;'-x;;\n`
  assert.equal(await readJson(send(spelled)), { imported: 1 }, 'as names from a file')
  assert.is((await readJson(lab.ask(`/machines/${OTHER}/power`))).user, '-x')
  for (const [bad, words] of [
    [`mac,way,address\n${MAC},ipmi\n`, /Line 2: it has 2 cells, the first line names 3 columns/],
    [`mac,way,address\n${MAC},ipmi,a,b\n`, /Line 2: it has 4 cells/],
    ['mac,way\nx,ipmi\n', /Line 2: not a MAC/],
    ['mac,way\n\n\nx,ipmi\n', /Line 4: not a MAC/],
    ['mac,way,address,boss\n', /first line/],
    ['mac,way,way\n', /first line/],
    [`mac,way,address\n${MAC},ipmi,"10.0.0.7\n`, /Line 2: a quote/],
    [`mac,way,address\n${MAC},ipmi,"10.0.0.7" x\n`, /Line 2: there is text after/],
    [`mac,way,address\n${MAC},ipmi,10.0.0.7\0\n`, /Line 2: bytes/],
    [`mac,way,address\n${MAC},ipmi,${'a'.repeat(10_001)}\n`, /Line 2: a cell/],
    [`mac,way,address\n${MAC},ipmi,10.0.0.7/8\n`, /Line 2/],
    ['mac,way,address\n52:54:00:00:00:99,ipmi,10.0.0.7\n', /unknown/],
    [`mac,way,address\n${MAC},ipmi,a\n${MAC},ipmi,b\n`, /Line 3: this MAC is listed twice/],
  ] as const) {
    const refused = await send(bad)
    assert.is(refused.status, 422, bad)
    assert.match((await refused.json()).detail, words)
  }
})

test('one call arms a machine and boots it; one that is on is neither armed nor restarted unasked', async () => {
  await using lab = await openPowerLab()
  await lab.set({ credential: BMC_USER })
  const flash = (power: unknown) =>
    lab.ask(`/machines/${MAC}/flash`, asJson({ boot_mode: 'flasher-flash-once', power }))
  const armed = await readJson(flash(true))
  assert.is(armed.outcome, 'armed')
  assert.is(lab.fake.state.isOn, true)
  assert.is(lab.fake.state.boot['BootSourceOverrideTarget'], 'Pxe')
  await readJson(lab.ask(`/machines/${MAC}/power`, asJson({ action: 'read' })))

  await readJson(lab.ask(`/machines/${MAC}`, asJson({ boot_mode: 'ipxe-exit' }, 'PUT')))
  const refused = await flash(true)
  assert.is(refused.status, 409)
  assert.match((await refused.json()).detail, /is on/)
  assert.is((await readJson(lab.ask(`/machines/${MAC}`))).boot_mode, 'ipxe-exit')

  lab.fake.bodies.length = 0
  await readJson(
    lab.ask(`/machines/${MAC}`, asJson({ bty_image_ref: REF, target_disk_serial: 'S1' }, 'PUT')),
  )
  assert.is((await readJson(flash('restart'))).outcome, 'armed')
  const resets = lab.fake.bodies.filter((body) => JSON.stringify(body).includes('ResetType'))
  assert.equal(resets, [{ ResetType: 'ForceOff' }, { ResetType: 'On' }])
})

test('nothing is armed where the way to its power can never do what was asked', async () => {
  await using lab = await openPowerLab()
  for (const bmc of [
    { way: 'wake-on-lan', address: '127.0.0.1' },
    { way: 'hook', on: 'http://127.0.0.1:9/on' },
  ]) {
    await readJson(lab.ask(POWER, asJson(bmc, 'PUT')))
    const body = { boot_mode: 'flasher-flash-once', power: 'restart' }
    const refused = await lab.ask(`/machines/${MAC}/flash`, asJson(body))
    assert.is(refused.status, 409)
    assert.match((await refused.json()).detail, /this type cannot turn it off/)
    assert.is((await readJson(lab.ask(`/machines/${MAC}`))).boot_mode, 'ipxe-exit')
  }
  assert.equal(await lab.events(), [])
})

test('one call that arms and cannot boot says both', async () => {
  await using lab = await openPowerLab()
  await lab.set({ credential: BMC_USER })
  lab.fake.lies.lostResets = 1000
  const answer = await lab.ask(
    `/machines/${MAC}/flash`,
    asJson({ boot_mode: 'flasher-flash-once', power: true }),
  )
  assert.is(answer.status, 502)
  const { detail, outcome, machine } = await answer.json()
  assert.match(detail, /^Armed, but not booted\. Turning on failed: /)
  assert.is(outcome, 'not-booted')
  assert.is(machine.boot_mode, 'flasher-flash-once')
})

test('a server without it says so', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await readJson(ask(`/machines/${MAC}`, asJson({ boot_policy: 'tui' }, 'PUT')))
  const answer = await ask(`/machines/${MAC}/flash`, asJson({ power: true }))
  assert.is(answer.status, 422)
  assert.match(await answer.text(), 'power')
})

test('what the end of the server cut off, and what it did not reach, is on record', async () => {
  await using lab = await openPowerLab()
  await lab.set({ credential: BMC_USER })
  await lab.set({ credential: BMC_USER }, OTHER)
  lab.fake.lies.lostResets = 1000
  const one = lab.ask(POWER, asJson({ action: 'on' }))
  while (!lab.fake.asked.some((each) => each.includes('Reset'))) await sleep(10)
  const waiting = lab.ask(`/machines/${OTHER}/power`, asJson({ action: 'on' }))
  const bulk = { action: 'on', macs: [MAC, OTHER], stagger: 3600 }
  assert.is((await readJson(lab.ask('/power/bulk', asJson(bulk)))).started, 2)
  await lab.end()
  assert.equal([(await one).status, (await waiting).status], [503, 503])
  const told = (await lab.events()).map(({ summary }) => summary)
  const cut = told.filter((summary) => /the server was stopped in the meantime/.test(summary))
  assert.is(cut.filter((summary) => summary.startsWith(MAC)).length, 2)
  assert.is(cut.filter((summary) => summary.startsWith(OTHER)).length, 1)
  const unreached = `The server was stopped before the power of ${OTHER} was controlled`
  assert.equal(
    told.filter((summary) => summary.startsWith('The server')),
    [unreached],
  )
})

test('a BMC that refuses is a 502, a machine that is on a 409', async () => {
  await using lab = await openPowerLab()
  await lab.set({ credential: BMC_USER })
  lab.fake.lies.errors = 1_000_000
  const refused = await lab.ask(POWER, asJson({ action: 'on' }))
  assert.equal([refused.status, (await refused.json()).failure.kind], [502, 'refused'])
  lab.fake.reset()
  lab.fake.state.isOn = true
  const isOn = await lab.ask(POWER, asJson({ action: 'on', boot: 'network' }))
  assert.equal([isOn.status, (await isOn.json()).failure.kind], [409, 'not-now'])
})

test('those that are turned on to be flashed wait in line where not all may flash at once', async () => {
  await using lab = await openPowerLab({ env: { FLASHER_PXE_MAX_FLASHES: '1' } })
  const body = { boot_mode: 'flasher-flash-once', power: 'restart' }
  for (const mac of [MAC, OTHER]) {
    await lab.set({ credential: BMC_USER }, mac)
    const { outcome } = await readJson(lab.ask(`/machines/${mac}/flash`, asJson(body)))
    assert.is(outcome, 'armed')
    assert.is(lab.fake.state.isOn, true)
  }
  const contact = async (mac: string) =>
    (await lab.server.request(`/pxe/${mac}?buildarch=x86_64`)).text()
  assert.match(await contact(MAC), '\nkernel ')
  const waits = await contact(OTHER)
  assert.match(waits, /waits: place 1 of 1/)
  assert.not.match(waits, /sanboot|\bexit\b/)
})

test('even while writing means what was being written when it was asked, and no run that began later', async () => {
  await using lab = await openPowerLab()
  for (const mac of [MAC, OTHER]) await lab.set({ credential: BMC_USER }, mac)
  lab.fake.state.isOn = true
  lab.fake.lies.lostResets = 1
  const cut = { action: 'off', even_while_writing: true }
  const first = lab.ask(`/machines/${OTHER}/power`, asJson(cut))
  while (!lab.fake.asked.some((each) => each.includes('Reset'))) await sleep(10)
  const waiting = lab.ask(POWER, asJson(cut))
  await sleep(20)
  await lab.begin()
  assert.is((await first).status, 200)
  lab.fake.state.isOn = true
  const late = await waiting
  assert.is(late.status, 409)
  assert.match((await late.json()).detail, 'is now being written. Repeat the request')
  assert.is(lab.fake.state.isOn, true)
  assert.is((await lab.ask(POWER, asJson(cut))).status, 200)
  assert.is(lab.fake.state.isOn, false)
})

test('a machine that may not be restarted yet holds up no other one', async () => {
  await using lab = await openPowerLab()
  for (const mac of [MAC, OTHER]) await lab.set({}, mac)
  const looked = Promise.withResolvers<undefined>()
  const asked = {
    isRestart: true,
    pause: 0,
    by: { actor: 'operator', ip: null, token: null },
  } as const
  const booting = lab.bootEach([MAC, OTHER].map(macOf), {
    ...asked,
    awaitReady: (mac) => (mac === MAC ? looked.promise : Promise.resolve()),
  })
  const subjects = async () => (await lab.events()).map(({ summary }) => summary.slice(0, 17))
  await waitUntil(
    async () => (await subjects()).length === 1,
    () => 'the other machine was not turned on',
  )
  assert.equal(await subjects(), [OTHER])
  looked.resolve(undefined)
  await booting
  assert.equal(await subjects(), [MAC, OTHER])
})

test.run()
