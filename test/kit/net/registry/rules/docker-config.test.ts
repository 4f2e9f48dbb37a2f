import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { locateRegistry } from '#kit/net/registry/rules/oras.ts'
import {
  findCredentials,
  findHelper,
  parseHelperAnswer,
} from '#kit/net/registry/rules/docker-config.ts'

const test = suite('docker config')

test('the program that keeps a password: the one of the host, else the one of all', () => {
  const config = { credsStore: 'all', credHelpers: { 'REG.example:5000': 'one', bad: 7 } }
  const rows = [
    [config, 'reg.example:5000', 'one'],
    [config, 'reg.example', 'all'],
    [config, 'bad', null],
    [{ credHelpers: { 'https://h/v1/': 'old' } }, 'h', 'old'],
    [{ credsStore: '' }, 'h', null],
    [{ credsStore: '../evil' }, 'h', null],
    [{ credsStore: '-x' }, 'h', null],
    [{ credsStore: 'a b' }, 'h', null],
    [{ auths: {} }, 'h', null],
    [[], 'h', null],
  ] as const
  for (const [content, host, helper] of rows) {
    assert.is(findHelper(JSON.stringify(content), host), helper, JSON.stringify(content))
  }
})

test('Docker Hub is one registry under several names', () => {
  const auth = Buffer.from('me:secret').toString('base64')
  for (const stored of ['https://index.docker.io/v1/', 'docker.io', 'registry-1.docker.io']) {
    const config = JSON.stringify({ auths: { 'ghcr.example': {}, [stored]: { auth } } })
    for (const host of ['docker.io', 'index.docker.io', 'registry-1.docker.io']) {
      assert.equal(findCredentials(config, host), { user: 'me', password: 'secret' }, stored)
    }
    assert.is(findCredentials(config, 'evil-docker.io'), null)
    assert.is(findCredentials(config, 'auth.docker.io'), null)
  }
  assert.equal(locateRegistry({ host: 'docker.io', repository: 'alpine' }), {
    host: 'registry-1.docker.io',
    repository: 'library/alpine',
  })
  const own = { host: 'docker.io', repository: 'lab/disk' }
  assert.is(locateRegistry(own).repository, 'lab/disk')
  const other = { host: 'ghcr.example', repository: 'disk' }
  assert.equal(locateRegistry(other), other)
})

const read = (answer: unknown) => parseHelperAnswer(JSON.stringify(answer))

test('what such a program answers', () => {
  const given = { ServerURL: 'h', Username: 'me', Secret: 's:1' }
  assert.equal(read(given), { user: 'me', password: 's:1' })
  const identity = { user: '', password: '', identityToken: 's:1' }
  assert.equal(read({ ...given, Username: '<token>' }), identity)
  const entry = { auth: Buffer.from('0000:').toString('base64'), identitytoken: 's:1' }
  assert.equal(findCredentials(JSON.stringify({ auths: { h: entry } }), 'h'), identity)
  for (const answer of [{ ...given, Username: '' }, {}, 'x']) {
    assert.is(read(answer), null)
  }
  assert.is(parseHelperAnswer('credentials not found in native keychain'), null)
})

test('reads any text without throwing', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      findCredentials(text, 'h')
      findHelper(text, 'h')
      parseHelperAnswer(text)
    }),
  )
})

test.run()
