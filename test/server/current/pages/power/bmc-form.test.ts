/** The form of a BMC and its buttons: what each way needs, which password stays, what a state leaves to be done. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseBmcForm, readBmcForm, typedBmc } from '#server/current/pages/power/bmc-form.ts'
import { chooseBoot, listPowerChoices } from '#server/current/pages/power/power-card.ts'
import { BmcSchema, NOTHING_LEARNED } from '#fleet/power/rules/bmc.ts'

const test = suite('the form of a BMC')

const read = (fields: Readonly<Record<string, string>>) =>
  readBmcForm(
    new URLSearchParams(Object.entries(fields).map(([name, text]) => [`bmc_${name}`, text])),
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

test.run()
