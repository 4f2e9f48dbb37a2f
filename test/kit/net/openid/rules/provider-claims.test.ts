import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { joinClaims } from '#kit/net/openid/rules/provider-failure.ts'

const test = suite('claims of a provider')

const NAMED = { iss: 'https://login.example', sub: '1' }

test('an address is verified by the answer that has it', () => {
  const [mine, other] = [{ email: 'anna@example.org' }, { email: 'root@example.org' }]
  const verified = { email_verified: true }
  for (const [token, userinfo, email, isVerified] of [
    [{ ...mine, ...verified }, other, mine.email, true],
    [{ ...mine, ...verified }, {}, mine.email, true],
    [verified, other, other.email, undefined],
    [mine, { ...other, email_verified: true }, other.email, true],
    [other, verified, other.email, undefined],
    [{}, { ...other, email_verified: false }, other.email, false],
    [{ ...mine, email_verified: false }, { ...other, ...verified }, mine.email, false],
    [verified, {}, undefined, undefined],
  ] as const) {
    const joined = joinClaims({ ...NAMED, ...token }, userinfo)
    assert.equal([joined['email'], joined['email_verified']], [email, isVerified])
  }
  assert.equal(joinClaims({ ...NAMED, groups: ['a'] }, { groups: ['b'], sub: '2', name: 'Anna' }), {
    ...NAMED,
    groups: ['a'],
    name: 'Anna',
  })
})

test.run()
