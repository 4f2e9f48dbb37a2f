/** Signatures as ssh-keygen makes them, and everything that is none. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, dirname } from 'node:path'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findSignatureFault, PUBLIC_KEY } from '#kit/foundation/ssh-signature.ts'
import { makeSigningKey } from '#test/support/release-folder.ts'

const test = suite('ssh signatures')
const namespace = 'flasher-release'
const message = 'version = "1.2.3"\n'

function sign(key: string, text: string, { purpose = namespace, options = [] as string[] } = {}) {
  const file = join(dirname(key), `text-${purpose}-${options.length}`)
  writeFileSync(file, text)
  const args = ['-Y', 'sign', '-q', '-n', purpose, '-f', key, ...options, file]
  execFileSync('ssh-keygen', args, { stdio: 'ignore' })
  return readFileSync(`${file}.sig`, 'utf8')
}

test('what ssh-keygen has signed is accepted, with either hash, among several keys', async () => {
  await using key = await makeSigningKey()
  await using other = await makeSigningKey()
  const keys = [other.publicKey, key.publicKey]
  for (const options of [[], ['-O', 'hashalg=sha256']]) {
    const signature = sign(key.path, message, { options })
    assert.is(findSignatureFault({ message, signature, namespace, keys }), null)
    const bare = key.publicKey.split(' ').slice(0, 2).join(' ')
    assert.is(findSignatureFault({ message, signature, namespace, keys: [bare] }), null)
  }
})

test('anything else is refused with the reason', async () => {
  await using key = await makeSigningKey()
  await using other = await makeSigningKey()
  await using rsa = await makeSigningKey('ecdsa')
  const keys = [key.publicKey]
  const right = sign(key.path, message)
  const rows = [
    [{ message: `${message}\n`, signature: right, keys }, /not what was signed/],
    [{ message, signature: sign(other.path, message), keys }, /key that is not configured/],
    [{ message, signature: right, keys: [] }, /key that is not configured/],
    [{ message, signature: sign(key.path, message, { purpose: 'file' }), keys }, /another purpose/],
    [{ message, signature: sign(rsa.path, message), keys }, /Ed25519/],
    [{ message, signature: '', keys }, /Ed25519/],
    [{ message, signature: '<html>', keys }, /Ed25519/],
    [{ message, signature: ' '.repeat(1_000_000), keys }, /Ed25519/],
  ] as const
  for (const [given, reason] of rows) {
    assert.match(findSignatureFault({ namespace, ...given }) ?? 'accepted', reason)
  }
  assert.not.match(rsa.publicKey, PUBLIC_KEY)
  assert.match(key.publicKey, PUBLIC_KEY)
})

test('no change of a signature is accepted, and none is a crash', async () => {
  await using key = await makeSigningKey()
  const signature = sign(key.path, message)
  const [begin = '', ...rest] = signature.trim().split('\n')
  const end = rest.pop() ?? ''
  const bytes = Buffer.from(rest.join(''), 'base64')
  const check = (changed: Buffer) =>
    findSignatureFault({
      message,
      signature: `${begin}\n${changed.toString('base64')}\n${end}\n`,
      namespace,
      keys: [key.publicKey],
    })
  assert.is(check(bytes), null)
  fc.assert(
    fc.property(fc.nat({ max: bytes.length - 1 }), fc.integer({ min: 1, max: 255 }), (at, mask) => {
      const changed = Buffer.from(bytes)
      changed.writeUInt8(changed.readUInt8(at) ^ mask, at)
      assert.is.not(check(changed), null)
    }),
  )
  for (let length = 0; length < bytes.length; length += 1) {
    assert.is.not(check(bytes.subarray(0, length)), null)
  }
})

test.run()
