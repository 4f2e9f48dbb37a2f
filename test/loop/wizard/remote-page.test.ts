/** What an operator sees on the machine's page while machines fail: the whole server, as a process. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'
import { createFaultyDisk, inMemory } from '#test/support/disk/faulty-disk.ts'
import { createServerHome, login, passwordIn } from '#test/support/server/flasher-web.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { driveMachine, MAC, type Driven } from '#test/support/terminal/remote-fixture.ts'

const test = suite('the page of a driven machine')
const run = process.getuid?.() === 0 ? test : test.skip

const IMAGE = makeDiskImage(6 * 2 ** 20)
const PLACE = 'pci-0000:00:05.0'

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

const noticeOf = ({ outcome }: Driven) =>
  outcome.kind === 'interactive' ? (outcome.start.notice ?? '') : `exit ${outcome.code}`

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
  assert.match(noticeOf(box), /is not the image asked for/)
  assert.match(page, /is not the image asked for/)
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
