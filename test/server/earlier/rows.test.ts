/** Rows of the earlier specification over the wire: fields, values, statuses, what each trigger changes. */
import { readdir, readFile, stat, utimes } from 'node:fs/promises'
import { request as sendRaw } from 'node:http'
import { join } from 'node:path'
import { parse } from 'smol-toml'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { OUTSIDE } from '#test/support/people/canaries.ts'
import { createCurrentServer } from '#test/support/people/current-server.ts'
import { EXPECTED } from '#test/support/people/expected-routes.ts'
import { askEverything, openPeople, openPrograms } from '#test/support/people/rights-matrix.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { readEvents } from '#test/support/server/event-reader.ts'
import { asJson, listen } from '#test/support/server/server.ts'
import {
  createWorkflowFixture,
  eventually,
  listen as listenFor,
} from '#test/support/system/workflow-fixture.ts'

const test = suite('the earlier line: rows over the wire')
const MAC = '52:54:00:12:34:56'
const PATH = `/machines/${MAC}`
const post: RequestInit = { method: 'POST' }

/** "Machine", in the order of the table, as the first contact makes it at `time`. */
const found = (time: string) => ({
  mac: MAC,
  image: null,
  provisioning_mode: 'none',
  hostname: null,
  cijoe_workflow_ref: null,
  last_known_good: null,
  discovered_at: time,
  last_seen_at: time,
  last_seen_ip: '127.0.0.1',
  boot_policy: 'tui',
  last_flashed_at: null,
  last_workflow_run_at: null,
  last_workflow_status: null,
  last_workflow_output_path: null,
  created_at: time,
  updated_at: time,
})
/** "MachineUpsert", every field. */
const UPSERT = {
  image: 'debian.img.zst',
  provisioning_mode: 'cloud-init',
  hostname: 'box-1',
  cijoe_workflow_ref: '/srv/smoke.yaml',
  boot_policy: 'flash',
} as const

/** A server whose clock stands still until the test moves it by a minute. */
async function createTimed() {
  const clock = { at: Date.parse('2026-11-22T12:00:00.000Z') }
  const server = await createEarlierServer({ now: () => new Date(clock.at) })
  const ask = await server.operator()
  return {
    server,
    ask,
    time: () => new Date(clock.at).toISOString(),
    pass: () => void (clock.at += 60_000),
    read: async () => await (await ask(PATH)).json(),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** Asks for the script from an address of this host. */
const contact = (url: string, localAddress: string) =>
  new Promise<void>((resolve, reject) => {
    sendRaw(`${url}/pxe/${MAC}`, { localAddress }, (answer) => {
      answer.resume().once('end', () => resolve())
    })
      .once('error', reject)
      .end()
  })

test('a record from its first contact to its end: what each trigger sets, and nothing else', async () => {
  await using timed = await createTimed()
  const { server, ask, time, pass, read } = timed
  await using open = await listen(server)
  await contact(open.url, '127.0.0.1')
  const first = found(time())
  assert.is(JSON.stringify(await read()), JSON.stringify(first))

  pass()
  await contact(open.url, '127.0.0.2')
  const seen = { ...first, last_seen_at: time(), last_seen_ip: '127.0.0.2' }
  assert.equal(await read(), seen)

  pass()
  const put = await ask(PATH, asJson(UPSERT, 'PUT'))
  const bound = { ...seen, ...UPSERT, updated_at: time() }
  assert.equal([put.status, await put.json()], [200, bound])
  assert.equal(await read(), bound)

  pass()
  assert.is((await fetch(`${open.url}/pxe/${MAC}/done`, post)).status, 204)
  const heard = { last_seen_at: time(), last_seen_ip: '127.0.0.1', last_flashed_at: time() }
  const flashed = { ...bound, ...heard, updated_at: time() }
  assert.equal(await read(), flashed)

  pass()
  // Left out: null, none and local again; what happened to the machine stays.
  const { image, hostname, cijoe_workflow_ref, provisioning_mode } = first
  const nulls = { image, hostname, cijoe_workflow_ref, provisioning_mode, boot_policy: 'local' }
  const bare = await ask(PATH, asJson({}, 'PUT'))
  assert.equal(await bare.json(), { ...flashed, ...nulls, updated_at: time() })

  assert.is((await ask(PATH, { method: 'DELETE' })).status, 204)
  for (const method of ['GET', 'DELETE']) assert.is((await ask(PATH, { method })).status, 404)
})

test('a record made by PUT alone was never discovered, seen or flashed', async () => {
  await using timed = await createTimed()
  const { ask, time } = timed
  const made = await ask(PATH, asJson({}, 'PUT'))
  const never = { discovered_at: null, last_seen_at: null, last_seen_ip: null }
  const expected = { ...found(time()), ...never, boot_policy: 'local' }
  assert.equal([made.status, await made.json()], [200, expected])
  assert.equal(await (await ask('/machines')).json(), [expected])
})

test('each mode and policy of the tables is taken, any other is 422', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  const rows = {
    provisioning_mode: ['none', 'cloud-init', 'cijoe', 'cijoe-online'],
    boot_policy: ['local', 'flash', 'tui'],
  }
  for (const [field, values] of Object.entries(rows)) {
    for (const value of values) {
      const answer = await ask(PATH, asJson({ [field]: value }, 'PUT'))
      assert.equal([answer.status, (await answer.json())[field]], [200, value])
    }
    const other = await ask(PATH, asJson({ [field]: 'other' }, 'PUT'))
    assert.is(other.status, 422, field)
  }
})

const SCRIPTS = [
  [{ boot_policy: 'local' }, 'disk'],
  [{ boot_policy: 'local', image: 'a.img' }, 'disk'],
  [{ boot_policy: 'flash' }, 'disk'],
  [{ boot_policy: 'flash', image: 'a.img' }, 'flash'],
  [{ boot_policy: 'tui' }, 'tui'],
  [{}, 'disk'],
] as const

test('GET /pxe/{mac} as the policy says, by HTTP from the address that was asked', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  for (const [body, boots] of SCRIPTS) {
    await ask(PATH, asJson(body, 'PUT'))
    const answer = await server.request(`/pxe/${MAC}`)
    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/)
    const script = await answer.text()
    const words = /^kernel (.*) \|\| /m.exec(script)?.[1]?.split(' ') ?? []
    const said = JSON.stringify(body)
    if (boots === 'disk') {
      assert.equal([words, /^sanboot .*--drive 0x80/m.test(script)], [[], true], said)
      continue
    }
    const base = 'http://flasher.test:8080'
    assert.ok(words[0]?.startsWith(`${base}/boot/flasher-live-x86_64.vmlinuz`), said)
    const expected = [`flasher.server=${base}`, `flasher.mac=${MAC}`]
    if (boots === 'flash') {
      expected.push(`flasher.image_url=${base}/images/a.img`, 'flasher.provisioning=none')
    }
    for (const word of expected) assert.ok(words.includes(word), `${said}: ${word}`)
    assert.is(words.includes('flasher.mode=interactive'), boots === 'tui', said)
  }
})

test('GET /images: each recognised format, by its name', async () => {
  await using server = await createEarlierServer()
  for (const name of ['a.img', 'b.img.zst', 'c.qcow2']) await server.putImage(name, name)
  const listed = await (await server.request('/images')).json()
  const entry = (name: string, format: string) => ({
    name,
    path: join(server.images, name),
    format,
    size_bytes: name.length,
  })
  assert.equal(listed, [
    entry('a.img', 'img'),
    entry('b.img.zst', 'img.zst'),
    entry('c.qcow2', 'qcow2'),
  ])
})

const form = (fields: Readonly<Record<string, string>>) => ({
  method: 'POST',
  body: new URLSearchParams(fields),
})

test('/events/machines: the rows of the table on connect, and after each form post', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  const events = readEvents(await ask('/events/machines'))
  const first = await events.next()
  assert.is(first?.name, 'machines-update')
  assert.match(first?.data ?? '', /<tr id="row-52-54-00-12-34-56"/)
  await ask(`/ui/machines/${MAC}`, form({ hostname: 'renamed', boot_policy: 'local' }))
  assert.ok(await events.until(({ data }) => data.includes('renamed')))
  await ask(`/ui/machines/${MAC}/delete`, form({}))
  assert.ok(await events.until(({ data }) => !data.includes('row-52-54')))
  await events.close()
})

test('/ui/boot: of each file whether it is there, its size and its time; a form with latest', async () => {
  await using server = await createEarlierServer({
    env: { FLASHER_RELEASES_BASE_URL: 'http://site.test', FLASHER_BOOT_RELEASE_REPO: 'a/b' },
  })
  const name = 'flasher-live-x86_64.initrd'
  await server.putBootFile(name, 'x'.repeat(1234))
  const time = new Date('2026-11-20T08:00:00.000Z')
  await utimes(join(server.boot, name), time, time)
  const page = await (await (await server.operator())('/ui/boot')).text()
  const row = new RegExp(`<code>${name}</code>.*?</tr>`, 's').exec(page)?.[0] ?? ''
  assert.match(row, '>present<')
  assert.match(row, '1234')
  assert.match(row, '2026-11-20T08:00:00')
  assert.match(page, /action="\/ui\/boot\/fetch-release"[^]*name="tag"[^>]*value="latest"/)
})

test('/ui/machines/{mac}: what is known, and a form with each field of MachineUpsert', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await ask(PATH, asJson(UPSERT, 'PUT'))
  const page = await (await ask(`/ui/machines/${MAC}`)).text()
  for (const name of Object.keys(UPSERT)) assert.match(page, `name="${name}"`)
  for (const shown of [MAC, 'debian.img.zst', 'box-1', '/srv/smoke.yaml']) {
    assert.match(page, shown)
  }
})

test('/ui/images: the catalog, by name, format and size', async () => {
  await using server = await createEarlierServer()
  await server.putImage('b.img.zst', 'x'.repeat(1234))
  const page = await (await (await server.operator())('/ui/images')).text()
  assert.match(page, 'b.img.zst')
  assert.match(page, '<data value="1234"')
})

test('/ui/settings: Authentication is words alone, beside PXE proxy-DHCP', async () => {
  await using server = await createEarlierServer()
  const page = await (await (await server.operator())('/ui/settings')).text()
  assert.match(page, 'passwd flasher')
  assert.not.match(page, 'type="password"')
  assert.match(page, 'id="authentication"')
  assert.match(page, 'id="pxe"')
})

test('the posts of pages change nothing without a session', async () => {
  await using server = await createEarlierServer()
  const ask = await server.operator()
  await ask(PATH, asJson(UPSERT, 'PUT'))
  const before = await (await ask(PATH)).text()
  for (const path of [
    `machines/${MAC}`,
    `machines/${MAC}/delete`,
    'boot/fetch-release',
    'settings/pxe-activate',
  ]) {
    const answer = await server.request(`/ui/${path}`, post)
    assert.is(answer.status, 303, path)
    assert.match(answer.headers.get('location') ?? '', /^\/ui\/login/, path)
  }
  assert.is(await (await ask(PATH)).text(), before)
  const upload: RequestInit = { method: 'PUT', body: 'x' }
  for (const path of ['/boot/a', '/images/a.img']) {
    assert.is((await server.request(path, upload)).status, 401, path)
  }
})

/** Both servers sign with it: what tells them apart is whom they know. */
const env = { FLASHER_SERVER_SESSION_SECRET: 'a-key-that-both-of-these-servers-have' }

const putBody = (body: string) => ({ method: 'PUT', body })

async function openScene() {
  await using undo = new AsyncDisposableStack()
  const other = undo.use(await createCurrentServer(env))
  const server = undo.use(await createEarlierServer({ env }))
  const { state, request, routes, images, boot, dir } = server
  const operator = await server.operator()
  const fields = { hostname: 'canary-host', image: 'canary.img', provisioning_mode: 'cloud-init' }
  for (const [path, init] of [
    [`/machines/${OUTSIDE}`, asJson(fields, 'PUT')],
    [`/machines/${OUTSIDE}/provision/user-data`, putBody('#cloud-config\ncanary: canary-data')],
    ['/images/canary', putBody('canary-image')],
    ['/boot/canary', putBody('canary-boot')],
  ] as const) {
    assert.ok((await operator(path, init)).ok, path)
  }
  const provision = join(dir, 'state/provision')
  const snapshot = async () => [
    server.machines.peekAll().map((machine) => ({ ...machine, last_seen_at: null })),
    (await state.tokens.list()).map((token) => ({ ...token, last_used_at: null })),
    state.runs.list({ limit: 100 }),
    ...(await Promise.all([images, boot, provision].map(readAll))),
  ]
  const strangers = (await openPeople(other, request))
    .filter(({ scopes }) => scopes?.includes('admin'))
    .map((one) => ({ ...one, scopes: null }))
  const held = undo.move()
  return {
    routes,
    askers: [...(await openPrograms(state.tokens, request)), ...strangers],
    expected: EXPECTED.server,
    outside: { macs: [OUTSIDE], ids: [['', ['1']]] },
    snapshot,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  } as const
}

async function readAll(folder: string) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const files = entries
    .filter((each) => each.isFile())
    .map((each) => join(each.parentPath, each.name))
  return await Promise.all(files.map(async (path) => [path, await readFile(path, 'utf8')]))
}

test('a program does what its scope says, and people of a server with the same key are nobody', async () => {
  await using scene = await openScene()
  const { wrong, asked } = await askEverything(scene, null)
  assert.equal(wrong, [])
  assert.ok(asked > 500, `${asked}`)
})

const OTHER = '52:54:00:12:34:57'

type Fixture = Awaited<ReturnType<typeof createWorkflowFixture>>

async function openSite(more: Readonly<Record<string, string>> = {}) {
  const stack = new AsyncDisposableStack()
  const fixture: Fixture = stack.use(await createWorkflowFixture())
  const server = stack.use(await createEarlierServer({ env: { ...fixture.env, ...more } }))
  const ask = await server.operator()
  const readMachine = async (mac = MAC) => await (await ask(`/machines/${mac}`)).json()
  return {
    fixture,
    server,
    ask,
    readMachine,
    /** As a machine that was flashed: its record, and its `done`. */
    async flash(workflow: string | null, { mac = MAC, hostname = '127.0.0.1' } = {}) {
      const body = { image: 'a.img', provisioning_mode: 'cijoe-online', hostname }
      await ask(`/machines/${mac}`, asJson({ ...body, cijoe_workflow_ref: workflow }, 'PUT'))
      await this.done(mac)
    },
    async done(mac = MAC) {
      const done = await server.request(`/pxe/${mac}/done`, { method: 'POST' })
      assert.is(done.status, 204)
    },
    awaitStatus: (status: string, mac = MAC) =>
      eventually(async () => {
        const machine = await readMachine(mac)
        return machine.last_workflow_status === status ? machine : null
      }, status),
    runs: async (mac = MAC) => await (await ask(`/machines/${mac}/workflows`)).json(),
    async log(mac = MAC): Promise<string> {
      const [{ run }] = await this.runs(mac)
      return await (await ask(`/machines/${mac}/workflows/${run}/log`)).text()
    },
    kinds: async () =>
      (await server.journal.list({ limit: 100 }))
        .map(({ kind }) => kind)
        .filter((kind) => kind.startsWith('machine.workflow.'))
        .toReversed(),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('a workflow that is a folder or a device is refused when it is set', async () => {
  await using site = await openSite()
  const put = async (workflow: string) =>
    await site.ask(`/machines/${MAC}`, asJson({ cijoe_workflow_ref: workflow }, 'PUT'))
  for (const [path, reason] of [
    ['/srv', /it is a folder, not a file/],
    ['/dev/null', /it is a device or pipe, not a file/],
  ] as const) {
    const answer = await put(path)
    assert.is(answer.status, 422, path)
    assert.match(await answer.text(), reason)
  }
  assert.is((await put('/srv/not/there/yet.yaml')).status, 200)
})

test('done starts it; its end is in the record, the events, the output folder and on the page', async () => {
  await using site = await openSite({
    FLASHER_SERVER_SESSION_SECRET: 'a secret of forty characters, or more',
  })
  await site.flash(await site.fixture.workflow('echo "<b>it works</b>"\nexit 0\n'))
  const machine = await site.awaitStatus('success')
  const { last_workflow_output_path: path, last_known_good: good } = machine
  assert.ok(path.startsWith(`${site.server.dir}/state/workflows/${MAC}/`) && path.endsWith('/'))
  assert.ok(machine.last_workflow_run_at)
  assert.equal([good.image, good.provisioning_mode], ['a.img', 'cijoe-online'])
  const read = (name: string) => readFile(join(path, name), 'utf8')
  assert.equal((await read('argv')).trim().split('\n'), [
    '--monitor',
    '-c',
    `${path}transport.toml`,
    `${site.fixture.dir}/smoke.yaml`,
  ])
  const { cijoe } = JSON.parse(JSON.stringify(parse(await read('transport.toml'))))
  const key = `${site.server.dir}/state/keys/id_ed25519`
  assert.equal(cijoe, {
    workflow: { fail_fast: true },
    transport: {
      ssh: {
        hostname: '127.0.0.1',
        username: 'root',
        port: site.fixture.sshPort,
        key_filename: key,
      },
    },
  })
  assert.not.match(await read('environment'), 'a secret of')
  assert.is((await stat(key)).mode & 0o777, 0o600)
  assert.is((await stat(join(site.server.dir, 'state/keys'))).mode & 0o077, 0)
  assert.match(await site.log(), 'it works')
  const page = await (await site.ask(`/ui/machines/${MAC}`)).text()
  const link = /href="(\/ui\/machines\/[^"]+\/workflows\/[^"]+)"/.exec(page)?.[1] ?? ''
  const shown = await (await site.ask(link)).text()
  assert.match(shown, '&lt;b&gt;it works')
  assert.not.match(shown, '<b>it')
  assert.equal(await site.kinds(), ['machine.workflow.started', 'machine.workflow.succeeded'])
  const settings = await (await site.ask('/ui/settings')).text()
  assert.match(settings, (await readFile(`${key}.pub`, 'utf8')).split(' ', 2).join(' '))
})

test('the live channel shows each status', async () => {
  await using site = await openSite()
  const gate = join(site.fixture.dir, 'gate')
  const workflow = await site.fixture.workflow(`while [ ! -e ${gate} ]; do sleep 0.05; done`)
  const events = readEvents(await site.ask('/events/machines'))
  const awaitRow = (status: string) =>
    events.until(({ name, data }) => name === 'machines-update' && data.includes(`>${status}<`))
  await site.flash(workflow)
  assert.ok(await awaitRow('running'))
  await site.fixture.workflow('', 'gate')
  assert.ok(await awaitRow('success'))
  await events.close()
})

test('what a workflow ends with decides: another code is a failure, with the reason', async () => {
  await using site = await openSite()
  await site.flash(await site.fixture.workflow('echo no >&2\nexit 3\n'))
  const machine = await site.awaitStatus('failed')
  assert.is(machine.last_known_good, null)
  assert.match(await site.log(), /^no$/m)
  const [run] = await site.runs()
  assert.equal([run.status, run.error], ['failed', 'the workflow ended with code 3'])
  assert.equal(await site.kinds(), ['machine.workflow.started', 'machine.workflow.failed'])
})

test('a program, a workflow or an address that is missing is a failure that says so', async () => {
  await using site = await openSite({ FLASHER_WORKFLOW_TIME_LIMIT: '1s' })
  const CASES = [
    ['/nonexistent/smoke.yaml', '127.0.0.1', /the workflow cannot be read/],
    ['smoke.yaml', '127.0.0.1', /not an absolute path/],
    [await site.fixture.workflow(''), '', /no address of the machine is known yet/],
  ] as const
  for (const [workflow, hostname, reason] of CASES) {
    await site.flash(workflow, { hostname })
    await site.awaitStatus('failed')
    assert.match((await site.runs())[0].error, reason)
  }
  await using bare = await openSite({ FLASHER_WORKFLOW_PROGRAM: '/nonexistent/cijoe' })
  await bare.flash(await bare.fixture.workflow(''))
  await bare.awaitStatus('failed')
  assert.match((await bare.runs())[0].error, /\/nonexistent\/cijoe is not installed/)
})

test('an open port is not enough: it waits for the greeting of SSH', async () => {
  let greeting = 'HTTP/1.1 400 Bad Request\r\n'
  const { server, port } = await listenFor((socket) => socket.end(greeting))
  try {
    await using site = await openSite({ FLASHER_WORKFLOW_SSH_PORT: String(port) })
    await site.flash(await site.fixture.workflow('exit 0'))
    await eventually(
      async () => ((await site.log()).includes('the service there is not SSH') ? true : null),
      'the first attempt',
    )
    assert.is((await site.readMachine()).last_workflow_status, 'running')
    greeting = 'SSH-2.0-now\r\n'
    await site.awaitStatus('success')
  } finally {
    server.close()
  }
})

test('at the time limit the workflow is ended, and has failed', async () => {
  await using site = await openSite({ FLASHER_WORKFLOW_TIME_LIMIT: '1s' })
  await site.flash(await site.fixture.workflow('while :; do sleep 0.1; done'))
  await site.awaitStatus('failed')
  assert.match((await site.runs())[0].error, 'exceeded its time limit')
})

test('what is ended is ended whole, also children that ignore SIGTERM', async () => {
  await using site = await openSite()
  const script = `trap 'echo asked to end' TERM
sh -c 'trap "" TERM; echo $$ > child; while :; do sleep 0.1; done' &
while :; do sleep 0.1; done
`
  await site.flash(await site.fixture.workflow(script))
  const [{ run }] = await site.runs()
  const folder = join(site.server.dir, 'state/workflows', MAC, run)
  const child = await eventually(async () => {
    const text = await readFile(join(folder, 'child'), 'utf8').catch(() => '')
    return text.endsWith('\n') ? text.trim() : null
  }, 'the child')
  await site.flash(await site.fixture.workflow('exit 0', 'short.yaml'))
  await eventually(
    async () => ((await site.runs()).at(-1).status === 'cancelled' ? true : null),
    'its end',
  )
  assert.match(await readFile(join(folder, 'workflow.log'), 'utf8'), 'asked to end')
  // Nobody may have waited for it yet: then it is there as a zombie, which runs no more.
  const status = await readFile(`/proc/${child}/status`, 'utf8').catch(() => 'State:\tZ')
  assert.match(status, /^State:\s+[ZX]/m)
})

test('several machines at once, as many as the setting says', async () => {
  await using site = await openSite({ FLASHER_WORKFLOW_PARALLEL: '2' })
  const gate = join(site.fixture.dir, 'gate')
  const script = `touch ${site.fixture.dir}/at-$$; while [ ! -e ${gate} ]; do sleep 0.05; done`
  const workflow = await site.fixture.workflow(script)
  const macs = [MAC, OTHER, '52:54:00:12:34:58']
  for (const mac of macs) await site.flash(workflow, { mac })
  const running = async () =>
    (await readdir(site.fixture.dir)).filter((name) => name.startsWith('at-')).length
  await eventually(async () => ((await running()) === 2 ? true : null), 'two that run')
  const third = await eventually(async () => {
    const logs = await Promise.all(macs.map((mac) => site.log(mac)))
    return logs.every((log) => log.includes('SSH answers')) ? logs : null
  }, 'all machines answer')
  assert.is(third.length, 3)
  assert.is(await running(), 2)
  await site.fixture.workflow('', 'gate')
  for (const mac of macs) await site.awaitStatus('success', mac)
})

test('a machine that is flashed again has one run, the newest; a deleted one has none', async () => {
  await using site = await openSite()
  const { dir } = site.fixture
  const workflow = await site.fixture.workflow(`touch ${dir}/begun; while :; do sleep 0.1; done`)
  await site.flash(workflow)
  // It has read its file, which is another one from here on.
  const hasBegun = async () => ((await readdir(dir)).includes('begun') ? true : null)
  await eventually(hasBegun, 'the first')
  await site.fixture.workflow('exit 0')
  await site.done()
  const machine = await site.awaitStatus('success')
  const runs = await site.runs()
  assert.equal(
    runs.map(({ status }: { status: string }) => status),
    ['completed', 'cancelled'],
  )
  assert.match(runs[1].error, 'flashed again')
  assert.ok(machine.last_workflow_output_path.includes(runs[0].run))
  await site.ask(`/machines/${MAC}`, { method: 'DELETE' })
  const folder = join(site.server.dir, 'state/workflows')
  await eventually(async () => ((await readdir(folder)).includes(MAC) ? null : true), 'its removal')
})

test('the log of a run is bounded on the page, and nobody reads another file', async () => {
  await using site = await openSite()
  const script =
    'i=0; while [ $i -lt 9000 ]; do echo "line $i of a very long log"; i=$((i+1)); done'
  await site.flash(await site.fixture.workflow(script))
  await site.awaitStatus('success')
  const [{ run }] = await site.runs()
  const page = await (await site.ask(`/ui/machines/${MAC}/workflows/${run}`)).text()
  assert.ok(page.length < 300_000)
  assert.match(page, 'line 8999 of')
  assert.not.match(page, 'line 5 of')
  for (const name of ['..', '%2e%2e', '..%2f..%2fkeys', 'x', `${run}x`]) {
    const { status } = await site.ask(`/machines/${MAC}/workflows/${name}/log`)
    assert.ok(status === 404 || status === 400, `${name}: ${status}`)
  }
  assert.is((await site.server.request(`/machines/${MAC}/workflows/${run}/log`)).status, 401)
})

test.run()
