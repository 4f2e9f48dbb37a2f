/** The clock of a running server and cache is set, hours and years back and ahead, in the middle of everything. */
import { mkdir, rename, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { refOf } from '#engine/catalog/rules/catalog.ts'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'
import { makeBytes } from '#test/support/collect.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { findPort } from '#test/support/http/ports.ts'
import { partName } from '#test/support/server/boot-folder.ts'
import { createServerHome, login } from '#test/support/server/flasher-web.ts'
import { startCache, until } from '#test/support/server/image-cache.ts'
import { diskOf } from '#test/support/server/machine-fixture.ts'
import { bodyOf } from '#test/support/server/runs.ts'

const LIBRARY = '/usr/$LIB/faketime/libfaketimeMT.so.1'

interface MovedClock {
  /** What a program is started with that shall have this clock. */
  readonly env: Readonly<Record<string, string>>
  /** From now on it is so many seconds ahead of ours, or behind it. */
  set(seconds: number): Promise<void>
  /** What the programs take for the present, in milliseconds. */
  now(): number
}

/** Only the clock on the wall is moved: durations stay as they are. Needs Debian's `faketime`. */
async function createMovedClock(folder: string): Promise<MovedClock> {
  const path = join(folder, 'clock')
  let ahead = 0
  const clock = {
    env: {
      LD_PRELOAD: LIBRARY,
      FAKETIME_TIMESTAMP_FILE: path,
      // Read at each look at the clock, so that it moves in the middle of everything.
      FAKETIME_NO_CACHE: '1',
      DONT_FAKE_MONOTONIC: '1',
      NO_FAKE_STAT: '1',
    },
    async set(seconds: number) {
      // Never half a file: another process reads it at any moment.
      await writeFile(`${path}.new`, `${seconds < 0 ? '' : '+'}${seconds}s\n`)
      await rename(`${path}.new`, path)
      ahead = seconds
    },
    now: () => Date.now() + ahead * 1000,
  }
  await clock.set(0)
  return clock
}

const test = suite('flasher-web and flasher-cache, whose clock is set while they work')

const PASSWORD = 'correct horse battery'
const CACHE_TOKEN = 'a-token-of-the-cache-and-its-server'
const [FLASHING, WAITING] = ['52:54:00:12:34:56', '52:54:00:12:34:57']
const IMAGE = makeBytes(200_000)
const UPLOAD = makeBytes(1_000_000, 7)
const PART = 50_000
const HOUR = 3600
const DAY = 24 * HOUR
const YEAR = 365 * DAY
/** Seconds ahead of the present; each comes after the one before, without a way through the present. */
const MOVES = [5 * HOUR, -5 * HOUR, 40 * DAY, 30 * YEAR, -20 * YEAR, 0]

/** Its head, then a little at a time, so that nobody takes it for a connection that is broken. */
async function drip(response: ServerResponse, isReleased: () => boolean) {
  let at = 150_000
  response.write(IMAGE.subarray(0, at))
  while (!isReleased() && !response.destroyed) {
    response.write(IMAGE.subarray(at, at + 10))
    at += 10
    await sleep(200)
  }
  response.end(IMAGE.subarray(at))
}

/** Server, cache, and a site whose second file ends only when it is let go. */
async function openLab() {
  await using undo = new AsyncDisposableStack()
  const home = undo.use(await createServerHome())
  const clock = await createMovedClock(home.dir)
  const released = { value: false }
  const origin = undo.use(
    await startHostileServer((request, response) => {
      response.writeHead(200, { 'content-length': IMAGE.length, etag: '"1"' })
      const isSlow = request.url?.startsWith('/slow') === true
      void drip(response, () => !isSlow || released.value || request.method === 'HEAD')
    }),
  )
  await mkdir(home.at('state/boot'), { recursive: true, mode: 0o700 })
  for (const part of TRIO)
    await writeFile(join(home.at('state/boot'), partName('1.0.0', part)), part)
  const [port, cachePort] = [String(await findPort()), String(await findPort())]
  const startServer = () =>
    home.start([], {
      ...clock.env,
      FLASHER_SERVER_PORT: port,
      FLASHER_ADMIN_PASSWORD: PASSWORD,
      FLASHER_WITHCACHE_URL: `http://127.0.0.1:${cachePort}`,
      FLASHER_WITHCACHE_TOKEN: CACHE_TOKEN,
      FLASHER_PXE_TOKENS: 'require',
      FLASHER_PXE_MAX_FLASHES: '1',
      FLASHER_BACKUP_RETENTION: '2',
    })
  const startOurCache = () =>
    startCache(home.at('cache-state'), {
      ...clock.env,
      FLASHER_CACHE_PORT: cachePort,
      FLASHER_CACHE_TOKEN: CACHE_TOKEN,
    })
  let [server, cache] = [await startServer(), await startOurCache()]
  undo.defer(() => server[Symbol.asyncDispose]())
  undo.defer(() => cache[Symbol.asyncDispose]())
  const held = undo.move()
  return {
    clock,
    origin: origin.origin,
    url: server.url,
    release: () => void (released.value = true),
    askCache: (method: string, path: string, body?: BodyInit, more = {}) =>
      fetch(`${cache.base}${path}`, {
        method,
        headers: { authorization: `Bearer ${CACHE_TOKEN}`, ...more },
        ...(body === undefined ? {} : { body }),
      }),
    /** The server in order, the cache by a kill. */
    async restart() {
      await server[Symbol.asyncDispose]()
      await cache.kill('SIGKILL')
      ;[server, cache] = [await startServer(), await startOurCache()]
    },
    async restartServer() {
      await server[Symbol.asyncDispose]()
      server = await startServer()
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

type Lab = Awaited<ReturnType<typeof openLab>>
const JSON_TYPE = { 'content-type': 'application/json' }

/** Makes requests as the operator whose session `cookie` is. */
const createAsk =
  ({ url }: Pick<Lab, 'url'>, cookie: string) =>
  (path: string, body?: unknown, method = body === undefined ? 'GET' : 'POST') =>
    fetch(`${url}${path}`, {
      method,
      headers: { cookie, accept: 'application/json', ...JSON_TYPE },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })

/** What the machine that is flashed does, with the token of its boot. */
function createMachine({ url }: Lab, token: string) {
  const ask = (path: string, body?: unknown) =>
    fetch(`${url}/pxe/${FLASHING}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${token}`, ...JSON_TYPE },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  let written = 0
  return {
    ask,
    report: async () => {
      written += 1000
      return (await ask('/progress', bodyOf({ bytes_written: written }))).status
    },
  }
}

const scriptOf = async ({ url }: Lab, mac: string) =>
  await (await fetch(`${url}/pxe/${mac}`)).text()

async function enter(lab: Lab): Promise<string> {
  let cookie = ''
  await until(async () => {
    const answer = await login(lab.url, PASSWORD)
    if (answer.status < 400) ({ cookie } = answer)
    return cookie !== ''
  })
  return cookie
}

/** A machine that is being flashed, one that waits, an upload and a download that are under way. */
async function begin(lab: Lab) {
  const first = await enter(lab)
  const ask = createAsk(lab, first)
  for (const name of ['image', 'slow']) {
    const body = JSON.stringify({ name, src: `${lab.origin}/${name}/x.img` })
    assert.is((await lab.askCache('POST', '/catalog/entries', body, JSON_TYPE)).status, 201)
    assert.is((await lab.askCache('POST', `/catalog/entries/${name}/download`)).status, 202)
  }
  await until(async () => (await stateOf(lab, 'image')) === 'ready')
  assert.is((await ask('/admin/cache/refresh', {})).status, 204)
  const ref = refOf(`${lab.origin}/image/x.img`)
  const order = {
    boot_mode: 'flasher-flash-once',
    bty_image_ref: ref.ok ? ref.value : '',
    target_disk_serial: 'S1',
  }
  for (const mac of [FLASHING, WAITING]) {
    assert.is((await ask(`/machines/${mac}`, order, 'PUT')).status, 200)
  }
  await until(async () => / flasher\.token=/.test(await scriptOf(lab, FLASHING)))
  const token = / flasher\.token=(\S+)/.exec(await scriptOf(lab, FLASHING))?.[1] ?? ''
  const machine = createMachine(lab, token)
  assert.is((await machine.ask('/inventory', { disks: [diskOf('S1')] })).status, 204)
  await until(async () => (await (await machine.ask('/plan')).json()).mode === 'flash')
  assert.is(await machine.report(), 204)
  const fields = JSON.stringify({ name: 'sent.img', size_bytes: UPLOAD.length })
  const upload = await (await lab.askCache('POST', '/uploads', fields, JSON_TYPE)).json()
  return { first, machine, upload: String(upload.id) }
}

async function stateOf(lab: Lab, name: string): Promise<unknown> {
  const { entries } = await (await lab.askCache('GET', '/catalog?all')).json()
  return entries.find((entry: { name: string }) => entry.name === name)?.state
}

const sendPart = async (lab: Lab, id: string, from: number, to: number) =>
  (
    await lab.askCache('PATCH', `/uploads/${id}`, new Uint8Array(UPLOAD.subarray(from, to)), {
      'content-range': `bytes ${from}-${to - 1}/${UPLOAD.length}`,
    })
  ).status

/** The newest backup that is kept, after one that was just made. */
async function backUp(ask: ReturnType<typeof createAsk>): Promise<void> {
  const { backup_id } = await (await ask('/workers/backups', { trigger: 'manual' })).json()
  let status = ''
  await until(async () => {
    const { backups } = await (await ask('/workers/backups')).json()
    status = backups.find((job: { backup_id: string }) => job.backup_id === backup_id)?.status
    return status === 'completed' || status === 'failed'
  })
  assert.is(status, 'completed')
  let ids: readonly string[] = []
  // Older ones are removed once it is complete.
  await until(async () => {
    const { stored } = await (await ask('/workers/backups')).json()
    ids = stored.map((backup: { readonly backup_id: string }) => backup.backup_id)
    return ids.length <= 2
  })
  assert.ok(ids.includes(backup_id), `${backup_id} is kept: ${ids}`)
}

/** Everything that holds whatever the clock says; returns the session that began under it. */
async function check(
  lab: Lab,
  { machine }: Pick<Awaited<ReturnType<typeof begin>>, 'machine'>,
  clock: MovedClock,
): Promise<string> {
  assert.is(await machine.report(), 204, 'its token holds')
  assert.match(await scriptOf(lab, WAITING), /place 1 of 1, 1 is being flashed/)
  const wrong = await login(lab.url, 'a wrong password')
  assert.ok(wrong.status >= 400)
  const cookie = await enter(lab)
  const ask = createAsk(lab, cookie)
  const { last_seen_at } = await (await ask(`/machines/${FLASHING}`)).json()
  const age = Math.abs(Date.parse(last_seen_at) - clock.now())
  assert.ok(age < 60_000, `it was seen just now: ${last_seen_at}`)
  const { runs } = await (await ask(`/machines/${FLASHING}/runs`)).json()
  assert.equal(
    runs.map((run: { result: unknown; stalled: unknown }) => [run.result, run.stalled]),
    [[null, false]],
    'one run goes on',
  )
  await backUp(ask)
  const { events } = await (await ask('/events?limit=1')).json()
  assert.match(events[0]?.kind, /^backup\./, 'what happened last is the newest')
  return cookie
}

test('a flash, a queue, sessions, backups, uploads and downloads go on, also after restarts', async () => {
  await using lab = await openLab()
  const { clock } = lab
  const begun = await begin(lab)
  const sessions: { readonly cookie: string; readonly at: number }[] = []
  let sent = 0
  for (const seconds of MOVES) {
    for (const isStart of [false, true]) {
      await clock.set(seconds)
      if (isStart) await lab.restartServer()
      const cookie = await check(lab, begun, clock)
      sessions.push({ cookie, at: seconds })
      assert.is(await sendPart(lab, begun.upload, sent, sent + PART), 200)
      sent += PART
      assert.is(await stateOf(lab, 'slow'), 'receiving')
    }
    for (const { cookie, at } of sessions) {
      const { status } = await createAsk(lab, cookie)('/machines')
      // One that began long before, by this clock, has expired.
      if (seconds - at < DAY) assert.is(status, 200, `of ${at} at ${seconds}`)
    }
  }
  await finish(lab, begun, sent)
})

async function finish(lab: Lab, begun: Awaited<ReturnType<typeof begin>>, sent: number) {
  const { machine, upload } = begun
  assert.is((await createAsk(lab, begun.first)('/machines')).status, 200, 'the first session')
  lab.release()
  await until(async () => (await stateOf(lab, 'slow')) === 'ready')
  await lab.restart()
  assert.is(await sendPart(lab, upload, sent, UPLOAD.length), 200)
  assert.is((await lab.askCache('POST', `/uploads/${upload}/complete`)).status, 201)
  assert.equal(
    [await stateOf(lab, 'image'), await stateOf(lab, 'slow'), await stateOf(lab, 'sent.img')],
    ['ready', 'ready', 'ready'],
  )
  assert.is(await machine.report(), 204)
  const last = bodyOf({ phase: 'done', bytes_written: IMAGE.length })
  assert.is((await machine.ask('/progress', last)).status, 204)
  assert.is((await machine.ask('/done', {})).status, 204)
  const ask = createAsk(lab, await enter(lab))
  const { runs } = await (await ask(`/machines/${FLASHING}/runs`)).json()
  assert.equal(
    runs.map((run: { result: unknown }) => run.result),
    ['done'],
  )
  assert.match(await scriptOf(lab, WAITING), / flasher\.token=/)
}

test.run()
