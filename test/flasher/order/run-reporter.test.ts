import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { FlashEvent, WriteProgress } from '#engine/flash/rules/flash.ts'
import { createServerClient } from '#flasher/link/server-client.ts'
import { chooseOrdered } from '#flasher/order/rules/flash-choice.ts'
import { parseKernelOrder } from '#flasher/order/rules/kernel-order.ts'
import { createFlashRun } from '#flasher/order/remote-hooks.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { MAC } from '#test/support/terminal/remote-fixture.ts'

const test = suite('reported runs')
const { signal } = new AbortController()

interface Sent {
  readonly path: string
  readonly body: string
}

/** A server that records what machines send; `status` is its answer to a path. */
async function openRecorder(status: (path: string, count: number) => number = () => 204) {
  const sent: Sent[] = []
  const server = await startHostileServer((request, response, count) => {
    let body = ''
    request.on('data', (chunk) => {
      body += String(chunk)
    })
    request.on('end', () => {
      const path = (request.url ?? '').replace(`/pxe/${MAC}`, '')
      sent.push({ path, body })
      response.writeHead(status(path, count)).end()
    })
  })
  const link = { base: server.origin, mac: MAC, token: null, signal, retryMs: 5 }
  const close = () => server[Symbol.asyncDispose]()
  return { sent, client: createServerClient(link), [Symbol.asyncDispose]: close }
}

const URL = 'http://10.0.0.1:8080/images/debian%20%231.img'

/** The choice that the kernel's arguments order for a disk. */
function choiceOf(disk: string) {
  const line = `flasher.server=http://10.0.0.1:8080 flasher.mac=${MAC} flasher.image_url=${URL}`
  const order = parseKernelOrder(line)
  if (order?.ordered.ok !== true || order.ordered.value.mode !== 'flash') throw new Error(line)
  return chooseOrdered(order.ordered.value, { path: disk })
}

const FACTS = { mode: 'flash', choice: choiceOf('/dev/sda'), plan: null, disk: null } as const

const writing = (phase: WriteProgress['phase'], bytes: number): FlashEvent => ({
  event: 'writing',
  phase,
  bytes_read: bytes,
  bytes_written: bytes,
  total_bytes: 1000,
  rate: 10,
  eta_seconds: 1,
})

const EVENTS: readonly FlashEvent[] = [
  { event: 'started', total_bytes: 1000 },
  writing('write', 600),
  writing('verify', 1000),
  { event: 'synced' },
  { event: 'partprobed' },
]
const DONE = { kind: 'done', bytesWritten: 1000, verified: true } as const

const OF_THE_RUN = {
  mode: 'flash',
  image: {
    name: 'debian #1.img',
    src: URL,
    ref: null,
    sha256: null,
    format: null,
    size_bytes: null,
  },
  disk: { path: '/dev/sda', model: null, tran: null, serial: null, size_bytes: null },
}

test('the reports of a flash are what deployed servers take, the end with all that is known', async () => {
  await using server = await openRecorder()
  const steps: string[] = []
  const run = createFlashRun(FACTS, {
    client: server.client,
    signal,
    now: () => performance.now(),
    onStep: ({ text, isShare }) => void steps.push(isShare ? text : `(${text})`),
  })
  EVENTS.forEach(run.follow)
  run.end(DONE)
  assert.is(await run.sendDone(() => undefined, true), null)
  const posts = server.sent.filter(({ path }) => path === '/progress')
  const [first, last] = [posts[0]?.body ?? '', posts.at(-1)?.body ?? '']
  const counts = { bytes_read: 0, bytes_written: 0, total_bytes: null, rate: null }
  const begun = { run: run.id, phase: 'started', ...counts, eta_seconds: null, ...OF_THE_RUN }
  assert.equal(JSON.parse(first), begun)
  assert.equal(JSON.parse(last), {
    ...begun,
    phase: 'done',
    bytes_read: 1000,
    bytes_written: 1000,
    total_bytes: 1000,
    verified: true,
  })
  assert.equal(server.sent.at(-1), { path: `/done?run=${run.id}`, body: '' })
  assert.equal(steps, ['write 50%', 'verify 100%', '(sync)', '(done)'])
})

test('a server of the earlier line gets no run with the end, or its status where it has no such route', async () => {
  await using server = await openRecorder((path) => (path === '/done' ? 404 : 204))
  const options = { client: server.client, signal, now: () => performance.now() }
  const run = createFlashRun(FACTS, options)
  EVENTS.forEach(run.follow)
  run.end(DONE)
  assert.is(await run.sendDone(() => undefined, false), null)
  assert.equal(server.sent.slice(-2), [
    { path: '/done', body: '' },
    { path: '/status', body: '{"status":"done"}' },
  ])
})

test('a flash that its checks refuse is one report: why, and of which disk', async () => {
  await using server = await openRecorder()
  const options = { client: server.client, signal, now: () => performance.now() }
  const run = createFlashRun({ ...FACTS, choice: choiceOf('S5GX') }, options)
  run.end({ kind: 'failed', reason: 'it is mounted' })
  assert.is(await run.flush(5000), null)
  assert.is(server.sent.length, 1)
  const { phase, reason, disk, bytes_written } = JSON.parse(server.sent[0]?.body ?? '')
  assert.equal(
    [phase, reason, disk, bytes_written],
    ['failed', 'it is mounted', { path: '', serial: 'S5GX' }, 0],
  )
})

test('a server that is silent, then busy, is asked again, and a person sees it', async () => {
  await using server = await openRecorder((_path, count) => (count < 4 ? 503 : 204))
  const times = { report: 20_000, silence: 5, retry: 20 }
  const run = createFlashRun(FACTS, {
    client: server.client,
    signal,
    now: () => performance.now(),
    times,
  })
  run.end(DONE)
  const said: string[] = []
  assert.is(await run.sendDone((line) => said.push(line), true), null)
  assert.ok(said.some((line) => /trying again, for .+ more/.test(line)))
})

test.run()
