import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  encodePassword,
  parseAccountStatus,
  parseNoNewPrivileges,
  parseVerdict,
} from '#fleet/access/rules/provider-identity.ts'

const test = suite('system account')
const isUsable = (given: string) => encodePassword(given).ok

test('what the helper would cut or end early is no password', () => {
  assert.equal(encodePassword('pass word\n'), { ok: true, value: 'pass word\n\0' })
  assert.is(isUsable(''), false)
  assert.is(isUsable('right\0 and more'), false)
  assert.is(isUsable('a'.repeat(511)), true)
  assert.is(isUsable('a'.repeat(512)), false)
  // Bytes count, not characters.
  assert.is(isUsable('ä'.repeat(256)), false)
})

test('only 0 and 7 are answers of the helper', () => {
  assert.equal([0, 7, 9, 4, 124].map(parseVerdict), ['right', 'wrong', null, null, null])
})

test('passwd -S', () => {
  assert.is(parseAccountStatus('flasher P 2024-10-04 0 99999 7 -1\n'), 'set')
  assert.is(parseAccountStatus('flasher L 2024-10-04 0 99999 7 -1\n'), 'locked')
  assert.is(parseAccountStatus('flasher NP 2024-10-04 0 99999 7 -1\n'), 'none')
  assert.is(parseAccountStatus('flasher LK 2024-10-04'), 'locked')
  assert.is(parseAccountStatus('passwd: Permission denied.'), null)
})

test('no_new_privs', () => {
  assert.is(parseNoNewPrivileges('CapAmb:\t0\nNoNewPrivs:\t1\nSeccomp:\t2\n'), true)
  assert.is(parseNoNewPrivileges('NoNewPrivs:\t0\n'), false)
})

test.run()
