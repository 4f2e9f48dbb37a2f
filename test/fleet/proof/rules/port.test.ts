import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  isOldSystem,
  joinBefore,
  proveByPort,
  type PortSeen,
} from '../../../../runtime/fleet/proof/rules/port.ts'

const test = suite('what a port says of a new system')

const CLOSED: PortSeen = { kind: 'closed', keys: [] }
const OPEN: PortSeen = { kind: 'open', keys: [] }
const sshOf = (...keys: readonly string[]): PortSeen => ({ kind: 'ssh', keys })

test('only a system on the disk that had time to start is a witness of what was there before', () => {
  assert.ok(isOldSystem({ isToDisk: true, at: 0 }, 120_000))
  assert.not(isOldSystem({ isToDisk: true, at: 0 }, 119_999))
  assert.not(isOldSystem({ isToDisk: false, at: 0 }, 999_999))
  assert.not(isOldSystem(undefined, 999_999))
})

test('nothing is compared where one of the two was not seen, or kept its keys to itself', () => {
  assert.is(joinBefore(null, CLOSED), null)
  assert.is(joinBefore(CLOSED, null), null)
  assert.is(joinBefore(sshOf(), CLOSED), null)
  assert.equal(joinBefore(CLOSED, CLOSED), { is_closed: true, keys: [] })
  assert.equal(joinBefore(sshOf('old'), sshOf('live', 'old')), {
    is_closed: false,
    keys: ['old', 'live'],
  })
})

test('a host key proves it where it is another one, a port where it was closed', () => {
  const before = joinBefore(sshOf('old'), sshOf('live'))
  assert.is(proveByPort(before, sshOf('new')), 'ssh')
  assert.is(proveByPort(before, sshOf('new', 'live')), null)
  assert.is(proveByPort(before, sshOf('old')), null)
  assert.is(proveByPort(before, sshOf()), null)
  assert.is(proveByPort(before, OPEN), null)
  assert.is(proveByPort(joinBefore(CLOSED, CLOSED), OPEN), 'port')
  assert.is(proveByPort(joinBefore(OPEN, CLOSED), OPEN), null)
  assert.is(proveByPort(joinBefore(CLOSED, CLOSED), CLOSED), null)
  assert.is(proveByPort(null, sshOf('new')), null)
})

test.run()
