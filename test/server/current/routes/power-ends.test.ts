/** The power of machines over HTTP: the end of the server in the middle, what is whose fault, and the line of flashes. */
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { openPowerLab, OTHER } from '#test/support/power/power-lab.ts'
import { BMC_USER } from '#test/support/power/redfish-fake.ts'
import { MAC, macOf } from '#test/support/server/machine-fixture.ts'
import { asJson, readJson } from '#test/support/server/server.ts'
import { waitUntil } from '#test/support/waiting.ts'

const test = suite('power over HTTP: ends and lines')
const POWER = `/machines/${MAC}/power`

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
  const cut = told.filter((summary) => /the server ended meanwhile/.test(summary))
  assert.is(cut.filter((summary) => summary.startsWith(MAC)).length, 2)
  assert.is(cut.filter((summary) => summary.startsWith(OTHER)).length, 1)
  const unreached = `The server ended before the power of ${OTHER} was asked`
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
  assert.match((await late.json()).detail, 'began to be written after that was asked')
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
