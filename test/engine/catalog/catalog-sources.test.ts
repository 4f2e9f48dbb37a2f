import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createCatalogSources } from '#engine/catalog/catalog-manifests.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { makeFolder } from '#test/support/server/image-cache.ts'
import { CREDENTIALS, digestOf, pushImage, startRegistry } from '#test/support/http/registry.ts'

const test = suite('catalog sources')
const CATALOG = 'version = 1\n[[images]]\nname = "Deb"\nsrc = "https://h/Deb.img.gz"\n'
const LOCAL = `${CATALOG}[[images]]\nname = "mine"\nsrc = "file://images/Mine.img"\n`

const load = (source: string, env: Readonly<Record<string, string>> = {}, timeoutMs = 5000) =>
  createCatalogSources({ env, timeoutMs })(source)

/** The names offered, and the lines of what is not. */
async function offered(source: string, env?: Readonly<Record<string, string>>) {
  const loaded = await load(source, env)
  if (!loaded.ok) throw new Error(loaded.refusal.message)
  const { images, flaws } = loaded.value
  return [images.map(({ location }) => location), flaws.map(({ line }) => line)]
}

async function refused(source: string, env?: Readonly<Record<string, string>>, ms?: number) {
  const loaded = await load(source, env, ms)
  if (loaded.ok) throw new Error(`${source} was taken`)
  return loaded.refusal
}

test('a file, by path or address; only it may name files of this machine', async () => {
  await using folder = await makeFolder()
  const path = join(folder.path, 'My Catalog.TOML')
  await writeFile(path, LOCAL)
  const both = ['https://h/Deb.img.gz', join(folder.path, 'images/Mine.img')]
  assert.equal(await offered(path), [both, []])
  assert.equal(await offered(`file://${path}`), [both, []])
  await using server = await startHostileServer((_, response) => response.end(LOCAL))
  assert.equal(await offered(`${server.origin}/My%20Catalog.TOML`), [['https://h/Deb.img.gz'], [5]])
  assert.is(server.seen[0]?.url, '/My%20Catalog.TOML')
})

test('a server by its bare address is asked for its catalog', async () => {
  await using server = await startHostileServer((_, response) => response.end(CATALOG))
  await offered(server.origin)
  await offered(`${server.origin}/?x=1`)
  assert.equal(
    server.seen.map(({ url }) => url),
    ['/catalog.toml', '/?x=1'],
  )
})

test('a file that is no catalog is refused with the line, an unavailable one with its name', async () => {
  await using folder = await makeFolder()
  const at = (name: string) => join(folder.path, name)
  await writeFile(at('broken.toml'), 'version = 1\n[[images]]\nname = nothing\n')
  await writeFile(at('two.toml'), 'version = 2\n')
  await writeFile(at('huge.toml'), `# ${'x'.repeat(4 * 1024 * 1024)}\nversion = 1\n`)
  await mkdir(at('folder'))
  const rows = [
    [at('broken.toml'), 'input-invalid', /broken\.toml: line 3: /],
    [at('two.toml'), 'input-invalid', /two\.toml: line 1: a catalog must have version = 1/],
    [at('huge.toml'), 'input-missing', /huge\.toml cannot be read: it is larger than 4194304/],
    [at('folder'), 'input-missing', /it is a folder/],
    ['/dev/zero', 'input-missing', /it is not a file/],
    [at('none.toml'), 'input-missing', /none\.toml cannot be read: there is no such file/],
    ['ftp://h/c.toml', 'input-invalid', /ftp:\/\/ catalogs are not supported/],
    ['', 'input-invalid', /no catalog is named/],
    ['-', 'input-invalid', /standard input/],
    ['oras://h/a', 'input-invalid', /malformed/],
  ] as const
  for (const [source, code, words] of rows) {
    const refusal = await refused(source)
    assert.is(refusal.code, code, refusal.message)
    assert.match(refusal.message, words)
  }
})

test('servers that fail, never end, send too much, or send a page', async () => {
  await using server = await startHostileServer((request, response) => {
    if (request.url === '/page') response.end('<!doctype html><title>x</title>')
    else if (request.url === '/huge') response.end('#'.repeat(5 * 1024 * 1024))
    else if (request.url === '/slow') response.write('version')
    else response.writeHead(500).end()
  })
  const secret = server.origin.replace('//', '//me:secret@')
  const rows = [
    [`${secret}/none`, /\/none cannot be read: HTTP 500/],
    [`${server.origin}/page`, /line 1: /],
    [`${server.origin}/huge`, /larger than 4194304/],
    [`${server.origin}/slow`, /no answer within 0\.3 s/],
    ['http://127.0.0.1:1/c', /connection refused/],
  ] as const
  for (const [source, words] of rows) {
    const { message } = await refused(source, {}, source.endsWith('/slow') ? 300 : 30_000)
    assert.match(message, words)
    assert.not.match(message, /secret/)
  }
  assert.is((await refused(`${server.origin}/page`)).hint, 'This is a web page.')
})

test('ends at once when it is cancelled', async () => {
  await using server = await startHostileServer(() => {})
  const ending = new AbortController()
  const loading = createCatalogSources({ env: {} })(server.origin, ending.signal)
  ending.abort()
  const loaded = await loading
  assert.is(loaded.ok ? '' : loaded.refusal.code, 'cancelled')
  const registry = server.origin.slice('http://'.length)
  const again = await createCatalogSources({ env: {} })(`oras://${registry}/a/b:c`, ending.signal)
  assert.is(again.ok ? '' : again.refusal.code, 'cancelled')
})

test('a registry: the layer named .toml, else the only one, else the blob itself', async () => {
  await using registry = await startRegistry({ locked: true })
  const bytes = Buffer.from(LOCAL)
  const big = Buffer.alloc(9000, 'x')
  await pushImage(registry, 'lab/catalog:beside', [
    { bytes: big, title: 'disk.img' },
    { bytes, title: 'catalog.toml' },
  ])
  await pushImage(registry, 'lab/catalog:alone', [{ bytes }])
  await pushImage(registry, 'lab/catalog:huge', [{ bytes: Buffer.alloc(4 * 1024 * 1024 + 1) }])
  const { user, password } = CREDENTIALS
  const env = {
    FLASHER_REGISTRY_HOST: registry.host,
    FLASHER_REGISTRY_USER: user,
    FLASHER_REGISTRY_PASSWORD: password,
  }
  const at = `oras://${registry.host}/lab/catalog`
  for (const version of [':beside', ':alone', `@${digestOf(bytes)}`]) {
    assert.equal(await offered(at + version, env), [['https://h/Deb.img.gz'], [5]])
  }
  assert.match((await refused(`${at}:huge`, env)).message, /huge cannot be read: it is larger/)
  assert.match((await refused(`${at}:none`, env)).message, /^catalog not reachable: .*HTTP 404/)
  const locked = await refused(`${at}:alone`)
  assert.match(locked.message, /HTTP 401/)
  assert.match(locked.hint ?? '', /FLASHER_REGISTRY_USER/)
})

test('a registry that hangs is given up', async () => {
  await using server = await startHostileServer(() => {})
  const source = `oras://${server.origin.slice('http://'.length)}/lab/catalog:v1`
  const env = { FLASHER_REGISTRY_HTTP: server.origin.slice('http://'.length) }
  assert.match((await refused(source, env, 200)).message, /no answer within 0\.2 s/)
})

test('a web server with a certificate of its own authority', async () => {
  await using folder = await makeFolder()
  const { caFile, certificate } = await makeAuthority(folder.path)
  await using server = await startHostileServer((_, response) => response.end(CATALOG), certificate)
  await offered(server.origin, { FLASHER_CA_FILE: caFile })
  assert.match((await refused(server.origin)).message, /authority/)
})

test.run()
