import { connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { z } from 'zod'
import type { ProgressPost, RunPhase } from '#engine/inventory/rules/run.ts'
import { createReporter } from '#flasher/order/remote-hooks.ts'
import { createServerClient } from '#flasher/link/server-client.ts'
import { createRandom } from '#test/support/collect.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { createServerHome, login, passwordIn } from '#test/support/server/flasher-web.ts'
import { mac } from '#test/support/terminal/remote-fixture.ts'

const test = suite('reporter')
const signal = new AbortController().signal
const now = () => performance.now()

const post = (run: string, phase: RunPhase, bytes_written = 0): ProgressPost => ({
  run,
  phase,
  bytes_read: bytes_written,
  bytes_written,
  total_bytes: 1000,
  rate: 1,
  eta_seconds: 1,
})

const reporterTo = (
  base: string,
  address = '52:54:00:00:00:01',
  retryMs = 5,
  clock: () => number = now,
) =>
  createReporter({
    client: createServerClient({ base, mac: mac(address), token: null, signal, retryMs }),
    signal,
    now: clock,
    retryMs,
  })

/** A server that records its posts, in order. */
async function startListener(answer: (count: number) => number) {
  const told: ProgressPost[] = []
  const server = await startHostileServer((request, response, count) => {
    let text = ''
    request.on('data', (chunk) => {
      text += String(chunk)
    })
    request.on('end', () => {
      const status = answer(count)
      if (status === 204) told.push(JSON.parse(text))
      response.writeHead(status).end()
    })
  })
  return { ...server, told }
}

test('each phase and the end arrive, whatever the server does at first', async () => {
  await using server = await startListener((count) => (count < 5 ? 503 : 204))
  const reporter = reporterTo(server.origin)
  const phases: readonly RunPhase[] = ['started', 'write', 'verify', 'sync', 'done']
  for (const [at, phase] of phases.entries()) reporter.post(post('run-number-1', phase, at))
  assert.is(await reporter.flush(60_000), null)
  assert.equal(
    server.told.map(({ phase }) => phase),
    phases,
  )
})

test('a thousand events of one phase are a few posts', async () => {
  await using server = await startListener(() => 204)
  // All of them in one moment of its clock, however long it takes here.
  let time = 0
  const reporter = reporterTo(server.origin, undefined, undefined, () => time)
  for (let at = 0; at < 1000; at += 1) {
    reporter.post(post('run-number-1', 'write', at))
    if (at % 100 === 0) await sleep(5)
  }
  time += 10_000
  reporter.post(post('run-number-1', 'done', 1000))
  assert.is(await reporter.flush(60_000), null)
  assert.ok(server.told.length <= 4, `${server.told.length} posts`)
  assert.is(server.told.at(-1)?.bytes_written, 1000)
})

test('a server without that route is left in peace', async () => {
  await using server = await startListener(() => 404)
  const reporter = reporterTo(server.origin)
  reporter.post(post('run-number-1', 'started'))
  assert.is((await reporter.flush(60_000))?.status, 404)
  reporter.post(post('run-number-1', 'done'))
  assert.is((await reporter.flush(60_000))?.status, 404)
  assert.is(server.seen.length, 1)
})

test('what a server does not understand spoils nothing that follows', async () => {
  await using server = await startListener((count) => (count === 0 ? 422 : 204))
  const reporter = reporterTo(server.origin)
  reporter.post(post('run-number-1', 'started'))
  reporter.post(post('run-number-1', 'done'))
  assert.is(await reporter.flush(60_000), null)
  assert.is(server.told.at(-1)?.phase, 'done')
})

test('a server that is away: waiting ends, trying does not', async () => {
  let isAway = true
  await using server = await startListener(() => (isAway ? 503 : 204))
  const reporter = reporterTo(server.origin)
  reporter.post(post('run-number-1', 'done'))
  assert.is((await reporter.flush(50))?.isPassing, true)
  isAway = false
  assert.is(await reporter.flush(60_000), null)
  assert.is(server.told.at(-1)?.phase, 'done')
})

const PageSchema = z.object({
  total: z.number(),
  runs: z.array(
    z.object({ mac: z.string(), result: z.string().nullable(), bytes_written: z.number() }),
  ),
})

const BOXES = 500

test(`${BOXES} machines on a bad network: the last state of each is known`, async () => {
  await using home = await createServerHome()
  await using server = await home.start()
  await using link = await openLossyLink(Number(new URL(server.url).port), 0.02)
  const addresses = Array.from({ length: BOXES }, (_, index) => {
    const hex = index.toString(16).padStart(4, '0')
    return `52:54:00:01:${hex.slice(0, 2)}:${hex.slice(2)}`
  })
  for (const address of addresses) await fetch(`${server.url}/pxe/${address}`)
  const ends: readonly RunPhase[] = ['done', 'failed', 'cancelled']
  const flash = async (address: string, index: number) => {
    const reporter = reporterTo(link.url, address, 50)
    const run = `run-of-${index}-machine`
    await sleep(index * 4)
    reporter.post(post(run, 'started'))
    for (let at = 0; at <= 10; at += 1) {
      reporter.post(post(run, at < 8 ? 'write' : 'verify', at * 100))
      await sleep(100)
    }
    reporter.post(post(run, ends[index % 3] ?? 'done', 1000))
    assert.is(await reporter.flush(60_000), null)
  }
  await Promise.all(addresses.map(flash))
  const { cookie } = await login(server.url, passwordIn(server.stdout()))
  const answer = await fetch(`${server.url}/runs?limit=500`, { headers: { cookie } })
  const { total, runs } = PageSchema.parse(await answer.json())
  assert.is(total, BOXES)
  const results = new Map(runs.map(({ mac: address, result }) => [address, result]))
  addresses.forEach((address, index) => assert.is(results.get(address), ends[index % 3]))
  assert.ok(link.cuts() > 0, 'the network was a good one')
  const metrics = await (await fetch(`${server.url}/metrics`, { headers: { cookie } })).text()
  const counts = metrics.matchAll(
    /^flasher_http_request_seconds_count\{[^}]*progress[^}]*\} (\d+)$/gm,
  )
  const posts = [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
  // Four phases, the end, and repeats after broken connections; each machine passed on thirteen events.
  assert.ok(posts >= BOXES && posts < BOXES * 8, `${posts} posts`)
})

interface LossyLink extends AsyncDisposable {
  readonly url: string
  /** Connections that were cut. */
  readonly cuts: () => number
}

/** `share`: of the pieces that pass, how many cut their connection instead; 0 to 1. */
async function openLossyLink(port: number, share: number): Promise<LossyLink> {
  const random = createRandom(7)
  const sockets = new Set<Socket>()
  let cuts = 0
  const join = (from: Socket, to: Socket) => {
    sockets.add(from)
    from.on('error', () => to.destroy())
    from.on('close', () => {
      sockets.delete(from)
      to.destroy()
    })
    from.on('data', (piece) => {
      if (random() < share) {
        cuts += 1
        from.destroy()
        to.destroy()
      } else to.write(piece)
    })
  }
  const server = createServer((machine) => {
    const other = connect(port, '127.0.0.1')
    join(machine, other)
    join(other, machine)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const own = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${own}`,
    cuts: () => cuts,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}

test.run()
