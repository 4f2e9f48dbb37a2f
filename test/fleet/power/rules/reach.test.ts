/** Which addresses are contacted for a machine's power, and what may be entered as one. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseBmcCsv, BmcSchema } from '#fleet/power/rules/bmc.ts'
import { refuseAddress } from '#fleet/power/rules/power.ts'

const test = suite('addresses of BMCs')

const isAllowed = (address: string, networks: readonly string[], port = 443) =>
  refuseAddress({ address, port }, { networks, own: ['10.0.0.1', 'fd00::1'], ownPorts: [8080] }) ===
  null

test('an address is within the networks, and not this server itself', () => {
  assert.is(isAllowed('10.0.0.9', ['10.0.0.0/8']), true)
  assert.is(isAllowed('::ffff:10.0.0.9', ['10.0.0.0/8']), true)
  assert.is(isAllowed('fd00::9', ['fd00::/8']), true)
  assert.is(isAllowed('10.0.0.9', []), false)
  assert.is(isAllowed('192.0.2.1', ['10.0.0.0/8']), false)
  for (const own of ['10.0.0.1', '::ffff:10.0.0.1', '::ffff:a00:1']) {
    assert.is(isAllowed(own, ['10.0.0.0/8']), false, own)
  }
  assert.is(isAllowed('fd00::1', ['fd00::/8']), false)
})

const ALL = ['0.0.0.0/0', '::/0']

test('no network, however wide, has what is never a machine', () => {
  for (const never of ['0.0.0.0', '::', '224.0.0.1', 'ff02::1', 'fe80::1%eth0']) {
    assert.is(isAllowed(never, [...ALL, never]), false, never)
  }
})

test('loopback and link-local addresses, metadata among them, are only in networks that begin there', () => {
  for (const special of ['127.0.0.1', '127.9.9.9', '::1', '169.254.169.254', 'fe80::1']) {
    for (const address of [special, special.includes(':') ? special : `::ffff:${special}`]) {
      assert.is(isAllowed(address, ALL), false, address)
      assert.is(isAllowed(address, ['128.0.0.0/1', '0.0.0.0/1', '10.0.0.0/8']), false, address)
      assert.is(isAllowed(address, ['10.0.0.0/8', special]), true, address)
    }
  }
  assert.is(isAllowed('127.0.0.1', ['127.0.0.0/8']), true)
  assert.is(isAllowed('127.0.0.1', ['127.0.0.0/8'], 8080), false)
  assert.is(isAllowed('169.254.3.1', ['169.254.3.0/24']), true)
  const here = { networks: ['2001:db8::/32'], own: ['2001:db8::7'], ownPorts: [] }
  for (const address of ['2001:db8::7', '2001:0db8:0:0::7', '2001:DB8::7']) {
    assert.is.not(refuseAddress({ address, port: 443 }, here), null, address)
  }
})

const isTaken = (bmc: object) => BmcSchema.safeParse(bmc).success

test('what can never be connected to is no address', () => {
  for (const way of ['redfish', 'ipmi', 'wake-on-lan']) {
    for (const address of ['10.0.0.9', 'bmc.example:1443', '[fd00::9]', '[fd00::9]:8443']) {
      assert.is(isTaken({ way, address }), true, address)
    }
    for (const address of ['10.0.0.9:99999', '1.2.3.999', '[:::9]', '-H', 'a b', '']) {
      assert.is(isTaken({ way, address }), false, `${way} ${address}`)
    }
  }
  assert.is(isTaken({ way: 'hook', on: 'http://pdu.example/{mac}?x={mac}' }), true)
  for (const on of ['http://{mac}.example/', 'http://%7Bmac%7D.example/', 'http://u:p@host/']) {
    assert.is(isTaken({ way: 'hook', on }), false, on)
  }
  assert.is(parseBmcCsv('mac,way\n52:54:00:00:00:01,hook\n').ok, false)
})

test('a password of a list is taken as it stands there', () => {
  const list = parseBmcCsv(
    `mac;way;address;password\n52:54:00:00:00:01;ipmi;10.0.0.9;'=1+1\n52:54:00:00:00:02;ipmi;10.0.0.8;" a""b "\n`,
  )
  assert.ok(list.ok)
  const passwords = [...list.value.values()].map(({ credential }) => credential?.password)
  assert.equal(passwords, ["'=1+1", ' a"b '])
})

test.run()
