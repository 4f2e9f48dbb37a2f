import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { decideAnswer, areOwnCards, listOthers, parseNeighbours } from '#fleet/proof/rules/proof.ts'
import { MAC, macOf } from '#test/support/server/machine-fixture.ts'

const test = suite('neighbours')

const OTHER = macOf('52:54:00:00:00:99')
const BMC = '52:54:00:00:00:77'
const TABLE = `IP address       HW type     Flags       HW address            Mask     Device
192.0.2.10       0x1         0x2         ${MAC}     *        eth0
192.0.2.11       0x1         0x0         00:00:00:00:00:00     *        eth0
192.0.2.12       0x1         0x2         ${BMC}     *        eth0
192.0.2.13       0x1         0x2         ${OTHER}     *        eth0
`
const machine = (mac: typeof MAC, last_seen_ip: string, last_seen_at: string) => ({
  mac,
  last_seen_ip,
  last_seen_at,
})
const found = parseNeighbours(TABLE)

test('the table of the kernel tells who answers', () => {
  assert.equal([...found.values()], [MAC, null, BMC, OTHER])
  assert.is(parseNeighbours('').size, 0)
  const answers = (ip: string | null) => decideAnswer({ mac: MAC, last_seen_ip: ip }, found)
  assert.is(answers('192.0.2.10'), true)
  assert.is(answers('192.0.2.11'), false)
  // A BMC that shares the port, and a system with another card.
  assert.is(answers('192.0.2.12'), false)
  assert.is(answers('198.51.100.1'), null)
  assert.is(answers(null), null)
})

test('a call of a machine that is known to be another is recognised by its card, or by its address', () => {
  const since = '2026-11-26T08:00:00.000Z'
  const self = machine(MAC, '192.0.2.10', since)
  const other = machine(OTHER, '198.51.100.7', '2026-11-26T08:05:00.000Z')
  const isOther = (ip: string | null, machines = [self, other]) =>
    listOthers({ mac: MAC, ip, since }, found, machines).length > 0
  assert.is(isOther('192.0.2.13'), true)
  assert.is(isOther('198.51.100.7'), true)
  assert.is(isOther('192.0.2.10'), false)
  assert.is(isOther('198.51.100.8'), false)
  assert.is(isOther(null), false)
  // A lease that the other one had before the flash is free for this one.
  const before = machine(OTHER, '198.51.100.7', '2026-11-26T07:00:00.000Z')
  assert.is(isOther('198.51.100.7', [self, before]), false)
  // They all have its address behind one router.
  const routed = machine(MAC, '198.51.100.7', since)
  assert.is(isOther('198.51.100.7', [routed, other]), false)
})

test('a second card of the same machine is no other machine', () => {
  const hardware = JSON.stringify({ children: [{ serial: MAC }, { serial: OTHER.toUpperCase() }] })
  assert.ok(areOwnCards([OTHER], hardware))
  assert.not(areOwnCards([OTHER, BMC], hardware))
  assert.not(areOwnCards([OTHER], null))
})

test.run()
