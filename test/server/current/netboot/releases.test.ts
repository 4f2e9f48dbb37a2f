import { ipxeFile } from '#appliance/assets.ts'
import { chmod, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { page } from '#kit/web/answers/answers.ts'
import { findBuiltSets } from '#fleet/boot/boot-sets.ts'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'
import { partName, sha256 } from '#test/support/server/boot-folder.ts'
import { createBootFiles } from '#fleet/boot/boot-files.ts'
import { createChanges } from '#kit/host/changes.ts'
import { createReleases, type Releases } from '#fleet/boot/releases.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { releaseRoutes } from '#server/current/netboot/releases.ts'
import { REPOSITORY, startReleaseSite } from '#test/support/http/release-site.ts'
import { asJson, createTestServer } from '#test/support/server/server.ts'
import { createStateFolder } from '#test/support/server/state.ts'

const test = suite('/boot/releases')
const now = () => new Date()

async function openFixture(site: string) {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-releases-'))
  const built = await mkdtemp(join(tmpdir(), 'flasher-built-'))
  const state = await createStateFolder()
  const services = await state.open()
  const bootFiles = await createBootFiles({ dir, now })
  const releases: Releases = createReleases({
    bootFiles,
    sources: createSources({ env: {}, retryMs: 1 }),
    env: {},
    journal: services.journal,
    changes: createChanges(),
    settings: () => ({ site, repository: REPOSITORY, keys: [], keep: 1 }),
    now,
  })
  const server = await createTestServer({
    routes: (given) => [
      ...releaseRoutes(given, {
        netboot: {
          bootFiles,
          releases,
          listBuilt: () => findBuiltSets([join(dir, 'gone'), built]),
        },
        tag: () => 'v1.2.3',
        save: async (changes) => ({ ok: true, value: changes }),
      }),
      {
        method: 'GET',
        path: '/ui/netboot',
        access: { page: 'read' },
        handle: (event) => page(given.notices.read(event)?.error ?? 'nothing was refused'),
      },
    ],
  })
  return {
    dir,
    built,
    releases,
    bootFiles,
    server,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await releases[Symbol.asyncDispose]()
      await bootFiles[Symbol.asyncDispose]()
      await services[Symbol.asyncDispose]()
      await state[Symbol.asyncDispose]()
      await rm(dir, { recursive: true })
      await rm(built, { recursive: true })
    },
  }
}

test('begun, listed, ended; nothing tells where it lies on this host', async () => {
  await using site = await startReleaseSite()
  await using fixture = await openFixture(site.origin)
  const ask = await fixture.server.operator()
  const begun = await ask('/boot/releases', asJson({ tag: 'v1.2.3' }))
  assert.is(begun.status, 202)
  await fixture.releases.awaitEnd('v1.2.3')
  const listed = await ask('/boot/releases')
  const text = await listed.text()
  assert.not.ok(text.includes(fixture.dir))
  assert.match(
    text,
    /^\{"boot_root":"\/boot\/","max_parallel":1,"fetches":\[\{"tag":"v1\.2\.3","status":"completed",/,
  )
  const ended = await ask('/boot/releases/v1.2.3', { method: 'DELETE' })
  assert.is(ended.status, 200)
  const all = await ask('/boot/releases', { method: 'DELETE' })
  assert.equal(await all.json(), { cancelled: [] }, 'nothing is under way')
  const again = await ask('/boot/releases', asJson({}))
  assert.is(again.status, 202)
  assert.match(await again.text(), /"tag":"v1.2.3","status":"(queued|running)"/)
  await fixture.releases.awaitEnd('v1.2.3')
})

test('what is wrong with a request', async () => {
  await using fixture = await openFixture('')
  const ask = await fixture.server.operator()
  for (const body of [
    { tag: '../x' },
    { tag: '..' },
    { tag: '' },
    { tag: 'a/b' },
    { tag: 1 },
    { x: 1 },
    [],
    'x',
  ]) {
    assert.is((await ask('/boot/releases', asJson(body))).status, 422, JSON.stringify(body))
  }
  const missing = await ask('/boot/releases', asJson({ tag: 'v1' }))
  assert.is(missing.status, 409)
  assert.match(await missing.text(), /FLASHER_RELEASES_BASE_URL/)
  assert.is((await ask('/boot/releases/v9', { method: 'DELETE' })).status, 404)
  assert.is((await ask('/boot/releases/%2e%2e%2fx', { method: 'DELETE' })).status, 422)
  for (const [path, method] of [
    ['/boot/releases', 'GET'],
    ['/boot/releases', 'POST'],
    ['/boot/releases/v1', 'DELETE'],
  ] as const) {
    assert.is((await fixture.server.request(path, { method })).status, 401)
  }
})

test('the forms of the page lead back to it, also with bad news', async () => {
  await using site = await startReleaseSite()
  await using fixture = await openFixture(site.origin)
  const ask = await fixture.server.operator()
  const post = (path: string, fields: Record<string, string>) =>
    ask(path, { method: 'POST', body: new URLSearchParams(fields) })
  const begun = await post('/ui/netboot/fetch-release', {})
  assert.equal([begun.status, begun.headers.get('location')], [303, '/ui/netboot'])
  assert.is((await fixture.releases.awaitEnd('v1.2.3'))?.status, 'completed')
  const wrong = await post('/ui/netboot/fetch-release', { tag: '../..' })
  assert.is(wrong.status, 303)
  const said = async (answer: Response) =>
    await (await ask(answer.headers.get('location') ?? '')).text()
  assert.match(wrong.headers.get('location') ?? '', /^\/ui\/netboot\?error=[^&]+&notice=[\w-]{12}$/)
  assert.match(await said(wrong), /^Release: That is not a tag/)
  const none = await post('/ui/netboot/use-set', { arch: 'x86_64', version: '9' })
  assert.match(await said(none), /^version 9/)
  const used = await post('/ui/netboot/use-set', { arch: 'x86_64', version: '1.2.3' })
  assert.is(used.headers.get('location'), '/ui/netboot')
})

test('what lies on this host is checked, installed and booted', async () => {
  await using fixture = await openFixture('')
  const ask = await fixture.server.operator()
  const [first, ...others] = TRIO.map((part) => partName('1.4.0', part))
  const write = (name: string, text: string) => writeFile(join(fixture.built, name), text)
  for (const name of [first ?? '', ...others]) await write(name, name)
  const sums = [first ?? '', ...others].map((name) => `${sha256(Buffer.from(name))}  ${name}\n`)
  await write(partName('1.4.0', 'sha256'), sums.join(''))
  let tries = 0
  const take = async (version: string) => {
    // The same form twice within a second is one click.
    const body = new URLSearchParams({ arch: 'x86_64', version, again: String((tries += 1)) })
    const answer = await ask('/ui/netboot/take-built', { method: 'POST', body })
    return (await ask(answer.headers.get('location') ?? '')).text()
  }
  assert.match(await take('9'), 'there is no such live system any more')
  await chmod(fixture.built, 0o777)
  assert.match(await take('1.4.0'), 'there is no such live system any more')
  await chmod(fixture.built, 0o700)
  await write(first ?? '', 'damaged')
  assert.match(await take('1.4.0'), 'does not match its checksum')
  assert.is(fixture.bootFiles.active().x86_64, null)
  await write(first ?? '', first ?? '')
  const loader = ipxeFile('x86_64', '1.4.0')
  await symlink('/gone', join(fixture.built, loader))
  assert.match(await take('1.4.0'), `${loader} could not be copied: `)
  await rm(join(fixture.built, loader))
  assert.is(await take('1.4.0'), 'nothing was refused')
  assert.is(fixture.bootFiles.active().x86_64?.version, '1.4.0')
})

test('no file can be called like the route of releases', async () => {
  await using fixture = await openFixture('http://127.0.0.1:9')
  const ask = await fixture.server.operator()
  const answer = await ask('/boot/releases', { method: 'PUT', body: 'bytes' })
  assert.is(answer.status, 400)
  const { detail } = await answer.json()
  assert.match(detail, /releases is a route of this server/)
})

test.run()
