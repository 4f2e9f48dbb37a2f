/** "cijoe-online" across the end of the server, and the address of a real contact. */
import { readFile } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { createSystemAccount, hashOf } from '#test/support/system/system-account.ts'
import { createWorkflowFixture, eventually } from '#test/support/system/workflow-fixture.ts'

const test = suite('workflows across restarts')
const MAC = '52:54:00:12:34:56'
const PASSWORD = 'a password for tests'
const FOREVER = 'echo $$ > pid; while :; do sleep 0.1; done\n'

async function openHome() {
  const stack = new AsyncDisposableStack()
  const fixture = stack.use(await createWorkflowFixture())
  const { prefix } = stack.use(await createSystemAccount({ shadow: hashOf(PASSWORD) }))
  const home = stack.use(await createServerHome({ prefix }))
  const env = { FLASHER_LINE: 'earlier', FLASHER_IMAGE_ROOT: home.at('images'), ...fixture.env }
  return {
    fixture,
    async start() {
      const port = String(await findPort())
      const server = await home.start([], { ...env, FLASHER_SERVER_PORT: port })
      const { cookie } = await login(server.url, PASSWORD)
      const headers = { cookie, 'content-type': 'application/json' }
      const ask = (path: string, init: RequestInit = {}) =>
        fetch(`${server.url}${path}`, { ...init, headers })
      return {
        server,
        ask,
        machine: async () => await (await ask(`/machines/${MAC}`)).json(),
        runs: async () => await (await ask(`/machines/${MAC}/workflows`)).json(),
        [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
      }
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

type Site = Awaited<ReturnType<Awaited<ReturnType<typeof openHome>>['start']>>

/** Its address is that of its contact after `done`, which sends it to its own disk. */
async function flash({ ask, runs }: Site, workflow: string): Promise<void> {
  const body = { provisioning_mode: 'cijoe-online', cijoe_workflow_ref: workflow }
  await ask(`/machines/${MAC}`, { method: 'PUT', body: JSON.stringify(body) })
  await ask(`/pxe/${MAC}`)
  await ask(`/pxe/${MAC}/done`, { method: 'POST' })
  const readLog = async () => {
    const [run] = await runs()
    if (run === undefined) return ''
    return await (await ask(`/machines/${MAC}/workflows/${run.run}/log`)).text()
  }
  // The contact before `done` was the live system's.
  await eventually(
    async () => ((await readLog()).includes('no address of the machine') ? true : null),
    'that it waits for a contact',
  )
  await ask(`/pxe/${MAC}`)
}

/** The process that the workflow noted. */
const awaitPid = ({ machine }: Site) =>
  eventually(async () => {
    const path = (await machine()).last_workflow_output_path
    const text = await readFile(`${path}pid`, 'utf8').catch(() => '')
    return text.endsWith('\n') ? text.trim() : null
  }, 'the workflow')

/** A zombie runs no more: nobody has waited for it yet. */
const awaitEnd = (pid: string) =>
  eventually(async () => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => 'State:\tZ')
    return /^State:\s+[ZX]/m.test(status) ? true : null
  }, 'the end of the workflow')

for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
  test(`${signal} in the middle of a run: it has failed with the reason, and nothing goes on`, async () => {
    await using home = await openHome()
    const site = await home.start()
    await flash(site, await home.fixture.workflow(FOREVER))
    const pid = await awaitPid(site)
    assert.is((await site.runs())[0].host, '127.0.0.1')
    site.server.child.kill(signal)
    await site.server.ended
    await awaitEnd(pid)
    await using again = await home.start()
    const { last_workflow_status: status, last_workflow_run_at: at } = await again.machine()
    assert.is(status, 'failed')
    assert.ok(at)
    const [run] = await again.runs()
    assert.match(run.error, signal === 'SIGKILL' ? /restart/ : /the server stops/)
    const events = await (await again.ask('/events?kind=machine.workflow.failed')).text()
    assert.match(events, /restart|the server stops/)
  })
}

test.run()
