import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as consumers from 'node:stream/consumers'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSources } from '#engine/image/sources/sources.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { collect, faultOf, makeBytes } from '#test/support/collect.ts'
import { type Answer, sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { makeFolder } from '#test/support/server/image-cache.ts'
import { digestOf, pushImage, pushIndex, startRegistry } from '#test/support/http/registry.ts'

const test = suite('oras source')
const BYTES = makeBytes(700_001)
const OTHER = makeBytes(300_001, 2)
const open = (text: string, env: Readonly<Record<string, string>> = {}, arch?: string) =>
  createSources({ env, retryMs: 1, stallMs: 5000 }).open(text, { arch })

test('a registry that asks for nothing: tag, digest, index, sidecars, ranges', async () => {
  await using registry = await startRegistry()
  const at = `oras://${registry.host}/lab`
  const manifest = await pushImage(registry, 'lab/disk:v1', [
    { bytes: makeBytes(900_000, 9), title: 'disk.img.zst.sig' },
    { bytes: BYTES, title: 'disk.img.zst' },
  ])
  const other = await pushImage(registry, 'lab/disk:arm', [{ bytes: OTHER, title: 'arm.img.xz' }])
  await pushIndex(registry, 'lab/disk:all', { amd64: manifest, arm64: other })
  {
    await using source = await open(`${at}/disk:v1`)
    assert.equal(
      [source.name, source.fileName, source.sizeBytes, source.path],
      [`${at}/disk:v1`, 'disk.img.zst', BYTES.length, null],
    )
    assert.is(`sha256:${source.sha256}`, digestOf(BYTES))
    assert.ok(BYTES.equals(await collect(source.stream())))
    assert.ok(BYTES.subarray(500_000).equals(await collect(source.stream(500_000))))
    const into = Buffer.alloc(1000)
    assert.is(await source.readAt?.(into, 300_000), 1000)
    assert.ok(into.equals(BYTES.subarray(300_000, 301_000)))
  }
  const names = [
    [`disk@${manifest}`, undefined, 'disk.img.zst', BYTES],
    // A blob has no name, and nobody says what it is.
    [`disk@${digestOf(BYTES)}`, undefined, '', BYTES],
    ['disk:all', 'x86_64', 'disk.img.zst', BYTES],
    ['disk:all', 'aarch64', 'arm.img.xz', OTHER],
  ] as const
  for (const [name, arch, fileName, bytes] of names) {
    await using source = await open(`${at}/${name}`, {}, arch)
    assert.is(source.fileName, fileName)
    assert.ok(bytes.equals(await collect(source.stream())))
  }
  const lacking = await faultOf(() => open(`${at}/disk:all`, {}, 'riscv64'))
  assert.match(lacking.message, /no image for riscv64 \(amd64, arm64\)/)
  const absent = await faultOf(() => open(`${at}/disk:none`))
  assert.is(absent.code, 'input-missing')
  assert.match(absent.message, /disk:none \(HTTP 404\)/)
})

test('bytes that do not match the digest fail at the end of the stream', async () => {
  await using registry = await startRegistry()
  await pushImage(registry, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img' }])
  const hex = digestOf(BYTES).slice('sha256:'.length)
  const blobs = join(registry.folder, 'data/docker/registry/v2/blobs/sha256')
  const path = join(blobs, hex.slice(0, 2), hex, 'data')
  const damaged = await readFile(path)
  damaged.writeUInt8(damaged.readUInt8(1234) ^ 1, 1234)
  await writeFile(path, damaged)
  await using source = await open(`oras://${registry.host}/lab/disk:v1`)
  const fault = await faultOf(() => collect(source.stream()))
  assert.is(fault.code, 'digest-mismatch')
  assert.match(fault.message, new RegExp(hex))
})

const BASIC = `Basic ${Buffer.from('me:secret').toString('base64')}`
const MANIFEST = JSON.stringify({
  layers: [
    {
      digest: digestOf(BYTES),
      size: BYTES.length,
      annotations: { 'org.opencontainers.image.title': 'disk.img' },
    },
  ],
})

/** A registry whose tokens are good for so many requests, and whose blobs lie elsewhere. */
function tokenRegistry(options: { readonly lasts: number; readonly storage: string }): Answer {
  let tokens = 0
  let left = 0
  return (request, response) => {
    const url = new URL(request.url ?? '', `http://${request.headers.host}`)
    if (url.pathname === '/token') {
      tokens += 1
      left = options.lasts
      response.end(JSON.stringify({ access_token: `token-${tokens}` }))
      return
    }
    if (request.headers.authorization !== `Bearer token-${tokens}` || left === 0) {
      const realm = `realm="http://${request.headers.host}/token",service="lab, it is"`
      response.writeHead(401, { 'www-authenticate': `Bearer ${realm}` }).end('{}')
      return
    }
    left -= 1
    if (url.pathname.includes('/blobs/')) {
      response.writeHead(307, { location: `${options.storage}/blob` }).end()
    } else response.end(MANIFEST)
  }
}

test('tokens are asked for, renewed, and never told to the host that has the blob', async () => {
  await using storage = await startHostileServer((request, response) =>
    sendFile(BYTES, request, response, { cutAfter: 200_000 }),
  )
  await using registry = await startHostileServer(
    tokenRegistry({ lasts: 1, storage: storage.origin }),
  )
  const host = registry.origin.slice('http://'.length)
  const env = {
    FLASHER_REGISTRY_HOST: host,
    FLASHER_REGISTRY_USER: 'me',
    FLASHER_REGISTRY_PASSWORD: 'secret',
    FLASHER_REGISTRY_HTTP: host,
  }
  await using source = await open(`oras://${host}/lab/disk:v1`, env)
  assert.ok(BYTES.equals(await collect(source.stream())))
  const asked = registry.seen.filter(({ url }) => url.startsWith('/token'))
  assert.ok(asked.length >= 2)
  for (const { url, headers } of asked) {
    const query = new URL(url, registry.origin).searchParams
    assert.equal(
      [...query],
      [
        ['service', 'lab, it is'],
        ['scope', 'repository:lab/disk:pull'],
      ],
    )
    assert.is(headers.authorization, `Basic ${Buffer.from('me:secret').toString('base64')}`)
  }
  assert.ok(storage.seen.length > 1)
  assert.ok(storage.seen.every(({ headers }) => headers.authorization === undefined))
  const basic = registry.seen.filter(({ url }) => !url.startsWith('/token'))
  assert.ok(basic.every(({ headers }) => !(headers.authorization ?? '').startsWith('Basic')))
})

test('a busy registry is asked again, and one that stays busy is reported', async () => {
  let busy = 2
  await using registry = await startHostileServer((request, response) => {
    if (request.url?.includes('/manifests/') === true && busy-- > 0) response.writeHead(503).end()
    else if (request.url?.includes('/manifests/') === true) response.end(MANIFEST)
    else sendFile(BYTES, request, response)
  })
  const host = registry.origin.slice('http://'.length)
  const env = { FLASHER_REGISTRY_HTTP: host }
  await using source = await open(`oras://${host}/lab/disk:v1`, env)
  assert.is(source.fileName, 'disk.img')
  busy = 3
  assert.match((await faultOf(() => open(`oras://${host}/lab/disk:v1`, env))).message, /HTTP 503/)
})

test('a registry elsewhere that speaks plain http has to be named', async () => {
  await using registry = await startRegistry()
  await pushImage(registry, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img' }])
  // Another name of this machine, which no rule knows for it.
  const host = `0${registry.host.replace('127.0.0.1', '')}`
  const reference = `oras://${host}/lab/disk:v1`
  const fault = await faultOf(() => open(reference))
  assert.match(fault.hint ?? '', /FLASHER_REGISTRY_HTTP/)
  await using source = await open(reference, { FLASHER_REGISTRY_HTTP: host })
  assert.ok(BYTES.equals(await collect(source.stream())))
})

test('an identity token is exchanged, once for each token, and goes to the token server alone', async () => {
  const grants: URLSearchParams[] = []
  await using registry = await startHostileServer(async (request, response) => {
    if (request.url === '/token' && request.method === 'POST') {
      grants.push(new URLSearchParams(await consumers.text(request)))
      const isGood = grants.at(-1)?.get('refresh_token') === 'IDENTITY'
      response.writeHead(isGood ? 200 : 401).end(JSON.stringify({ access_token: 'good' }))
    } else if (request.headers.authorization !== 'Bearer good') {
      const realm = `realm="http://${request.headers.host}/token",service="lab"`
      response.writeHead(401, { 'www-authenticate': `Bearer ${realm}` }).end('{}')
    } else if (request.url?.includes('/manifests/') === true) response.end(MANIFEST)
    else sendFile(BYTES, request, response)
  })
  const host = registry.origin.slice('http://'.length)
  const auth = Buffer.from('00000000-0000-0000-0000-000000000000:').toString('base64')
  const logins = (identitytoken: string) => ({
    DOCKER_AUTH_CONFIG: JSON.stringify({ auths: { [host]: { auth, identitytoken } } }),
    FLASHER_REGISTRY_HTTP: host,
  })
  await using source = await open(`oras://${host}/lab/disk:v1`, logins('IDENTITY'))
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.equal(Object.fromEntries(grants[0] ?? []), {
    grant_type: 'refresh_token',
    refresh_token: 'IDENTITY',
    client_id: 'flasher',
    scope: 'repository:lab/disk:pull',
    service: 'lab',
  })
  assert.is(grants.length, 1)
  const fault = await faultOf(() => open(`oras://${host}/lab/disk:v1`, logins('old')))
  assert.match(fault.message, /HTTP 401/)
})

test('an index with two images for one processor is refused with both digests', async () => {
  const manifests = ['a', 'b'].map((digit) => ({
    digest: `sha256:${digit.repeat(64)}`,
    platform: { architecture: 'amd64', os: 'linux' },
  }))
  await using registry = await startHostileServer((_, response) => {
    response.end(JSON.stringify({ manifests }))
  })
  const host = registry.origin.slice('http://'.length)
  const reference = `oras://${host}/lab/disk:v1`
  const fault = await faultOf(() => open(reference, { FLASHER_REGISTRY_HTTP: host }, 'x86_64'))
  for (const { digest } of manifests) assert.match(fault.message, digest)
  assert.match(fault.hint ?? '', `oras://${host}/lab/disk@sha256:aaaa`)
})

test('a registry with a certificate of its own authority', async () => {
  await using folder = await makeFolder()
  const { caFile, certificate } = await makeAuthority(folder.path)
  await using registry = await startHostileServer((request, response) => {
    if (request.url?.includes('/manifests/') === true) response.end(MANIFEST)
    else sendFile(BYTES, request, response)
  }, certificate)
  const reference = `oras://${registry.origin.slice('https://'.length)}/lab/disk:v1`
  await using source = await open(reference, { FLASHER_CA_FILE: caFile })
  assert.ok(BYTES.equals(await collect(source.stream())))
  const fault = await faultOf(() => open(reference))
  assert.match(fault.message, /unknown authority/)
})

test('an address of the blob that expires in the middle is asked for anew', async () => {
  let signature = 0
  let left = 0
  await using storage = await startHostileServer((request, response) => {
    const isGood = request.url === `/blob?signature=${signature}` && left > 0
    left -= 1
    if (isGood) sendFile(BYTES, request, response, { cutAfter: 150_000 })
    else response.writeHead(403).end()
  })
  await using registry = await startHostileServer((request, response) => {
    if (request.headers.authorization !== BASIC) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="lab"' }).end()
    } else if (request.url?.includes('/manifests/') === true) response.end(MANIFEST)
    else {
      signature += 1
      left = 2
      const location = `${storage.origin}/blob?signature=${signature}`
      response.writeHead(307, { location }).end()
    }
  })
  const host = registry.origin.slice('http://'.length)
  const env = {
    FLASHER_REGISTRY_HTTP: host,
    FLASHER_REGISTRY_HOST: host,
    FLASHER_REGISTRY_USER: 'me',
    FLASHER_REGISTRY_PASSWORD: 'secret',
  }
  await using source = await open(`oras://${host}/lab/disk:v1`, env)
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.ok(signature >= 2)
  assert.ok(storage.seen.some(({ url }) => url.endsWith('=2')))
  assert.ok(storage.seen.every(({ headers }) => headers.authorization === undefined))
})

test('answers that lie: another manifest than the digest, another size, no end', async () => {
  let blob = BYTES
  let manifest = MANIFEST
  await using registry = await startHostileServer((request, response) => {
    if (request.url?.includes('/manifests/') === true) response.end(manifest)
    else sendFile(blob, request, response)
  })
  const host = registry.origin.slice('http://'.length)
  const env = { FLASHER_REGISTRY_HTTP: host }
  const wrong = `oras://${host}/lab/disk@sha256:${'0'.repeat(64)}`
  assert.is((await faultOf(() => open(wrong, env))).code, 'digest-mismatch')
  blob = OTHER
  const other = await faultOf(() => open(`oras://${host}/lab/disk:v1`, env))
  assert.match(other.message, /its manifest says 700001 bytes, the registry has 300001/)
  manifest = ' '.repeat(11 * 1024 * 1024)
  const huge = await faultOf(() => open(`oras://${host}/lab/disk:v1`, env))
  assert.match(huge.message, /larger than/)
})

test.run()
