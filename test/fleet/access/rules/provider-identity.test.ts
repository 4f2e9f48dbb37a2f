/** Who somebody is by what a provider says, and which role that gives. */
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type ClaimMapping,
  encodePassword,
  hasAllClaims,
  identify,
  parseAccountStatus,
  parseNoNewPrivileges,
  parsePersonName,
  parseVerdict,
} from '#fleet/access/rules/person.ts'

const test = suite('who a provider names')

const MAPPING: ClaimMapping = {
  nameClaim: 'preferred_username',
  roleClaims: ['groups'],
  values: { look: ['guests'], operate: ['lab', 'ops'], administrate: ['admins'] },
  scopes: [],
}
const WHO = { iss: 'https://login.example.org', sub: 'f3a1' }
const roleOf = (claims: object, mapping: Partial<ClaimMapping> = {}) =>
  identify({ ...WHO, ...claims }, { ...MAPPING, ...mapping }).role

const nameOf = (claims: object) => identify({ ...WHO, ...claims }, MAPPING).names[0]

test('the highest role wins that a value gives, and nothing else gives one', () => {
  assert.is(roleOf({ groups: ['guests', 'admins', 'lab'] }), 'administrate')
  assert.is(roleOf({ groups: ['guests', 'ops'] }), 'operate')
  assert.is(roleOf({ groups: 'guests' }), 'look')
  for (const groups of [
    [],
    ['Admins'],
    ['admins '],
    [['admins']],
    { admins: true },
    null,
    1,
    true,
  ]) {
    assert.is(roleOf({ groups }), null, JSON.stringify(groups))
  }
  assert.is(roleOf({}), null)
  assert.is(
    roleOf({ groups: ['admins'] }, { values: { look: [], operate: [], administrate: [] } }),
    null,
  )
})

test('groups give the labels of a scope, and whoever has none of them sees nothing', () => {
  const scopes = ['lab; rack b; rack a', 'ops;rack a', 'leads; *']
  const labelsOf = (groups: readonly string[]) =>
    identify({ ...WHO, groups }, { ...MAPPING, scopes }).labels
  assert.equal(labelsOf(['lab']), ['rack a', 'rack b'])
  assert.equal(labelsOf(['ops', 'lab']), ['rack a', 'rack b'])
  assert.equal(labelsOf(['guests', '*', 'rack a']), [])
  assert.is(labelsOf(['leads', 'ops']), null)
  assert.is(identify({ ...WHO, groups: ['lab'] }, MAPPING).labels, null)
})

test('a dot leads into an object, unless a claim has the whole name', () => {
  const roleClaims = ['realm_access.roles']
  assert.is(roleOf({ realm_access: { roles: ['lab'] } }, { roleClaims }), 'operate')
  assert.is(
    roleOf({ 'realm_access.roles': 'admins', realm_access: {} }, { roleClaims }),
    'administrate',
  )
  for (const claim of ['constructor', '__proto__', 'groups.length', 'groups.0', 'toString.name']) {
    assert.is(roleOf({ groups: ['admins'] }, { roleClaims: [claim] }), null, claim)
  }
})

test('an address counts where the provider has verified it', () => {
  const mapping = {
    roleClaims: ['hd', 'email'],
    values: { ...MAPPING.values, administrate: ['anna@example.org'], look: ['example.org'] },
  }
  const email = { email: 'anna@example.org', hd: 'example.org' }
  assert.is(roleOf({ ...email, email_verified: true }, mapping), 'administrate')
  for (const email_verified of [false, undefined, 'no', 1]) {
    assert.is(roleOf({ ...email, email_verified }, mapping), 'look')
  }
})

test('what was not sent is named, and asked for', () => {
  const { missing, values } = identify(
    { ...WHO, groups: ['a', 'a', 7] },
    { ...MAPPING, roleClaims: ['groups', 'roles'] },
  )
  assert.equal([missing, values], [['roles'], ['a']])
  assert.not(hasAllClaims(WHO, MAPPING))
  const tooLong = { _claim_names: { groups: 'src1' }, _claim_sources: { src1: { endpoint: 'x' } } }
  for (const said of [tooLong, { hasgroups: true }]) {
    assert.equal(identify({ ...WHO, ...said }, MAPPING).tooLong, ['groups'])
    assert.equal(identify({ ...WHO, ...said, groups: ['a'] }, MAPPING).tooLong, [])
  }
  assert.ok(hasAllClaims({ ...WHO, groups: [], preferred_username: 'anna' }, MAPPING))
})

test('names are made to fit, from the best claim on', () => {
  assert.is(nameOf({ preferred_username: 'Anna.Möller@Example.org' }), 'anna.moller@example.org')
  assert.is(nameOf({ preferred_username: 'EXAMPLE\\anna' }), 'example-anna')
  assert.is(
    nameOf({ preferred_username: '李', email: 'li@example.org', email_verified: true }),
    'li@example.org',
  )
  assert.is(nameOf({ email: 'li@example.org' }), 'f3a1')
  assert.is(nameOf({ preferred_username: 'operator' }), 'operator-2')
})

test('whatever a provider says, names are names and a role needs one of its values', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), fc.jsonValue(), (claims, groups) => {
      const found = identify({ ...claims, groups, ...WHO }, MAPPING)
      assert.ok(found.names.length > 0)
      assert.ok(found.names.every((name) => parsePersonName(name).ok))
      const text = JSON.stringify(groups)
      if (found.role !== null) assert.match(text, /guests|lab|ops|admins/)
    }),
  )
})

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
