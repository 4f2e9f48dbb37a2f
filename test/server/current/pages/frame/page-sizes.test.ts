/** Bytes of each page on the wire, as browsers ask for it, with 10,000 machines. */
import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { PAGE_GATE } from '../../../../../runtime/server/routes/rules/page-gate.ts'
import { createFolder, PASSWORD } from '../../../../bench/server/server-fixture.ts'
import { startFlasher } from '../../../../bench/server/server-subjects.ts'
import { macOf } from '../../../../bench/server/server-wire.ts'
import { login } from '../../../../support/server/flasher-web.ts'
import { UNCOUNTED } from '../../../../support/server/web-machines.ts'

const test = suite('the sizes of pages')
const MACHINES = 10_000
const MAX_PAGE = 40_000
/** A wall of 1,000 machines. */
const MAX_WALL = 60_000
/** A page lists as many. */
const RUNS = 100
const TILES = 1000
const MAC = macOf(1)

/** Texts that nothing shortens on the wire, as serial numbers are. */
const digestOf = (n: number) => createHash('sha256').update(`${n}`).digest('hex').slice(0, 20)
const runOf = (n: number) => `c0ffee00-${n.toString().padStart(4, '0')}`

/** Pages of the other line, what answers with another page, and forms that no machine makes larger. */
const LEFT_OUT = [
  '/ui/images',
  '/ui/boot',
  '/ui/machines/:mac/workflows/:run',
  '/ui/cache/back',
  '/ui/runs/compare',
  '/ui/first-boot/:name',
  '/ui/people/:id',
  '/ui/notifications/:id',
  '/ui/notifications/:id/rules/:rule',
]

async function open() {
  await using parts = new AsyncDisposableStack()
  const folder = parts.use(await createFolder(MACHINES))
  const { port } = parts.use(await startFlasher(folder))
  const url = `http://127.0.0.1:${port}`
  const { cookie } = await login(url, PASSWORD)
  const send = async (method: string, path: string, body: object = {}) => {
    const headers = {
      authorization: `Bearer ${folder.token}`,
      'content-type': 'application/json',
    }
    const answer = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) })
    assert.ok(answer.ok, `${method} ${path}: ${answer.status}`)
    return answer
  }
  const get = (path: string) =>
    fetch(`${url}${path}`, { headers: { cookie, 'accept-encoding': 'gzip' }, redirect: 'manual' })
  const held = parts.move()
  return { send, get, [Symbol.asyncDispose]: () => held.disposeAsync() }
}

type Site = Awaited<ReturnType<typeof open>>

/** Gives the first thousand a name of their own; of some, a flash fails with a long reason. */
async function settle({ send }: Site): Promise<string> {
  const put = (n: number) => {
    const labels = [`rack-${n % 40}`, `slot-${Math.floor(n / 40) + 1}`, 'walled']
    return send('PUT', `/machines/${macOf(n)}`, { name: `node-${digestOf(n)}`, labels })
  }
  for (let from = 0; from < TILES; from += 20) {
    await Promise.all(Array.from({ length: 20 }, (_, step) => put(from + step)))
  }
  const order = { action: 'mode', q: 'walled', parameters: { boot_mode: 'flasher-flash-once' } }
  const { batch } = await (await send('POST', '/machines/bulk', order)).json()
  for (let n = 0; n < RUNS; n += 1) {
    const pxe = `/pxe/${macOf(n)}`
    const disk = { path: '/dev/nvme0n1', model: 'A disk', serial: digestOf(n), tran: 'nvme' }
    const run = { ...UNCOUNTED, run: runOf(n) }
    await send('POST', `${pxe}/progress`, { ...run, phase: 'started', mode: 'flash', disk })
    const reason = `write error at ${digestOf(n)}: Input/output error`
    await send('POST', `${pxe}/progress`, { ...run, phase: 'failed', reason })
  }
  await send('POST', '/workers/backups')
  return batch
}

/** The backup that was requested, once it is complete. */
async function findBackup({ get }: Site): Promise<string> {
  for (let tries = 0; tries < 600; tries += 1) {
    const text = await (await get('/ui/backups')).text()
    const id = /\/ui\/backups\/([^/"]+)\/restore/.exec(text)?.[1]
    if (id !== undefined) return id
    await pause(50)
  }
  throw new Error('the backup was never complete')
}

/** An address of each page: those of one machine, run or batch are of one that there is. */
function addressOf(path: string, batch: string, backup: string): string {
  if (path.startsWith('/ui/backups/')) return path.replace(':id', backup)
  if (path.startsWith('/ui/batches/')) return path.replace(':id', batch)
  return path.replace(':mac', MAC).replace(':id', runOf(1)).replace(':kind', 'webhook')
}

test(`no page has more than ${MAX_PAGE} bytes on the wire with ${MACHINES} machines, no wall more than ${MAX_WALL}`, async () => {
  await using site = await open()
  const batch = await settle(site)
  const backup = await findBackup(site)
  const pages = Object.entries(PAGE_GATE).flatMap(([path, row]) =>
    row.GET === undefined || LEFT_OUT.includes(path) ? [] : [addressOf(path, batch, backup)],
  )
  const lists = ['/ui/machines?q=walled', '/ui/events?erased=yes', '/ui/find?q=rack']
  const wall = '/ui/machines?view=wall&screen=whole&q=walled'
  const sizes = new Map<string, number>()
  for (const path of [...pages, ...lists, wall]) {
    const answer = await site.get(path)
    assert.is(answer.status, 200, path)
    await answer.arrayBuffer()
    sizes.set(path, Number(answer.headers.get('content-length') ?? Number.NaN))
  }
  if (process.env['FLASHER_SIZES'] === '1') console.table(Object.fromEntries(sizes))
  for (const [path, bytes] of sizes) {
    const most = path === wall || path === '/ui/machines/wall' ? MAX_WALL : MAX_PAGE
    assert.ok(bytes > 0 && bytes <= most, `${path}: ${bytes} bytes`)
  }
})

test.run()
