/** "POST /ui/boot/fetch-release": both forms of the address, the manifest, and all files or none. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { LIVE_SUMS, LIVE_TRIO } from '#appliance/assets.ts'
import { makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { sha256 } from '#test/support/server/boot-folder.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'

const test = suite('the earlier line: fetching a release')
const REPOSITORY = 'example/project'
const NAMES = Object.values(LIVE_TRIO)

interface SiteOptions {
  /** The path below which the files lie. */
  readonly folder: string
  /** Other bytes than the list says; null: the file is missing. */
  readonly changed?: Readonly<Record<string, Buffer | null>>
  readonly sums?: (text: string) => string
}

async function startSite({ folder, changed = {}, sums = (text) => text }: SiteOptions) {
  const files = new Map(NAMES.map((name, at) => [name, makeBytes(50_000 + at, at + 1)] as const))
  const list = NAMES.map((name) => `${sha256(files.get(name) ?? '')}  ./${name}\n`).join('')
  const served = new Map<string, Buffer>([...files, [LIVE_SUMS, Buffer.from(sums(list))]])
  for (const [name, content] of Object.entries(changed)) {
    if (content === null) served.delete(name)
    else served.set(name, content)
  }
  const server = await startHostileServer((request, response) => {
    const { url = '' } = request
    const file = url.startsWith(folder) ? served.get(url.slice(folder.length)) : undefined
    if (file === undefined) response.writeHead(404).end()
    else sendFile(file, request, response, {})
  })
  return { ...server, files, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

const serverOf = (base: string) =>
  createEarlierServer({
    env: { FLASHER_RELEASES_BASE_URL: base, FLASHER_BOOT_RELEASE_REPO: REPOSITORY },
  })

type Server = Awaited<ReturnType<typeof createEarlierServer>>

const post = (tag: string) => ({ method: 'POST', body: new URLSearchParams({ tag }) })

/** The page as it is once the fetch has ended. */
async function fetchRelease(server: Server, tag: string): Promise<string> {
  const ask = await server.operator()
  const answer = await ask('/ui/boot/fetch-release', post(tag))
  assert.is(answer.status, 303)
  return await (await ask(answer.headers.get('location') ?? '')).text()
}

const FORMS = [
  ['v1.2.3', `/${REPOSITORY}/releases/download/v1.2.3/`],
  ['v1.2.3', `/${REPOSITORY}/releases/v1.2.3/download/`],
  ['v1.2.3', '/releases/download/v1.2.3/'],
  ['v1.2.3', '/releases/v1.2.3/download/'],
  ['latest', `/${REPOSITORY}/releases/latest/download/`],
  ['latest', '/releases/latest/download/'],
  ['', '/releases/latest/download/'],
] as const

for (const [tag, folder] of FORMS) {
  test(`a release is fetched with tag "${tag}" from ${folder}`, async () => {
    await using site = await startSite({ folder })
    await using server = await serverOf(site.origin)
    assert.match(await fetchRelease(server, tag), 'was installed')
    for (const name of NAMES) {
      assert.equal(await readFile(join(server.boot, name)), site.files.get(name), name)
    }
    assert.equal((await readdir(server.boot)).toSorted(), [...NAMES, LIVE_SUMS].toSorted())
    const part = await server.request(`/boot/${LIVE_TRIO.squashfs}`, {
      headers: { range: 'bytes=0-3' },
    })
    assert.is(part.status, 206)
  })
}

const FAILURES: readonly (readonly [string, Omit<SiteOptions, 'folder'>, RegExp])[] = [
  [
    'a file that is not what the list says',
    { changed: { [LIVE_TRIO.initrd]: makeBytes(50_001, 9) } },
    /lists/,
  ],
  ['a file that is missing', { changed: { [LIVE_TRIO.squashfs]: null } }, /404/],
  ['no list', { changed: { [LIVE_SUMS]: null } }, /not found/],
  [
    'a list that leaves a file out',
    { sums: (text) => text.split('\n').slice(0, 2).join('\n') },
    /does not list flasher-live-x86_64\.squashfs/,
  ],
  ['a list that is none', { sums: () => '<html>' }, /does not list/],
]

for (const [what, options, reason] of FAILURES) {
  test(`${what}: the page says so, and nothing was changed`, async () => {
    await using site = await startSite({ folder: '/releases/latest/download/', ...options })
    await using server = await serverOf(site.origin)
    await server.putBootFile(LIVE_TRIO.vmlinuz, 'the kernel of before')
    const page = await fetchRelease(server, 'latest')
    assert.match(page, 'was not installed')
    assert.match(page, reason)
    const visible = (await readdir(server.boot)).filter((name) => !name.startsWith('.'))
    assert.equal(visible, [LIVE_TRIO.vmlinuz])
    assert.is(await readFile(join(server.boot, LIVE_TRIO.vmlinuz), 'utf8'), 'the kernel of before')
  })
}

test('without a site, with a bad tag, or without a session nothing is fetched', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  assert.match(
    await (await ask('/ui/boot')).text(),
    /Nothing can be fetched: no release site is set/,
  )
  for (const tag of ['../evil', 'a b', 'latest']) {
    const answer = await ask('/ui/boot/fetch-release', post(tag))
    assert.equal([answer.status, /notice=/.test(answer.headers.get('location') ?? '')], [303, true])
  }
  const nobody = await server.request('/ui/boot/fetch-release', post('latest'))
  assert.match(nobody.headers.get('location') ?? '', /^\/ui\/login/)
  assert.equal(await readdir(server.boot), [])
})

test('the page lists each file as present or missing', async () => {
  await using server = await createEarlierServer()
  await server.putBootFile(LIVE_TRIO.vmlinuz, 'x')
  const text = await (await (await server.operator())('/ui/boot')).text()
  for (const name of [...NAMES, LIVE_SUMS]) assert.match(text, name)
  assert.is(text.match(/>missing</g)?.length, 3)
  assert.is(text.match(/>present</g)?.length, 1)
})

test.run()
