/** "GET /images", "GET /images/{name}" and "PUT /images/{name}", and the same of /boot. */
import { once } from 'node:events'
import { mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { LIVE_SUMS, LIVE_TRIO } from '#appliance/assets.ts'
import { makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { FORMS, startHosting } from '#test/support/http/hosting-site.ts'
import { REPOSITORY } from '#test/support/http/release-site.ts'
import { makeReleaseFolder, makeSigningKey } from '#test/support/release-folder.ts'
import { sha256 } from '#test/support/server/boot-folder.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { asJson, listen } from '#test/support/server/server.ts'
import { createWorkflowFixture, eventually } from '#test/support/system/workflow-fixture.ts'

const test = suite('the earlier line: images')
const bytes = (text: string): RequestInit => ({ method: 'PUT', body: text })

test('the catalog has the fields of the table, sorted by name, and only what can be served', async () => {
  await using server = await createEarlierServer()
  await server.putImage('b.qcow2', 'QFI')
  await server.putImage('A.IMG', 'one')
  await server.putImage('notes.txt', 'no image')
  await server.putImage('.hidden.img', 'hidden')
  await writeFile(join(server.dir, 'outside.img'), 'secret')
  await symlink(join(server.dir, 'outside.img'), join(server.images, 'link.img'))
  const answer = await server.request('/images')
  assert.is(answer.status, 200)
  assert.equal(await answer.json(), [
    { name: 'A.IMG', path: join(server.images, 'A.IMG'), format: 'img', size_bytes: 3 },
    { name: 'b.qcow2', path: join(server.images, 'b.qcow2'), format: 'qcow2', size_bytes: 3 },
  ])
  assert.is((await server.request('/images/link.img')).status, 404)
})

test('Raspberry Pi Imager lists what it can write, with absolute addresses, and without a login', async () => {
  await using server = await createEarlierServer()
  await server.putImage('b.qcow2', 'QFI')
  await server.putImage('a b.img', 'one')
  await server.putImage('c.img.xz', 'packed')
  const answer = await server.request('/imager.json')
  assert.is(answer.status, 200)
  const { os_list: list } = Object(await answer.json())
  assert.equal(
    list.map(({ name, url, extract_size, extract_sha256 }: Readonly<Record<string, unknown>>) => [
      name,
      url,
      extract_size,
      extract_sha256,
    ]),
    [
      ['a b.img', 'http://flasher.test:8080/images/a%20b.img', 3, undefined],
      ['c.img.xz', 'http://flasher.test:8080/images/c.img.xz', undefined, undefined],
    ],
  )
  assert.match(list[0].icon, /^http:\/\/flasher\.test:8080\/static\/.*\/icon\.svg$/)
  const fetched = await server.request(new URL(list[0].url).pathname)
  assert.is(await fetched.text(), 'one')
})

const ELSEWHERE = ['a/b.img', '../b.img', '.b.img', 'a\\b.img', 'a\0b.img']

test('a percent sign in a name is one, also where it could be an escape', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const names = [
    '100%.img',
    '5% less.img',
    '%.img',
    'a%20b.img',
    'a b.img',
    '%25.img',
    'a%2520b.img',
    'a%2e.img',
    '%E9.img',
    '%ff%fe.img',
    'é+&?#;=~.img',
  ].toSorted()
  for (const name of names) {
    const path = `/images/${encodeURIComponent(name)}`
    assert.is((await ask(path, bytes(name))).status, 200, name)
    assert.is(await (await server.request(path)).text(), name)
  }
  const listed: unknown = await (await server.request('/images')).json()
  assert.equal(
    Object(listed)
      .map(({ name }: { readonly name: string }) => name)
      .toSorted(),
    names,
  )
  assert.equal((await readdir(server.images)).toSorted(), names)
  for (const name of [
    ...ELSEWHERE,
    'a%2fb.img',
    '%2e%2e.img',
    'a%252Fb.img',
    '%00.img',
    'a%5cb.img',
  ]) {
    assert.is((await ask(`/images/${encodeURIComponent(name)}`, bytes('x'))).status, 400, name)
  }
})

test('a name that reverses text is not taken', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const name = encodeURIComponent('gmi.\u202egnp.img')
  assert.is((await ask(`/images/${name}`, bytes('x'))).status, 400)
  assert.equal(await readdir(server.images), [])
})

test('an image is answered whole, in part, by its headers alone, or not at all', async () => {
  await using server = await createEarlierServer()
  await server.putImage('a b.img', '0123456789')
  const whole = await server.request('/images/a%20b.img')
  assert.equal([whole.status, await whole.text()], [200, '0123456789'])
  assert.is(whole.headers.get('accept-ranges'), 'bytes')
  const head = await server.request('/images/a%20b.img', { method: 'HEAD' })
  assert.equal(
    [head.status, head.headers.get('content-length'), await head.text()],
    [200, '10', ''],
  )
  const part = await server.request('/images/a%20b.img', { headers: { range: 'bytes=2-4' } })
  assert.equal(
    [part.status, part.headers.get('content-range'), await part.text()],
    [206, 'bytes 2-4/10', '234'],
  )
  const past = await server.request('/images/a%20b.img', { headers: { range: 'bytes=10-' } })
  assert.equal([past.status, past.headers.get('content-range')], [416, 'bytes */10'])
  assert.is((await server.request('/images/none.img')).status, 404)
})

test('hostile names lead nowhere, reading or writing', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  for (const name of [
    '.hidden.img',
    '%2e%2e%2fstate.db',
    '..%2f..%2fetc%2fpasswd',
    'a%5cb.img',
    'a%00b.img',
    'a%0ab.img',
    'x'.repeat(300),
  ]) {
    for (const folder of ['images', 'boot']) {
      const path = `/${folder}/${name}`
      for (const answer of [await ask(path), await ask(path, bytes('x'))]) {
        assert.ok([400, 404, 405].includes(answer.status), `${path}: ${answer.status}`)
        assert.not.match(await answer.text(), 'root:')
      }
    }
  }
  assert.equal(await readdir(server.images), [])
})

test('an upload needs a session, is renamed into place, and is listed at once', async () => {
  await using server = await createEarlierServer()
  assert.is((await server.request('/images/a.img', bytes('x'))).status, 401)
  const ask = await server.operator()
  await (await ask('/images')).text()
  const made = await ask('/images/a.img', bytes('first'))
  assert.equal(
    [made.status, await made.json()],
    [200, { name: 'a.img', size_bytes: 5, path: join(server.images, 'a.img') }],
  )
  await ask('/images/a.img', bytes('the second'))
  assert.is(await (await ask('/images/a.img')).text(), 'the second')
  const [listed] = await (await ask('/images')).json()
  assert.is(listed.size_bytes, 10)
  assert.equal(await readdir(server.images), ['a.img'])
  const [event] = await server.journal.list({ kind: 'images.uploaded', limit: 1 })
  assert.is(event?.summary, 'a.img was uploaded')
})

test('an upload that breaks off, or is too long, leaves what was there', async () => {
  await using server = await createEarlierServer({ env: { FLASHER_TUNING_MAX_UPLOAD_BYTES: '8' } })
  const ask = await server.operator()
  await server.putImage('a.img', 'whole')
  assert.is((await ask('/images/a.img', bytes('much too long'))).status, 413)
  const broken = new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from('part'))
      controller.error(new Error('the cable'))
    },
  })
  const init: RequestInit & { duplex: 'half' } = { method: 'PUT', body: broken, duplex: 'half' }
  assert.is((await ask('/images/a.img', init)).status, 400)
  assert.is(await (await ask('/images/a.img')).text(), 'whole')
  assert.equal(await readdir(server.images), ['a.img'])
})

test('an upload that no disk could hold is refused before it is taken', async () => {
  await using server = await createEarlierServer({
    env: { FLASHER_TUNING_MAX_UPLOAD_BYTES: '1000000 GiB' },
  })
  const ask = await server.operator()
  const headers = { 'content-length': String(900_000 * 2 ** 30) }
  const answer = await ask('/images/a.img', { ...bytes('x'), headers })
  assert.is(answer.status, 507)
  assert.match((await answer.json()).detail, 'free space')
})

test('boot files: open to read, a session to write', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const name = 'flasher-live-x86_64.vmlinuz'
  assert.is((await server.request(`/boot/${name}`)).status, 404)
  assert.is((await server.request(`/boot/${name}`, bytes('x'))).status, 401)
  assert.is((await ask(`/boot/${name}`, bytes('kernel'))).status, 200)
  assert.is(await (await server.request(`/boot/${name}`)).text(), 'kernel')
})

const MAC = '52:54:00:12:34:56'
const run = $({ quiet: true, verbose: false })

type Server = Awaited<ReturnType<typeof createEarlierServer>>

const put = (body: RequestInit['body']): RequestInit & { duplex: 'half' } => ({
  method: 'PUT',
  duplex: 'half',
  ...(body === undefined ? {} : { body }),
})
const readScript = async (server: Server, mac = MAC) =>
  await (await server.request(`/pxe/${mac}`)).text()

test('what is not a MAC address is refused by every route, and nothing is recorded', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const before = await server.machines.count()
  for (const mac of [
    'x',
    '52:54:00:12:34',
    '52:54:00:12:34:56:78',
    '52:54:00:12:34:5g',
    '52-54-00-12-34-56%0aexit',
    '..%2f..%2fetc',
    '%00',
    '%F0%9F%92%A9',
    '5'.repeat(10_000),
  ]) {
    for (const [path, init] of [
      [`/pxe/${mac}`, {}],
      [`/pxe/${mac}/done`, { method: 'POST' }],
      [`/pxe/${mac}/provision/user-data`, {}],
      [`/machines/${mac}`, asJson({}, 'PUT')],
      [`/machines/${mac}`, { method: 'DELETE' }],
      [`/machines/${mac}/provision/user-data`, put('x')],
      [`/machines/${mac}/workflows`, {}],
    ] as const) {
      const { status } = await ask(path, init)
      assert.ok([400, 404, 414].includes(status), `${path.slice(0, 60)}: ${status}`)
    }
  }
  assert.is(await server.machines.count(), before)
})

test('an image of any name makes a script that is one, and no more', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  for (const name of [
    `${'ü'.repeat(125)}.img`,
    'a || shell.img',
    '${mac}.img',
    'a; reboot #.img',
    '"quoted" \'twice\'.img',
    '<img src=x onerror=alert(1)>.img',
  ]) {
    assert.is((await ask(`/images/${encodeURIComponent(name)}`, put('x'))).status, 200)
    const body = { image: name, boot_policy: 'flash', provisioning_mode: 'cloud-init' }
    assert.is((await ask(`/machines/${MAC}`, asJson(body, 'PUT'))).status, 200)
    const script = await readScript(server)
    assert.ok(Buffer.byteLength(script) < 4096, `${Buffer.byteLength(script)} bytes`)
    assert.is(script.match(/^kernel /gm)?.length, 1)
    assert.not.match(script, /\|\| shell|\$\{mac|; reboot|<img|"/)
    for (const page of ['/ui/images', '/ui/machines', `/ui/machines/${MAC}`, '/ui/events']) {
      assert.not.match(await (await ask(page)).text(), '<img src=x', page)
    }
  }
})

test('uploads of one name at the same time: one of them is there, whole', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const bodies = ['a', 'b', 'c', 'd', 'e', 'f'].map((letter) => letter.repeat(300_000))
  const answers = await Promise.all(bodies.map((body) => ask('/images/same.img', put(body))))
  assert.equal(new Set(answers.map(({ status }) => status)), new Set([200]))
  const kept = await (await ask('/images/same.img')).text()
  assert.ok(bodies.includes(kept))
  assert.equal(await readdir(server.images), ['same.img'])
})

test('machines written at the same time: no record is a mixture', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const names = Array.from({ length: 20 }, (_, at) => `host-${at}`)
  const write = (name: string) =>
    ask(`/machines/${MAC}`, asJson({ hostname: name, image: `${name}.img` }, 'PUT'))
  const answers = await Promise.all(names.map(write))
  assert.equal(new Set(answers.map(({ status }) => status)), new Set([200]))
  const { hostname, image } = await (await ask(`/machines/${MAC}`)).json()
  assert.is(image, `${hostname}.img`)
})

test('what is uploaded is never run on the server', async () => {
  await using fixture = await createWorkflowFixture()
  await using server = await createEarlierServer({ env: fixture.env })
  const ask = await server.operator()
  const script = `touch ${fixture.dir}/was-run`
  const bind = async (workflow: string) => {
    const body = { provisioning_mode: 'cijoe-online', hostname: '127.0.0.1' }
    await ask(`/machines/${MAC}`, asJson({ ...body, cijoe_workflow_ref: workflow }, 'PUT'))
  }
  await ask(`/machines/${MAC}`, asJson({}, 'PUT'))
  await ask(`/machines/${MAC}/provision/cijoe-workflow`, put(script))
  await ask('/images/workflow.yaml', put(script))
  await ask('/boot/workflow.yaml', put(script))
  const way = join(fixture.dir, 'way')
  await run`ln -s ${server.images} ${way}`
  for (const path of [
    join(server.dir, 'state/provision/52-54-00-12-34-56/cijoe-workflow'),
    join(server.images, 'workflow.yaml'),
    join(server.boot, 'workflow.yaml'),
    join(way, 'workflow.yaml'),
    join(server.boot, '../images/workflow.yaml'),
  ]) {
    await bind(path)
    await server.request(`/pxe/${MAC}/done`, { method: 'POST' })
    const failed = await eventually(async () => {
      const [last] = await (await ask(`/machines/${MAC}/workflows`)).json()
      return last?.workflow === path && last.error !== null ? last : null
    }, path)
    assert.match(failed.error, /upload folder/)
  }
  assert.not.ok((await readdir(fixture.dir)).includes('was-run'))
})

test('a folder that bears the name of an image is neither served nor replaced', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await mkdir(join(server.images, 'folder.img'))
  assert.is((await ask('/images/folder.img')).status, 404)
  assert.is((await ask('/images/folder.img', put('x'))).status, 409)
  assert.equal(await readdir(server.images), ['folder.img'])
})

test('whoever may not upload is refused before the body has come', async () => {
  await using server = await createEarlierServer()
  await using socket = await listen(server)
  for (const path of ['/images/a.img', '/boot/a', `/machines/${MAC}/provision/user-data`]) {
    const asked = request(`${socket.url}${path}`, { method: 'PUT' })
    asked.on('error', () => {}) // The server may hang up: it does not want the rest.
    asked.write('the first of very many bytes')
    const [answer] = await once(asked, 'response')
    assert.is(answer.statusCode, 401, path)
    asked.destroy()
  }
  assert.equal(await readdir(server.images), [])
})

const NAMES = [...Object.values(LIVE_TRIO), LIVE_SUMS]

/** The page after a fetch, and what is in the boot directory then. */
async function fetchOnce(site: Parameters<typeof startHosting>[0], tag: string, keys: string) {
  await using hosting = await startHosting(site)
  await using server = await createEarlierServer({
    env: {
      FLASHER_RELEASES_BASE_URL: hosting.origin,
      FLASHER_BOOT_RELEASE_REPO: REPOSITORY,
      ...(keys === '' ? {} : { FLASHER_RELEASES_PUBLIC_KEYS: keys }),
    },
  })
  const ask = await server.operator()
  const body = new URLSearchParams({ tag })
  const answer = await ask('/ui/boot/fetch-release', { method: 'POST', body })
  const page = await (await ask(answer.headers.get('location') ?? '')).text()
  const names = (await readdir(server.boot)).filter((name) => !name.startsWith('.'))
  const files = await Promise.all(names.map((name) => readFile(join(server.boot, name))))
  return { page, files: new Map(names.map((name, at) => [name, files[at]] as const)) }
}

for (const form of FORMS) {
  for (const tag of ['v1.2.3', 'latest']) {
    test(`signed, ${form}, ${tag}`, async () => {
      await using key = await makeSigningKey()
      await using release = await makeReleaseFolder({ line: 'earlier', key: key.path })
      for (const keys of ['', key.publicKey]) {
        const { page, files } = await fetchOnce({ releases: [release], form }, tag, keys)
        assert.match(page, 'was installed')
        assert.equal([...files.keys()].toSorted(), NAMES.toSorted())
        for (const name of NAMES) assert.equal(files.get(name), await release.read(name), name)
      }
    })
  }
}

test('where a key is configured, nothing else is fetched', async () => {
  await using key = await makeSigningKey()
  await using other = await makeSigningKey()
  await using signed = await makeReleaseFolder({ line: 'earlier', key: key.path })
  await using plain = await makeReleaseFolder({ line: 'earlier' })
  await using current = await makeReleaseFolder({ line: 'current', key: key.path })
  const { publicKey } = key
  const trouble = (name: string, kind: 'wrong' | 'missing') => ({
    releases: [signed],
    trouble: { name, kind },
  })
  const rows = [
    [{ releases: [plain] }, publicKey, /signature is required and missing/],
    [{ releases: [signed] }, other.publicKey, /by a key that is not configured/],
    [trouble('release.toml', 'wrong'), publicKey, /it is not what was signed/],
    [trouble('release.toml', 'missing'), publicKey, /has no signed manifest/],
    [trouble(LIVE_TRIO.initrd, 'wrong'), publicKey, /initrd has the digest [0-9a-f]{64}, but/],
    [{ releases: [{ path: signed.path, tag: 'v2' }] }, publicKey, /manifest of v1\.2\.3/, 'v2'],
    [{ releases: [current] }, publicKey, /does not list flasher-live-x86_64\.vmlinuz/],
  ] as const
  for (const [site, keys, reason, tag = 'v1.2.3'] of rows) {
    const { page, files } = await fetchOnce(site, tag, keys)
    assert.match(page, reason)
    assert.is(files.size, 0)
  }
})

const RELEASES = 'example/project'
const RELEASE_NAMES = Object.values(LIVE_TRIO)

interface SiteOptions {
  /** The path below which the files lie. */
  readonly folder: string
  /** Other bytes than the list says; null: the file is missing. */
  readonly changed?: Readonly<Record<string, Buffer | null>>
  readonly sums?: (text: string) => string
}

async function startSite({ folder, changed = {}, sums = (text) => text }: SiteOptions) {
  const files = new Map(
    RELEASE_NAMES.map((name, at) => [name, makeBytes(50_000 + at, at + 1)] as const),
  )
  const list = RELEASE_NAMES.map((name) => `${sha256(files.get(name) ?? '')}  ./${name}\n`).join('')
  const served = new Map<string, Buffer>([...files, [LIVE_SUMS, Buffer.from(sums(list))]])
  for (const [name, content] of Object.entries(changed)) {
    if (content === null) served.delete(name)
    else served.set(name, content)
  }
  const server = await startHostileServer((asked, response) => {
    const { url = '' } = asked
    const file = url.startsWith(folder) ? served.get(url.slice(folder.length)) : undefined
    if (file === undefined) response.writeHead(404).end()
    else sendFile(file, asked, response, {})
  })
  return { ...server, files, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

const serverOf = (base: string) =>
  createEarlierServer({
    env: { FLASHER_RELEASES_BASE_URL: base, FLASHER_BOOT_RELEASE_REPO: RELEASES },
  })

const post = (tag: string) => ({ method: 'POST', body: new URLSearchParams({ tag }) })

/** The page as it is once the fetch has ended. */
async function fetchRelease(server: Server, tag: string): Promise<string> {
  const ask = await server.operator()
  const answer = await ask('/ui/boot/fetch-release', post(tag))
  assert.is(answer.status, 303)
  return await (await ask(answer.headers.get('location') ?? '')).text()
}

const RELEASE_FORMS = [
  ['v1.2.3', `/${RELEASES}/releases/download/v1.2.3/`],
  ['v1.2.3', `/${RELEASES}/releases/v1.2.3/download/`],
  ['v1.2.3', '/releases/download/v1.2.3/'],
  ['v1.2.3', '/releases/v1.2.3/download/'],
  ['latest', `/${RELEASES}/releases/latest/download/`],
  ['latest', '/releases/latest/download/'],
  ['', '/releases/latest/download/'],
] as const

for (const [tag, folder] of RELEASE_FORMS) {
  test(`a release is fetched with tag "${tag}" from ${folder}`, async () => {
    await using site = await startSite({ folder })
    await using server = await serverOf(site.origin)
    assert.match(await fetchRelease(server, tag), 'was installed')
    for (const name of RELEASE_NAMES) {
      assert.equal(await readFile(join(server.boot, name)), site.files.get(name), name)
    }
    assert.equal((await readdir(server.boot)).toSorted(), [...RELEASE_NAMES, LIVE_SUMS].toSorted())
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
  const fields = await (await ask('/ui/boot')).text()
  assert.match(fields, /Enter the site and the repository where you got flasher/)
  assert.match(
    fields,
    /action="\/ui\/boot\/source"[^]*name="releases.base_url"[^]*name="boot.release_repo"/,
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
  for (const name of [...RELEASE_NAMES, LIVE_SUMS]) assert.match(text, name)
  assert.is(text.match(/>missing</g)?.length, 3)
  assert.is(text.match(/>present</g)?.length, 1)
})

test.run()
