/** "cijoe-online" with the whole server: begun by `done`, run with the real command line, seen on pages and in events. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parse } from 'smol-toml'
import { readEvents } from '#test/support/server/event-reader.ts'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'
import { asJson } from '#test/support/server/server.ts'
import { createWorkflowFixture, eventually, listen } from '#test/support/system/workflow-fixture.ts'

const test = suite('the earlier line: cijoe-online')
const MAC = '52:54:00:12:34:56'
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
  const { server, port } = await listen((socket) => socket.end(greeting))
  try {
    await using site = await openSite({ FLASHER_WORKFLOW_SSH_PORT: String(port) })
    await site.flash(await site.fixture.workflow('exit 0'))
    await eventually(
      async () => ((await site.log()).includes('what answers is not SSH') ? true : null),
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
  assert.match((await site.runs())[0].error, 'took longer than it may')
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
