import crypto, { argon2Sync } from 'node:crypto'
import { mkdtemp, readFile, rm, stat, unlink, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createPasswords, hashPassword } from '#fleet/access/passwords.ts'
import { createSecret, replaceSecret } from '#kit/web/access/secret.ts'
import { defaultStateDir, prepareStateDir } from '#kit/config/state-dirs.ts'

async function createFolder() {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-passwords-'))
  return {
    path: (name: string) => join(dir, name),
    passwords: (admin: { readonly password?: string; readonly password_hash?: string } = {}) =>
      createPasswords({
        path: join(dir, 'admin-password'),
        configured: () => ({ password: '', password_hash: '', ...admin }),
      }),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  }
}

const fails = async (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'nothing failed',
    (thrown: unknown) => String(thrown),
  )

const plain = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '')

const test = suite('passwords')

test('one is made at the first start, kept as a hash for its owner alone, and never again', async () => {
  await using folder = await createFolder()
  const passwords = folder.passwords()
  const made = (await passwords.ensure()) ?? ''
  assert.match(made, /^[a-z2-9]{4}(?:-[a-z2-9]{4}){3}$/)
  assert.is(await passwords.ensure(), null)
  const kept = await readFile(folder.path('admin-password'), 'utf8')
  assert.match(kept, /^\$scrypt\$ln=\d+,r=8,p=\d+\$/)
  assert.not.match(kept, made)
  assert.is((await stat(folder.path('admin-password'))).mode & 0o777, 0o600)
  assert.equal([await passwords.check(made), await passwords.check('x')], [true, false])
  await passwords.set('another one')
  assert.equal([await passwords.check(made), await passwords.check('another one')], [false, true])
})

test('a configured one, plain or hashed, makes none', async () => {
  await using folder = await createFolder()
  const password_hash = await hashPassword('pässwörd')
  for (const passwords of [
    folder.passwords({ password: 'pässwörd' }),
    folder.passwords({ password_hash }),
    folder.passwords({ password: '   ', password_hash }),
  ]) {
    assert.is(await passwords.ensure(), null)
    for (const [given, isRight] of [
      ['pässwörd', true],
      // The same letters as another keyboard sends them.
      ['pa\u0308sswo\u0308rd', true],
      ['passwörd', false],
      ['pässwörd ', false],
      ['', false],
      ['x'.repeat(5000), false],
    ] as const) {
      assert.is(await passwords.check(given), isRight, given.slice(0, 20))
    }
  }
})

test('an argon2id hash of another program is taken', async () => {
  await using folder = await createFolder()
  const salt = Buffer.from('sixteen bytes ok')
  const hash = argon2Sync('argon2id', {
    message: 'correct',
    nonce: salt,
    parallelism: 2,
    tagLength: 32,
    memory: 1024,
    passes: 2,
  })
  const password_hash = `$argon2id$v=19$m=1024,t=2,p=2$${plain(salt)}$${plain(hash)}`
  const passwords = folder.passwords({ password_hash })
  assert.equal([await passwords.check('correct'), await passwords.check('wrong')], [true, false])
})

test('a file that holds no hash is refused', async () => {
  await using folder = await createFolder()
  for (const text of ['', 'plain', '$scrypt$ln=30,r=8,p=1$c2FsdHNhbHQ$c2FsdHNhbHRzYWx0c2FsdA']) {
    await writeFile(folder.path('admin-password'), text)
    assert.match(await fails(folder.passwords().ensure()), 'holds no password hash')
  }
})

test('more guesses at a moment than can be hashed are turned away', async () => {
  await using folder = await createFolder()
  const passwords = folder.passwords({ password_hash: await hashPassword('x') })
  const guesses = Array.from({ length: 18 }, () => fails(passwords.check('y')))
  const refused = (await Promise.all(guesses)).filter((text) => text.includes('too many logins'))
  assert.is(refused.length, 2)
})

test('the session key is made once, for its owner alone, and signs', async () => {
  await using folder = await createFolder()
  const path = folder.path('session-secret')
  const all = await Promise.all([1, 2, 3].map(() => createSecret({ path, configured: '' })))
  assert.is(new Set(all.map((secret) => secret.sign('a'))).size, 1)
  assert.is((await stat(path)).mode & 0o777, 0o600)
  const [secret] = all
  const signature = secret?.sign('a') ?? ''
  assert.is(secret?.verify('a', signature), true)
  for (const [text, given] of [
    ['b', signature],
    ['a', `${signature}=`],
    ['a', signature.slice(1)],
    ['a', ''],
    ['a', `${signature} `],
  ] as const) {
    assert.is(secret?.verify(text, given), false, given)
  }
})

test('an empty or short key is refused with a hint', async () => {
  await using folder = await createFolder()
  const path = folder.path('session-secret')
  for (const text of ['', '\n', 'short']) {
    await writeFile(path, text)
    const message = await fails(createSecret({ path, configured: '' }))
    assert.match(message, text.trim() === '' ? 'is empty' : 'is shorter than')
    assert.match(message, path)
  }
  await unlink(path)
  assert.match(await fails(createSecret({ path, configured: 'short' })), 'is shorter than')
})

test('a key that is replaced or deleted ends what it signed, and signs nothing more', async () => {
  await using folder = await createFolder()
  const path = folder.path('session-secret')
  const secret = await createSecret({ path, configured: '' })
  for (const change of [() => replaceSecret(path), () => unlink(path)]) {
    const before = secret.sign('a')
    await change()
    const after = secret.sign('a')
    assert.is(secret.verify('a', before), false)
    assert.is(secret.verify('a', after), true)
  }
})

test('the state directory: for root, for others, made for its owner alone, refused with a way out', async () => {
  assert.is(defaultStateDir({}, true), '/var/lib/flasher')
  assert.is(defaultStateDir({ HOME: '/home/a' }, false), '/home/a/.local/state/flasher')
  assert.is(defaultStateDir({ HOME: '/home/a', XDG_STATE_HOME: '/s' }, false), '/s/flasher')
  assert.is(
    defaultStateDir({ HOME: '/home/a', XDG_STATE_HOME: 'relative' }, false),
    '/home/a/.local/state/flasher',
  )
  await using folder = await createFolder()
  await prepareStateDir(folder.path('a/b'))
  assert.is((await stat(folder.path('a/b'))).mode & 0o777, 0o700)
  await writeFile(folder.path('file'), '')
  assert.match(
    await fails(prepareStateDir(folder.path('file'))),
    /file cannot be used|is no folder/,
  )
  assert.match(await fails(prepareStateDir(folder.path('file/below'))), 'cannot be used')
})

test('passwords are compared in constant time, whatever their lengths', async () => {
  await using folder = await createFolder()
  const { timingSafeEqual } = crypto
  const compared: number[] = []
  crypto.timingSafeEqual = (one, two) => {
    compared.push(one.byteLength)
    return timingSafeEqual(one, two)
  }
  syncBuiltinESMExports()
  try {
    const hashed = await hashPassword('right')
    for (const admin of [{ password: 'right' }, { password_hash: hashed }])
      for (const given of ['right', 'r', 'wrong', 'a longer one than the right one'])
        assert.is(await folder.passwords(admin).check(given), given === 'right')
  } finally {
    Object.assign(crypto, { timingSafeEqual })
    syncBuiltinESMExports()
  }
  assert.equal(
    compared,
    Array.from({ length: 8 }, () => 32),
  )
})

test.run()
