/** The form of a BMC and its buttons: what each way needs, which password stays, what a state leaves to be done. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { BmcSchema, NOTHING_LEARNED } from '#fleet/power/rules/bmc.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import { parseBmcForm, readBmcForm, testedBmc, typedBmc } from '#server/current/power/bmc-form.ts'
import { chooseBoot, listPowerChoices } from '#server/current/power/power-card.ts'
import { BMC_USER, startRedfish } from '#test/support/power/redfish-fake.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { asJson } from '#test/support/server/server.ts'
import { createBoxes, macOf } from '#test/support/server/web-machines.ts'

const test = suite('the form of a BMC')

const read = (fields: Readonly<Record<string, string>>, notice: Notice | null = null) =>
  readBmcForm(
    new URLSearchParams(Object.entries(fields).map(([name, text]) => [`bmc_${name}`, text])),
    notice,
  )
const bmcOf = (given: object) => BmcSchema.parse(given)
const REDFISH = { way: 'redfish', address: '10.0.0.1' }
const own = { user: 'admin', password: 's3cret' }
const entry = { bmc: bmcOf(REDFISH), credential: own, learned: NOTHING_LEARNED }

test('each way has its own fields, and the others are left out', () => {
  const all = { address: ' 10.0.0.1 ', outlet: ' pdu/7 ', system: 'blade-2', on: 'http://pdu/on' }
  assert.equal(parseBmcForm(read({ way: 'redfish', ...all }), null), {
    ok: true,
    value: {
      bmc: bmcOf({ ...REDFISH, outlet: 'pdu/7', system: 'blade-2' }),
      credential: null,
    },
  })
  assert.equal(parseBmcForm(read({ way: 'ipmi', ...all, firmware: 'bios' }), null), {
    ok: true,
    value: {
      bmc: bmcOf({ way: 'ipmi', address: '10.0.0.1', firmware: 'bios', outlet: 'pdu/7' }),
      credential: null,
    },
  })
  assert.equal(parseBmcForm(read({ way: 'wake-on-lan', ...all, ...own }), null), {
    ok: true,
    value: {
      bmc: bmcOf({ way: 'wake-on-lan', address: '10.0.0.1', outlet: 'pdu/7' }),
      credential: null,
    },
  })
  assert.equal(parseBmcForm(read({ way: 'hook', ...all }), null), {
    ok: true,
    value: {
      bmc: bmcOf({ way: 'hook', on: 'http://pdu/on', outlet: 'pdu/7' }),
      credential: null,
    },
  })
})

test('a password stays where address and user do, and goes nowhere else', () => {
  const kept = parseBmcForm(read({ ...REDFISH, user: 'admin' }), entry)
  assert.is(kept.ok && kept.value.credential, undefined)
  for (const fields of [
    { ...REDFISH, user: 'root' },
    { ...REDFISH, address: '10.0.0.2', user: 'admin' },
    { way: 'ipmi', address: '10.0.0.1', user: 'admin' },
  ]) {
    const moved = parseBmcForm(read(fields), entry)
    assert.is(moved.ok, false, JSON.stringify(fields))
    assert.is(!moved.ok && moved.refusal.field, 'password')
  }
  const shared = parseBmcForm(read(REDFISH), entry)
  assert.is(shared.ok && shared.value.credential, null)
})

test('a refusal names its field, and the password does not come back', () => {
  const cases = [
    [{ way: 'redfish', address: 'a b' }, 'address'],
    [{ way: 'ipmi', address: '' }, 'address'],
    [{ way: 'telnet', address: '10.0.0.1' }, 'way'],
    [{ way: 'hook', on: 'ftp://pdu/' }, 'on'],
    [{ way: 'hook', off: 'http://user:word@pdu/' }, 'off'],
    [{ ...REDFISH, outlet: 'x'.repeat(101) }, 'outlet'],
    [{ ...REDFISH, firmware: 'coreboot' }, 'firmware'],
    [{ ...REDFISH, user: 'admin', password: 'p'.repeat(256) }, 'password'],
  ] as const
  for (const [fields, field] of cases) {
    const values = read(fields)
    const parsed = parseBmcForm(values, null)
    assert.is(parsed.ok, false, field)
    if (parsed.ok) continue
    assert.is(parsed.refusal.field, field)
    const typed = typedBmc(values, parsed.refusal)
    assert.is(typed['bmc_password'], undefined)
    assert.is(typed['bmc_address'], values.address)
  }
})

test('the password of a test counts on for its address and user, and for no other', () => {
  const typed = { ...testedBmc(read({ ...REDFISH, ...own }), 'it failed') }
  const notice = { error: '', errors: {}, typed }
  const again = (fields: Readonly<Record<string, string>>) =>
    read({ ...REDFISH, user: 'admin', ...fields }, notice).password
  assert.equal(
    [again({}), again({ outlet: 'pdu/7' }), again({ password: 'new' })],
    ['s3cret', 's3cret', 'new'],
  )
  assert.equal([again({ address: '10.0.0.2' }), again({ user: 'root' })], ['', ''])
})

test('the buttons are what the way can do and the state leaves to be done', () => {
  const redfish = bmcOf(REDFISH)
  assert.equal(listPowerChoices(redfish, 'off'), ['on', 'network', 'read'])
  assert.equal(listPowerChoices(redfish, 'on'), ['network-restart', 'restart', 'off', 'read'])
  assert.equal(listPowerChoices(redfish, 'unknown'), [
    'on',
    'network-restart',
    'restart',
    'off',
    'read',
  ])
  const wake = bmcOf({ way: 'wake-on-lan', address: '10.0.0.255' })
  assert.equal(listPowerChoices(wake, 'unknown'), ['on', 'network'])
  const plug = bmcOf({ way: 'hook', off: 'http://pdu/off' })
  assert.equal(listPowerChoices(plug, 'unknown'), ['off'])
  assert.equal([redfish, wake, plug].map(chooseBoot), ['network-restart', 'network', null])
})

const [FORMER, LATER] = ['c0ffee00-0001', 'c0ffee00-0002']

/** The real program, and a machine that is on, with a run under way. */
async function open() {
  const stack = new AsyncDisposableStack()
  const fake = stack.use(await startRedfish())
  fake.state.isOn = true
  const home = stack.use(await createServerHome())
  const env = { FLASHER_ADMIN_PASSWORD: 'secret', FLASHER_POWER_NETWORKS: '127.0.0.0/8' }
  const server = stack.use(await home.start([], { ...env, FLASHER_POWER_STAGGER: '0' }))
  const boxes = createBoxes(server.url)
  await boxes.boot(1)
  const { cookie } = await login(server.url, 'secret')
  const ask = (path: string, init: RequestInit) =>
    fetch(`${server.url}${path}`, {
      ...init,
      redirect: 'manual',
      headers: { ...(init.headers as object), cookie },
    })
  const bmc = { way: 'redfish', address: fake.address, credential: BMC_USER }
  assert.is((await ask(`/machines/${macOf(1)}/power`, asJson(bmc, 'PUT'))).status, 200)
  const report = (run: string, phase: string) => boxes.report(1, { run, phase, mode: 'flash' })
  await report(FORMER, 'write')
  return {
    fake,
    resets: () => fake.asked.filter((each) => each.includes('Reset')).length,
    /** Another run begins. */
    async begin() {
      await report(FORMER, 'failed')
      await report(LATER, 'write')
    },
    async post(path: string, fields: Readonly<Record<string, string>>) {
      const answer = await ask(path, { method: 'POST', body: new URLSearchParams(fields) })
      const page = await answer.text()
      const runs = / name="runs" value="([^"]*)"/.exec(page)?.[1] ?? null
      return { status: answer.status, page, runs }
    },
    async waitForOff() {
      while (fake.state.isOn) await new Promise((resolve) => setTimeout(resolve, 20))
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('the second question is asked again where another run began before its answer', async () => {
  await using site = await open()
  const path = `/ui/machines/${macOf(1)}/do/power`
  const off = { choice: 'off', confirm: 'yes' }
  assert.is((await site.post(path, { choice: 'off' })).runs, null)
  const second = await site.post(path, off)
  assert.is(second.runs, FORMER)
  await site.begin()
  const again = await site.post(path, { ...off, even: '1', runs: FORMER })
  assert.match(again.page, 'Cut the power while a disk is being written?')
  assert.is(again.runs, LATER)
  assert.equal([site.resets(), site.fake.state.isOn], [0, true])
  assert.is((await site.post(path, { ...off, even: '1', runs: LATER })).status, 303)
  await site.waitForOff()
})

test('so is the preview of many', async () => {
  await using site = await open()
  const asked = { action: 'power', macs: macOf(1), power_action: 'off', power_stagger: '0' }
  const cut = { ...asked, power_even: '1' }
  const preview = await site.post('/ui/machines/bulk', cut)
  assert.is(preview.runs, FORMER)
  await site.begin()
  const again = await site.post('/ui/machines/bulk', { ...cut, runs: FORMER, sure: '1' })
  assert.match(again.page, 'More disks are being written now')
  assert.is(again.runs, LATER)
  assert.equal([site.resets(), site.fake.state.isOn], [0, true])
  const done = await site.post('/ui/machines/bulk', { ...cut, runs: LATER, sure: '1' })
  assert.match(done.page, 'Each result is an event')
  await site.waitForOff()
})

const MAC = macOf(1)
const DISK = { path: '/dev/sda', size: '16G', serial: 'S1' }

test('it stands in the form where it may be contacted, is said where not, and nothing is done by itself', async () => {
  await using home = await createServerHome()
  const env = { FLASHER_ADMIN_PASSWORD: 'secret', FLASHER_POWER_NETWORKS: '10.20.0.0/16' }
  await using server = await home.start([], env)
  const { cookie } = await login(server.url, 'secret')
  const ask = (path: string, init: RequestInit = {}) =>
    fetch(`${server.url}${path}`, { ...init, headers: { ...init.headers, cookie } })
  const show = async () => {
    const page = await (await ask(`/ui/machines/${MAC}`)).text()
    const [, field = ''] = /<input[^>]*name="bmc_address"([^>]*)>/.exec(page) ?? []
    const [, value = ''] = /value="([^"]*)"/.exec(field) ?? []
    const says = (text: string) => page.includes(text)
    return {
      value,
      isOffered: says('before you save the form'),
      isOutside: says('is outside the networks'),
    }
  }
  const report = async (bmc_address: string) => {
    const told = asJson({ disks: [DISK], bmc_address })
    assert.is((await fetch(`${server.url}/pxe/${MAC}/inventory`, told)).status, 204)
    return show()
  }
  await createBoxes(server.url).boot(1)

  assert.equal(await show(), { value: '', isOffered: false, isOutside: false })
  assert.equal(await report('10.20.0.11'), {
    value: '10.20.0.11',
    isOffered: true,
    isOutside: false,
  })
  // Reported later by somebody who wants the password, it does not change what was saved.
  assert.equal(await report('192.0.2.1'), { value: '', isOffered: false, isOutside: true })
  assert.equal(await report('<script>alert(1)</script>'), {
    value: '',
    isOffered: false,
    isOutside: true,
  })
  assert.is((await ask(`/machines/${MAC}/power`)).status, 404)

  const bmc = { way: 'wake-on-lan', address: '10.20.255.255' }
  assert.is((await ask(`/machines/${MAC}/power`, asJson(bmc, 'PUT'))).status, 200)
  assert.equal(await report('10.20.0.66'), {
    value: '10.20.255.255',
    isOffered: false,
    isOutside: false,
  })
  const { address } = (await (await ask(`/machines/${MAC}/power`)).json()).bmc
  assert.is(address, '10.20.255.255')
})

test.run()
