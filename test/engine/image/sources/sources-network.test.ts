import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSources } from '#engine/image/sources/sources.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { collect, faultOf, makeBytes } from '#test/support/collect.ts'
import { startConnectProxy } from '#test/support/http/connect-proxy.ts'
import { findPort } from '#test/support/http/ports.ts'
import {
  sendFile,
  startHostileServer,
  type Certificate,
} from '#test/support/http/hostile-server.ts'

const test = suite('sources: proxies and authorities')
const BYTES = makeBytes(300_001)
const temporary = () => mkdtempDisposable(join(tmpdir(), 'flasher-tls-'))

const serve = (certificate?: Certificate) =>
  startHostileServer((request, response) => sendFile(BYTES, request, response), certificate)

const sourcesWith = (env: Readonly<Record<string, string>>) => createSources({ env, retryMs: 1 })

test('trusts the authorities of FLASHER_CA_FILE, and no unknown one', async () => {
  await using folder = await temporary()
  const { caFile, certificate } = await makeAuthority(folder.path)
  await using server = await serve(certificate)
  const url = `${server.origin}/x.img`
  const fault = await faultOf(() => sourcesWith({}).open(url))
  assert.is(fault.code, 'input-missing')
  assert.match(fault.message, /\(the certificate comes from an unknown authority\)$/)
  assert.match(fault.hint ?? '', /FLASHER_CA_FILE/)
  await using source = await sourcesWith({ FLASHER_CA_FILE: caFile }).open(url)
  assert.ok(BYTES.equals(await collect(source.stream())))
  const wrongName = url.replace('127.0.0.1', 'localhost')
  const other = await faultOf(() => sourcesWith({ FLASHER_CA_FILE: caFile }).open(wrongName))
  assert.match(other.message, /\(the certificate is for another host name\)$/)
})

test('takes a bundle of several, with text between them', async () => {
  await using folder = await temporary()
  const { caFile, certificate } = await makeAuthority(folder.path)
  const bundle = join(folder.path, 'bundle.pem')
  await writeFile(
    bundle,
    `# ours\n${certificate.cert}\nsubject=x\n${await readFile(caFile, 'utf8')}`,
  )
  await using server = await serve(certificate)
  await using source = await sourcesWith({ FLASHER_CA_FILE: bundle }).open(`${server.origin}/x`)
  assert.is(source.sizeBytes, BYTES.length)
})

test('says what is wrong with FLASHER_CA_FILE', async () => {
  await using folder = await temporary()
  const at = (name: string) => join(folder.path, name)
  await writeFile(at('empty.pem'), 'nothing')
  const damaged = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  await writeFile(at('damaged.pem'), damaged)
  for (const [name, code, words] of [
    ['absent.pem', 'input-missing', /FLASHER_CA_FILE cannot be read: .*absent\.pem does not exist/],
    ['empty.pem', 'input-invalid', /empty\.pem: it holds no PEM certificate$/],
    ['damaged.pem', 'input-invalid', /damaged\.pem: a certificate in it is damaged/],
  ] as const) {
    const sources = sourcesWith({ FLASHER_CA_FILE: at(name) })
    const fault = await faultOf(() => sources.open('https://127.0.0.1:1/x.img'))
    assert.is(fault.code, code)
    assert.match(fault.message, words)
  }
})

test('goes through the proxy of the environment, in either case of its name', async () => {
  await using server = await serve()
  const { port } = new URL(server.origin)
  for (const name of ['http_proxy', 'HTTP_PROXY']) {
    await using proxy = await startConnectProxy()
    const sources = sourcesWith({ [name]: `http://me:hidden@${proxy.address}` })
    await using source = await sources.open(`http://files.test:${port}/x.img`)
    assert.ok(BYTES.equals(await collect(source.stream())))
    assert.ok(proxy.asked.includes(`GET http://files.test:${port}/x.img`))
    assert.is(proxy.authorizations[0], `Basic ${btoa('me:hidden')}`)
  }
})

test('goes through a tunnel for https', async () => {
  await using folder = await temporary()
  const { caFile, certificate } = await makeAuthority(folder.path)
  await using server = await serve(certificate)
  const { port } = new URL(server.origin)
  for (const name of ['https_proxy', 'HTTPS_PROXY']) {
    await using proxy = await startConnectProxy()
    const sources = sourcesWith({ [name]: proxy.address, FLASHER_CA_FILE: caFile })
    await using source = await sources.open(`https://files.test:${port}/x.img`)
    assert.ok(BYTES.equals(await collect(source.stream())))
    const into = Buffer.alloc(10)
    assert.is(await source.readAt?.(into, 1000), 10)
    assert.ok(into.equals(BYTES.subarray(1000, 1010)))
    assert.is(proxy.asked[0], `CONNECT files.test:${port}`)
  }
})

test('goes round the proxy where no_proxy says so', async () => {
  await using server = await serve()
  for (const [name, direct] of [
    ['no_proxy', 'other.test,127.0.0.1'],
    ['NO_PROXY', 'other.test,127.0.0.1'],
    ['no_proxy', 'fd00::/8, 127.0.0.0/8'],
  ] as const) {
    await using proxy = await startConnectProxy()
    const sources = sourcesWith({ http_proxy: proxy.address, [name]: direct })
    await using source = await sources.open(`${server.origin}/x.img`)
    assert.is(source.sizeBytes, BYTES.length)
    assert.equal(proxy.asked, [])
  }
})

test('names a proxy that is not there, without its password', async () => {
  const port = await findPort()
  const sources = sourcesWith({ http_proxy: `http://me:hidden@127.0.0.1:${port}` })
  const fault = await faultOf(() => sources.open('http://files.test/x.img'))
  assert.match(fault.message, `the proxy 127.0.0.1:${port} cannot be reached: connection refused`)
  assert.not.match(fault.message, 'hidden')
})

test('says so where the proxy refuses, or is none', async () => {
  await using proxy = await startConnectProxy(407)
  const refused = sourcesWith({ https_proxy: `http://me:hidden@${proxy.address}` })
  const fault = await faultOf(() => refused.open('https://files.test/x.img'))
  assert.is(
    fault.message,
    'image URL not reachable: https://files.test/x.img (the proxy refused (HTTP 407))',
  )
  const odd = sourcesWith({ http_proxy: 'socks5://me:hidden@127.0.0.1:1' })
  const misuse = await faultOf(() => odd.open('http://files.test/x.img'))
  assert.is(misuse.code, 'misuse')
  assert.is(misuse.message, 'http_proxy is not the address of an http proxy')
})

test.run()
