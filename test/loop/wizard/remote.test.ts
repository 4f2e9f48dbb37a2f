/** Machines that a real server drives: each mode, and what becomes of each failure. */
import { createHash } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createDisks } from '#engine/disk/disks.ts'
import { createStandaloneHooks } from '#flasher/order/remote-hooks.ts'
import { createShell } from '#kit/host/shell.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk, inMemory } from '#test/support/disk/faulty-disk.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { makeStale, readDisk } from '#test/support/disk/writer.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { createServerHome, login, passwordIn } from '#test/support/server/flasher-web.ts'
import {
  driveMachine,
  type Driven,
  entryOf,
  flashByHand,
  MAC,
  openServer,
  runOf,
} from '#test/support/terminal/remote-fixture.ts'

const test = suite('server-driven')
const run = process.getuid?.() === 0 ? test : test.skip

const IMAGE = makeDiskImage(6 * 2 ** 20)
const SHA = createHash('sha256').update(IMAGE).digest('hex')
const REF = 'a'.repeat(64)
const PLACE = 'pci-0000:00:05.0'
const TARGET = { bty_image_ref: REF, target_disk_serial: `path:${PLACE}` }

/** Serves the image; `cut`: ends every answer early. */
const serveImage = (cut = false) =>
  startHostileServer((request, response) => {
    response.writeHead(200, { 'content-length': IMAGE.length })
    if (request.method === 'HEAD') response.end()
    else if (cut) response.write(IMAGE.subarray(0, 2 ** 20), () => response.destroy())
    else response.end(IMAGE)
  })

const noticeOf = ({ outcome }: Driven) =>
  outcome.kind === 'interactive' ? (outcome.start.notice ?? '') : `exit ${outcome.code}`
const catalogOf = ({ outcome }: Driven) =>
  outcome.kind === 'interactive' ? outcome.start.catalog : null

const LSHW = { id: 'box', class: 'system' }
const hardware = {
  readTree: async () => LSHW,
  readBmcAddress: async () => '10.20.0.11',
  readBootTimes: async () => '',
  readKernelLog: async () => [],
}

run('flash: written, told, rebooted', async () => {
  await using images = await serveImage()
  await using server = await openServer([
    entryOf(`${images.origin}/debian.img`, { sha256: SHA, sizeBytes: IMAGE.length }),
  ])
  await using loop = await createLoop({ megabytes: 16 })
  await server.arm({ boot_mode: 'flasher-flash-always', ...TARGET })
  const box = await driveMachine({
    server: server.url,
    mac: '52-54-00-00-00-01',
    places: { [PLACE]: loop.device },
  })
  assert.equal(box.outcome, { kind: 'exit', code: 0 })
  assert.is(box.reboots, 1)
  assert.ok((await readDisk(loop.device, 0, IMAGE.length)).equals(IMAGE))
  const machine = await server.machines.find(MAC)
  assert.is.not(machine?.last_flashed_at, null)
  assert.is(machine?.known_disks?.[0]?.by_path, PLACE)
  assert.ok(box.marks.includes('auto-flash starting'))
  assert.ok(
    box.said.includes(`Flashing debian.img to ${loop.device}, 16.8 MB, as the server requested.`),
  )
  assert.ok(box.marks.includes('flash complete; rebooting'))
  assert.ok(box.marks.includes('download 100%'))
  const told = await runOf(server)
  assert.is(told.phases, 'started write verify sync done')
  assert.equal([told.mode, told.result, told.verified], ['flash', 'done', true])
  assert.is(told.bytes_written, IMAGE.length)
  assert.equal(told.disk, { path: loop.device, serial: `path:${PLACE}` })
})

run('interactive: the wizard with the catalog and the reason', async () => {
  await using server = await openServer([])
  await server.arm({ boot_mode: 'flasher-tui' })
  const box = await driveMachine({ server: server.url })
  assert.is(box.outcome.kind === 'interactive' && box.outcome.start.notice, null)
  assert.is(catalogOf(box), `${server.url}/catalog.toml`)
  await server.arm({ boot_mode: 'flasher-flash-once', ...TARGET })
  const unknown = await driveMachine({ server: server.url })
  assert.match(noticeOf(unknown), /not in the catalog/)
})

run('a flash by hand is reported to the server as well', async () => {
  await using images = await serveImage()
  await using server = await openServer([])
  await using loop = await createLoop({ megabytes: 16 })
  await server.arm({ boot_mode: 'flasher-tui' })
  const box = await driveMachine({ server: server.url, places: { [PLACE]: loop.device } })
  if (box.outcome.kind !== 'interactive') throw new Error('no wizard')
  const { hooks } = box.outcome
  const refused = await flashByHand(hooks, `${images.origin}/debian.img`, '/dev/nowhere')
  assert.is(refused.kind, 'failed')
  await flashByHand(hooks, `${images.origin}/debian.img`, loop.device)
  const told = await runOf(server)
  assert.equal([told.mode, told.result, told.verified], ['interactive', 'done', true])
  assert.is.not((await server.machines.find(MAC))?.last_flashed_at, null)
})

run('a flash on a console that the server does not drive is reported as well', async () => {
  await using images = await serveImage()
  await using server = await openServer([])
  await using loop = await createLoop({ megabytes: 16 })
  await server.arm({ boot_mode: 'flasher-tui' })
  const hooks = await createStandaloneHooks({
    env: { FLASHER_LIVE_SERVER: server.url, FLASHER_LIVE_MAC: MAC.replaceAll(':', '-') },
    signal: new AbortController().signal,
    now: () => performance.now(),
    arch: 'x64',
  })
  await flashByHand(hooks, `${images.origin}/debian.img`, loop.device)
  const told = await runOf(server)
  assert.equal([told.mode, told.result, told.disk?.path], ['interactive', 'done', loop.device])
})

run('inventory: posts the disks and the hardware, then reboots', async () => {
  await using server = await openServer([])
  await using loop = await createLoop({ megabytes: 16 })
  // Its first contact: the server does not know it before it asks for the plan.
  const box = await driveMachine({
    server: server.url,
    places: { [PLACE]: loop.device },
    parts: { hardware },
  })
  assert.equal(box.outcome, { kind: 'exit', code: 0 })
  assert.is(box.reboots, 1)
  const [disk] = (await server.machines.find(MAC))?.known_disks ?? []
  assert.equal([disk?.path, disk?.by_path, disk?.size_bytes], [loop.device, PLACE, 16 * 2 ** 20])
  const stored = await server.ask(`/machines/${MAC}/lshw.json`)
  assert.equal(await stored.json(), LSHW)
  assert.is((await server.machines.find(MAC))?.bmc_address, '10.20.0.11')
})

run('exit: a word, and the machine goes on', async () => {
  await using server = await openServer([])
  await using loop = await createLoop({ megabytes: 16 })
  await server.arm({ boot_mode: 'ipxe-exit' })
  const places = { [PLACE]: loop.device }
  const box = await driveMachine({ server: server.url, places, parts: { hardware } })
  assert.equal(box.outcome, { kind: 'exit', code: 0 })
  assert.is(box.reboots, 0)
  assert.ok(box.said.some((line) => line.includes('boot its own disk')))
  const stored = await server.ask(`/machines/${MAC}/lshw.json`)
  assert.equal(await stored.json(), LSHW, 'the hardware is posted in every mode')
})

run('a failed write is reported at once, and the wizard opens', async () => {
  await using images = await serveImage(true)
  await using server = await openServer([entryOf(`${images.origin}/debian.img`)])
  await using loop = await createLoop({ megabytes: 16 })
  await server.arm({ boot_mode: 'flasher-flash-once', ...TARGET })
  const box = await driveMachine({ server: server.url, places: { [PLACE]: loop.device } })
  assert.match(noticeOf(box), /^The flash that the server requested failed: .*debian\.img/)
  assert.is(catalogOf(box), `${server.url}/catalog.toml`)
  assert.is(box.reboots, 0)
  const machine = await server.machines.find(MAC)
  assert.is(machine?.last_flashed_at, null)
  assert.match(machine?.cycle.failure?.reason ?? '', /debian\.img/)
  const told = await runOf(server)
  assert.is(told.phases, 'started write failed')
  assert.match(told.reason ?? '', /debian\.img/)
  assert.match(told.log, /^failed: .*\n\n--- the last lines on the screen\nFlashing debian\.img/)
  assert.match(told.log, /\[1\.0\] kernel: hello\n$/)
  assert.ok((await readDisk(loop.device, 0, 4096)).every((byte) => byte === 0))
})

run('a wrong digest is reported, and nothing boots', async () => {
  await using images = await serveImage()
  await using server = await openServer([
    entryOf(`${images.origin}/debian.img`, { sha256: 'b'.repeat(64) }),
  ])
  await using loop = await createLoop({ megabytes: 16 })
  await server.arm({ boot_mode: 'flasher-flash-once', ...TARGET })
  const box = await driveMachine({ server: server.url, places: { [PLACE]: loop.device } })
  assert.match(noticeOf(box), /failed: .* is not the expected image: its sha256 is/)
  assert.ok((await readDisk(loop.device, 0, 4096)).every((byte) => byte === 0))
})

run('a disk that is pulled before the first byte: told, and nothing is written', async () => {
  await using images = await serveImage()
  await using server = await openServer([entryOf(`${images.origin}/debian.img`)])
  await using loop = await createLoop({ megabytes: 16 })
  await server.arm({ boot_mode: 'flasher-flash-once', ...TARGET })
  const disks = createDisks({ shell: createShell({ env: process.env }) })
  let looks = 0
  const survey = async () => {
    looks += 1
    const all = await disks.survey({ loops: true })
    return all.filter(({ path }) => path === loop.device && looks === 1)
  }
  const places = { [PLACE]: loop.device }
  const box = await driveMachine({ server: server.url, places, parts: { disks: { survey } } })
  assert.match(noticeOf(box), /The disk path:pci-0000:00:05\.0 is not in this machine: it has no/)
  const told = await runOf(server)
  assert.equal([told.result, told.disk?.serial], ['failed', TARGET.target_disk_serial])
  assert.match(told.log, /is not in this machine/)
  assert.ok((await readDisk(loop.device, 0, 4096)).every((byte) => byte === 0))
})

run('a disk that the server knows to be elsewhere: the wizard, and the reason', async () => {
  await using images = await serveImage()
  await using server = await openServer([entryOf(`${images.origin}/debian.img`)])
  await using loop = await createLoop({ megabytes: 16 })
  await server.arm({ boot_mode: 'flasher-flash-once', ...TARGET })
  const box = await driveMachine({ server: server.url, places: { elsewhere: loop.device } })
  assert.match(noticeOf(box), /which is selected on the server, is not in this machine/)
})

run('cancelled at the machine: told as a failure, the wizard opens', async () => {
  await using images = await serveImage()
  await using server = await openServer([entryOf(`${images.origin}/debian.img`)])
  await using loop = await createLoop({ megabytes: 16 })
  await server.arm({ boot_mode: 'flasher-flash-once', ...TARGET })
  const ending = new AbortController()
  const box = await driveMachine({
    server: server.url,
    places: { [PLACE]: loop.device },
    cancel: ending.signal,
    onWrite: () => ending.abort(),
  })
  assert.match(noticeOf(box), /was cancelled\./)
  assert.is((await runOf(server)).result, 'cancelled')
  assert.match((await server.machines.find(MAC))?.cycle.failure?.reason ?? '', /^cancelled/)
})

run('a server that goes away during the flash: the box stays with the reason', async () => {
  await using images = await serveImage()
  await using server = await openServer([entryOf(`${images.origin}/debian.img`)])
  await using loop = await createLoop({ megabytes: 16 })
  await server.arm({ boot_mode: 'flasher-flash-always', ...TARGET })
  let closing: Promise<void> | null = null
  const box = await driveMachine({
    server: server.url,
    places: { [PLACE]: loop.device },
    parts: { times: { contact: 500, report: 300, silence: 50, failure: 500, retry: 20 } },
    onWrite: () => {
      closing ??= server.close()
    },
  })
  await closing
  assert.match(noticeOf(box), /^The disk is flashed, but the server could not be notified \(/)
  assert.is(box.reboots, 0)
  assert.ok((await readDisk(loop.device, 0, IMAGE.length)).equals(IMAGE))
  assert.ok(box.said.some((line) => /^Not reported yet \(.+\); trying again, for 0:0/.test(line)))
})

run('a machine that cannot be restarted says so', async () => {
  await using server = await openServer([])
  await using loop = await createLoop({ megabytes: 16 })
  const power = { reboot: async () => ({ ok: false, refusal: 'systemctl: no' }) as const }
  const box = await driveMachine({
    server: server.url,
    places: { [PLACE]: loop.device },
    parts: { power },
  })
  assert.match(noticeOf(box), /cannot be restarted \(systemctl: no\)/)
})

const OLD = '0'.repeat(64)

/** As a cache serves it: with its digest. */
const serveReplaced = (onAsked: () => void = () => undefined) =>
  startHostileServer((request, response) => {
    onAsked()
    sendFile(IMAGE, request, response, { headers: { 'x-withcache-sha256': SHA } })
  })

run('the plan is asked for again, and one flash is reported', async () => {
  const catalog = [entryOf('http://127.0.0.1:9/none')]
  await using images = await serveReplaced(() => {
    catalog[0] = entryOf(`${images.origin}/debian.img`, { sha256: SHA })
  })
  catalog[0] = entryOf(`${images.origin}/debian.img`, { sha256: OLD })
  await using server = await openServer(catalog)
  await using loop = await createLoop({ megabytes: 16 })
  await server.arm({ boot_mode: 'flasher-flash-always', ...TARGET })
  const box = await driveMachine({ server: server.url, places: { [PLACE]: loop.device } })
  assert.equal(box.outcome, { kind: 'exit', code: 0 })
  assert.ok(box.said.some((line) => line.startsWith('The image was replaced since the plan')))
  assert.ok((await readDisk(loop.device, 0, IMAGE.length)).equals(IMAGE))
  assert.is((await runOf(server)).result, 'done')
})

run('where the plan stays as it is, the disk does as well', async () => {
  await using images = await serveReplaced()
  await using server = await openServer([entryOf(`${images.origin}/debian.img`, { sha256: OLD })])
  await using loop = await createLoop({ megabytes: 16 })
  const stale = await makeStale(loop.device)
  await server.arm({ boot_mode: 'flasher-flash-always', ...TARGET })
  const box = await driveMachine({ server: server.url, places: { [PLACE]: loop.device } })
  assert.is(box.outcome.kind, 'interactive')
  const told = await runOf(server)
  assert.is(told.result, 'failed')
  assert.match(told.reason ?? '', `its sha256 is ${SHA}, not ${OLD}`)
  assert.ok((await readDisk(loop.device, 0, stale.length)).equals(stale))
})

async function openWizardContext() {
  await using undo = new AsyncDisposableStack()
  const images = undo.use(
    await startHostileServer((request, response) => {
      response.writeHead(200, { 'content-length': IMAGE.length })
      if (request.method === 'HEAD') response.end()
      else response.end(IMAGE)
    }),
  )
  const server = undo.use(
    await openServer([entryOf(`${images.origin}/debian.img`, { sizeBytes: IMAGE.length })], {
      env: { FLASHER_PXE_TOKENS: 'require' },
    }),
  )
  const loop = undo.use(await createLoop({ megabytes: 16 }))
  await server.arm({ boot_mode: 'flasher-flash-once', ...TARGET })
  const script = await (await server.request(`/pxe/${MAC}`)).text()
  const held = undo.move()
  return {
    server,
    loop,
    token: / flasher\.token=(\S+) /.exec(script)?.[1] ?? '',
    drive: (token: string) =>
      driveMachine({
        server: server.url,
        places: { [PLACE]: loop.device },
        env: token === '' ? {} : { FLASHER_PXE_TOKEN: token },
      }),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

run('with the token of its boot it is flashed, and tells all of it', async () => {
  await using fixture = await openWizardContext()
  const box = await fixture.drive(fixture.token)
  assert.equal(box.outcome, { kind: 'exit', code: 0 })
  assert.ok((await readDisk(fixture.loop.device, 0, IMAGE.length)).equals(IMAGE))
  const { result, phases } = await runOf(fixture.server)
  assert.equal([result, phases.startsWith('started')], ['done', true])
  assert.ok((await fixture.server.machines.find(MAC))?.last_flashed_at)
})

run('without one, or with an old one, nothing is written, and the screen says why', async () => {
  await using fixture = await openWizardContext()
  const bare = await fixture.drive('')
  assert.is(bare.outcome.kind, 'interactive')
  assert.match(JSON.stringify(bare), /no boot token/)
  await fixture.server.arm({ boot_mode: 'flasher-flash-always', ...TARGET })
  const late = await fixture.drive(fixture.token)
  assert.is(late.outcome.kind, 'interactive')
  assert.match(JSON.stringify(late), /the machine was changed since/)
  assert.ok((await readDisk(fixture.loop.device, 0, 4096)).every((byte) => byte === 0))
  assert.is((await fixture.server.machines.find(MAC))?.last_flashed_at, null)
})

const serveUefi = () =>
  startHostileServer((request, response) => {
    response.writeHead(200, { 'content-length': IMAGE.length })
    response.end(request.method === 'HEAD' ? '' : IMAGE)
  })

for (const [setting, answer, words] of [
  ['yes', { ok: true, value: 'it boots once' }, 'UEFI: it boots once.'],
  [
    '1',
    { ok: false, refusal: 'no UEFI here' },
    /^UEFI: no one-shot boot of \/dev\/loop\d+: no UEFI here\.$/,
  ],
] as const) {
  run(`the firmware is asked (${words}), and the flash is done either way`, async () => {
    await using images = await serveUefi()
    await using server = await openServer([entryOf(`${images.origin}/debian.img`)])
    await using loop = await createLoop({ megabytes: 16 })
    await server.arm({ boot_mode: 'flasher-flash-once', ...TARGET })
    const asked: string[] = []
    const bootOnce = async ({ node }: { readonly node: string }) => {
      asked.push(node)
      return answer
    }
    const box = await driveMachine({
      server: server.url,
      places: { [PLACE]: loop.device },
      env: { FLASHER_REGISTER_UEFI_BOOT: setting },
      parts: { nvram: { bootOnce } },
    })
    assert.equal(box.outcome, { kind: 'exit', code: 0 })
    assert.equal(asked, [loop.device])
    assert.ok(
      box.said.some((line) => (typeof words === 'string' ? line === words : words.test(line))),
    )
    assert.is((await runOf(server)).phases, 'started write verify sync uefi done')
  })
}

/** A cache service that holds one image, which is as long as its catalog says, or cut off. */
const startCache = (isCut: () => boolean, sha256: string | null) =>
  startHostileServer((request, response) => {
    if (request.url?.startsWith('/catalog') === true) {
      const src = 'https://images.invalid/debian-13.img'
      const entry = { name: 'debian-13.img', src, format: 'img', sha256, size_bytes: IMAGE.length }
      response.end(JSON.stringify({ entries: [{ ...entry, resolved_src: src }] }))
      return
    }
    response.writeHead(200, { 'content-length': IMAGE.length })
    if (request.method === 'HEAD') response.end()
    else if (isCut()) response.write(IMAGE.subarray(0, 2 ** 20), () => response.destroy())
    else response.end(IMAGE)
  })

interface Failure {
  readonly isCut?: boolean
  readonly sha256?: string
  readonly device: string
}

/** Arms the machine, lets it flash, and reads its page. */
async function fail({ isCut = false, sha256, device }: Failure) {
  await using cache = await startCache(() => isCut, sha256 ?? null)
  await using home = await createServerHome()
  await using server = await home.start([], { FLASHER_WITHCACHE_URL: cache.origin })
  const { cookie } = await login(server.url, passwordIn(server.stdout()))
  const headers = { cookie, 'content-type': 'application/json' }
  const read = async (path: string) =>
    await (await fetch(`${server.url}${path}`, { headers })).text()
  const ref = /"ref":\s*"([0-9a-f]{64})"/.exec(await waitFor(() => read('/images'), /"ref"/))?.[1]
  const body = JSON.stringify({
    boot_mode: 'flasher-flash-once',
    bty_image_ref: ref,
    target_disk_serial: `path:${PLACE}`,
  })
  await fetch(`${server.url}/machines/${MAC}`, { method: 'PUT', headers, body })
  const box = await driveMachine({ server: server.url, places: { [PLACE]: device } })
  return { box, page: textOf(await read(`/ui/machines/${MAC}`)) }
}

async function waitFor(look: () => Promise<string>, pattern: RegExp): Promise<string> {
  for (let tries = 0; tries < 3000; tries += 1) {
    const text = await look()
    if (pattern.test(text)) return text
    await new Promise((resolve) => {
      setTimeout(resolve, 20)
    })
  }
  throw new Error(`never saw ${pattern}`)
}

const textOf = (html: string) =>
  html
    .replaceAll(/<[^>]+>/g, ' ')
    .replaceAll('&#39;', "'")
    .replaceAll('&quot;', '"')
    .replaceAll(/\s+/g, ' ')

run('an image that is cut off', async () => {
  await using loop = await createLoop({ megabytes: 16 })
  const { box, page } = await fail({ isCut: true, device: loop.device })
  assert.match(noticeOf(box), /failed: .*debian-13\.img/)
  assert.match(page, /failed/i)
  assert.match(page, /debian-13\.img.*connection closed/)
})

run('a wrong digest', async () => {
  await using loop = await createLoop({ megabytes: 16 })
  const { box, page } = await fail({ sha256: 'b'.repeat(64), device: loop.device })
  assert.match(noticeOf(box), /is not the expected image/)
  assert.match(page, /is not the expected image/)
})

run('a disk that fails to write', async () => {
  await using disk = await createFaultyDisk({
    nbdkit: ['--filter=error', ...inMemory(16), 'error-pwrite=EIO', 'error-pwrite-rate=100%'],
  })
  const { box, page } = await fail({ device: disk.device })
  assert.match(noticeOf(box), /failed: .*(I\/O|input\/output|EIO)/i)
  assert.match(page, /(I\/O|input\/output|EIO)/i)
})

test.run()
