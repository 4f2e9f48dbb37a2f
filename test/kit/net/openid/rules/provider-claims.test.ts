import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { isAskable, isIssuer, joinClaims } from '#kit/net/openid/rules/provider-failure.ts'

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

test('an issuer is on https, or on this host', () => {
  for (const address of [
    'https://login.example.org',
    'https://login.example.org/realms/lab/',
    'https://login.example.org:8443/application/o/flasher/',
    'http://localhost:8080/realms/lab',
    'http://127.0.0.1:9000',
    'http://[::1]:9000',
  ]) {
    assert.ok(isIssuer(address), address)
  }
  for (const address of [
    '',
    'login.example.org',
    'http://login.example.org',
    'http://127.0.0.1.example.org',
    'http://localhost.example.org',
    'http://10.0.0.1',
    'https://anna:secret@login.example.org',
    'https://login.example.org/#x',
    'https://login.example.org/?x=1',
    'https:\\\\login.example.org',
    'https://login.example.org/ x',
    'ftp://login.example.org',
    `https://login.example.org/${'x'.repeat(3000)}`,
  ]) {
    assert.not(isIssuer(address), address)
  }
})

test('what a provider names is on https, or beside it on this host', () => {
  const remote = 'https://login.example.org'
  assert.ok(isAskable('https://tokens.example.net/token?x=1', remote))
  assert.not(isAskable('http://127.0.0.1/token', remote))
  assert.not(isAskable('http://tokens.example.net/token', remote))
  assert.not(isAskable('file:///etc/passwd', remote))
  const local = 'http://127.0.0.1:9000'
  assert.ok(isAskable('http://localhost:9000/token', local))
  assert.not(isAskable('http://192.0.2.1/token', local))
})

test.run()
