import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSources } from '#engine/image/sources/sources.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { collect, faultOf, makeBytes } from '#test/support/collect.ts'
import { makeFolder } from '#test/support/server/image-cache.ts'
import { CREDENTIALS, pushImage, startRegistry } from '#test/support/http/registry.ts'

const test = suite('registry credentials')
const BYTES = makeBytes(700_001)
const open = (text: string, env: Readonly<Record<string, string>> = {}) =>
  createSources({ env, retryMs: 1, stallMs: 5000 }).open(text)

test('a registry with passwords: variables, Docker files, and a hint without either', async () => {
  await using registry = await startRegistry({ locked: true })
  await using folder = await makeFolder()
  await pushImage(registry, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img' }])
  const reference = `oras://${registry.host}/lab/disk:v1`
  const { user, password } = CREDENTIALS
  const auth = Buffer.from(`${user}:${password}`).toString('base64')
  const config = JSON.stringify({ auths: { [registry.host]: { auth } } })
  await mkdir(join(folder.path, '.docker'))
  await writeFile(join(folder.path, '.docker/config.json'), config)
  const own = { FLASHER_REGISTRY_USER: user, FLASHER_REGISTRY_PASSWORD: password }
  const ways = [
    { FLASHER_REGISTRY_HOST: registry.host, ...own },
    { DOCKER_AUTH_CONFIG: config },
    { DOCKER_CONFIG: join(folder.path, '.docker') },
    { HOME: folder.path },
  ]
  for (const env of ways) {
    await using source = await open(reference, env)
    assert.ok(BYTES.equals(await collect(source.stream())))
  }
  for (const env of [{}, { FLASHER_REGISTRY_HOST: 'other', ...own }]) {
    const fault = await faultOf(() => open(reference, env))
    assert.match(fault.message, /HTTP 401/)
    assert.match(fault.hint ?? '', /FLASHER_REGISTRY_HOST/)
  }
})

test('the real registry over TLS, with a password, with an authority of its own', async () => {
  await using folder = await makeFolder()
  const { caFile, certificate } = await makeAuthority(folder.path)
  await using plain = await startRegistry()
  await pushImage(plain, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img' }])
  await using registry = await startRegistry({ locked: true, certificate, over: plain })
  const reference = `oras://${registry.host}/lab/disk:v1`
  const env = {
    FLASHER_CA_FILE: caFile,
    FLASHER_REGISTRY_HOST: registry.host,
    FLASHER_REGISTRY_USER: CREDENTIALS.user,
    FLASHER_REGISTRY_PASSWORD: CREDENTIALS.password,
  }
  await using source = await open(reference, env)
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.match((await faultOf(() => open(reference))).message, /unknown authority/)
  const nobody = await faultOf(() => open(reference, { FLASHER_CA_FILE: caFile }))
  assert.match(nobody.message, /HTTP 401/)
  const wrong = { ...env, FLASHER_REGISTRY_PASSWORD: 'other' }
  assert.match((await faultOf(() => open(reference, wrong))).message, /HTTP 401/)
})

test('a program that keeps the password, and the file of Podman', async () => {
  await using registry = await startRegistry({ locked: true })
  await using folder = await makeFolder()
  await pushImage(registry, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img' }])
  const reference = `oras://${registry.host}/lab/disk:v1`
  const at = (name: string) => join(folder.path, name)
  const { user, password } = CREDENTIALS
  const answer = JSON.stringify({ ServerURL: registry.host, Username: user, Secret: password })
  const script = (text: string) =>
    `#!/bin/sh\n[ "$1" = get ] && [ "$(cat)" = ${registry.host} ] && echo '${text}'\n`
  await writeFile(at('docker-credential-keep'), script(answer), { mode: 0o755 })
  const oauth = JSON.stringify({ Username: '<token>', Secret: 'x' })
  await writeFile(at('docker-credential-oauth'), script(oauth), { mode: 0o755 })
  const deaf = `#!/bin/sh\nexec <&-\necho '${answer}'\n`
  await writeFile(at('docker-credential-deaf'), deaf, { mode: 0o755 })
  const auth = Buffer.from(`${user}:${password}`).toString('base64')
  const auths = { auths: { [registry.host]: { auth } } }
  await writeFile(at('auth.json'), JSON.stringify(auths))
  await mkdir(at('containers'))
  await writeFile(at('containers/auth.json'), JSON.stringify(auths))
  const PATH = `${folder.path}:${process.env['PATH']}`
  const docker = (config: object) => ({ PATH, DOCKER_AUTH_CONFIG: JSON.stringify(config) })
  const ways = [
    docker({ credHelpers: { [registry.host]: 'keep' } }),
    docker({ credsStore: 'keep', auths: { [registry.host]: {} } }),
    docker({ credsStore: 'deaf' }),
    docker({ credHelpers: { other: 'absent' }, credsStore: 'keep' }),
    { REGISTRY_AUTH_FILE: at('auth.json') },
    { XDG_RUNTIME_DIR: folder.path },
  ]
  for (const env of ways) {
    await using source = await open(reference, env)
    assert.is(source.sizeBytes, BYTES.length)
  }
  const none = ['oauth', 'absent', '../keep', '']
  for (const name of none) {
    const fault = await faultOf(() => open(reference, docker({ credsStore: name })))
    assert.match(fault.message, /HTTP 401/)
  }
})

test.run()
