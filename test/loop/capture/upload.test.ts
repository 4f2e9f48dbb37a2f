/** Captures that are uploaded to a real cache: by a person, over connections that break, and as a server orders. */
import { copyFileSync, mkdirSync } from 'node:fs'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { openCaptureLab } from '#test/support/capture/uploads.ts'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { openCuttingProxy } from '#test/support/http/cutting-proxy.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'
import { driveMachine, MAC, openServer, runOf } from '#test/support/terminal/remote-fixture.ts'

const test = suite('uploaded captures')
const run = $({ quiet: true })
const MIB = 1 << 20
const NAME = 'web 42.img.zst'

/** A disk that hardly gets smaller. */
async function makeSource() {
  const loop = await createLoop({ megabytes: 48 })
  await writeFile(loop.backing, makeNoise(48 * MIB, 9))
  return loop
}

async function operatorToken(lab: Awaited<ReturnType<typeof openCaptureLab>>, name: string) {
  const { status, body } = await lab.operator.post('/captures/tokens', { name })
  assert.is(status, 201)
  return { url: String(body['url']), token: String(body['token']) }
}

test('by hand, over connections that break: verified, accepted, and the same as the disk', async () => {
  await using lab = await openCaptureLab()
  await using source = await makeSource()
  await using proxy = await openCuttingProxy(lab.base, 3 * MIB, 8)
  const { url, token } = await operatorToken(lab, NAME)
  const output = url.replace(new URL(url).origin, proxy.origin)
  const argv = ['capture', '--source', source.device, '--output', output, '--json']
  const ended = await runFlasher(argv, { env: { FLASHER_UPLOAD_TOKEN: token } })
  assert.is(ended.code, 0, ended.stderr)
  assert.is(proxy.cuts(), 8)
  const { captured } = JSON.parse(ended.stdout)
  const { captures } = Object((await lab.operator.ask('GET', '/captures')).body)
  const [{ id, status, sha256, index_sha256, source: from }] = captures
  assert.equal(
    [status, sha256, index_sha256, from.disk.size_bytes],
    ['waiting', captured.sha256, captured.index_sha256, 48 * MIB],
  )
  assert.is((await lab.operator.post(`/captures/${id}/accept`, {})).status, 201)
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-upload-'))
  const raw = join(folder.path, 'raw')
  await run`zstd -qdf ${join(lab.folder, NAME)} -o ${raw}`
  await run`cmp ${raw} ${source.backing}`
  const again = await runFlasher([...argv, '--token', token])
  assert.is(again.code, 1)
  assert.match(again.stderr, 'the image cannot be uploaded: HTTP 401')
})

test('without a token, or with a wrong one, nothing is read', async () => {
  await using lab = await openCaptureLab()
  await using source = await createLoop({ megabytes: 8 })
  const output = `${lab.base}/captures/a.img.zst`
  const argv = ['capture', '--source', source.device, '--output', output]
  const none = await runFlasher(argv)
  assert.is(none.code, 2)
  assert.match(none.stderr, 'an upload requires a token')
  const wrong = await runFlasher([...argv, '--token', 'x'.repeat(80)])
  assert.is(wrong.code, 1)
  assert.match(wrong.stderr, 'HTTP 401')
  const { captures } = Object((await lab.operator.ask('GET', '/captures')).body)
  assert.equal(captures, [])
})

const PLACE = 'pci-0000:00:05.0'

/** Server and cache with one key, and a machine whose disk was set to be captured. */
async function openOrdered(serial: string) {
  const stack = new AsyncDisposableStack()
  const server = stack.use(await openServer([]))
  const lab = stack.use(
    await openCaptureLab({
      prepare(folder) {
        mkdirSync(join(folder, '.cache'))
        copyFileSync(join(server.dir, 'session-secret'), join(folder, '.cache/secret'))
      },
    }),
  )
  server.set({ FLASHER_WITHCACHE_URL: lab.base })
  await server.arm({ boot_mode: 'ipxe-exit' })
  const ordered = await server.ask(`/machines/${MAC}/capture`, {
    name: NAME,
    disk_serial: serial,
    generalize: false,
  })
  assert.is(ordered.status, 200, await ordered.text())
  return { server, lab, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('as the server orders: captured, uploaded, reported, restarted', async () => {
  await using site = await openOrdered(`path:${PLACE}`)
  const { server, lab } = site
  await using source = await makeSource()
  const box = await driveMachine({ server: server.url, places: { [PLACE]: source.device } })
  assert.equal(box.outcome, { kind: 'exit', code: 0 }, box.said.join('\n'))
  assert.is(box.reboots, 1)
  const told = await runOf(server)
  assert.equal([told.mode, told.result, told.bytes_written], ['capture', 'done', 48 * MIB])
  assert.is(told.phases, 'started write verify done')
  assert.equal(told.disk, { path: source.device, serial: `path:${PLACE}` })
  assert.is((await server.machines.find(MAC))?.capture?.result, 'done')
  const { captures } = Object((await lab.operator.ask('GET', '/captures')).body)
  assert.equal([captures[0].name, captures[0].status], [NAME, 'waiting'])
  assert.is(captures[0].source.mac, MAC)
})

test('a disk that is in use ends the capture with the reason and a log', async () => {
  await using site = await openOrdered(`path:${PLACE}`)
  const { server } = site
  await using source = await createLoop({ megabytes: 16 })
  await using at = await mkdtempDisposable(join(tmpdir(), 'flasher-mounted-'))
  await run`mkfs.ext4 -q ${source.device}`
  await run`mount ${source.device} ${at.path}`
  try {
    const box = await driveMachine({ server: server.url, places: { [PLACE]: source.device } })
    const notice = box.outcome.kind === 'interactive' ? box.outcome.start.notice : null
    assert.match(notice ?? '', /source has mounted partitions/)
  } finally {
    await run`umount ${at.path}`
  }
  const told = await runOf(server)
  assert.equal([told.mode, told.result], ['capture', 'failed'])
  assert.match(told.reason ?? '', /source has mounted partitions/)
  assert.match(told.log, /source has mounted partitions/)
  assert.is((await server.machines.find(MAC))?.capture?.result, 'failed')
})
test.run()
