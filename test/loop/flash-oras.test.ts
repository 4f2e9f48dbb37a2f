import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeContent, pipeThrough } from '../support/disk/compressed.ts'
import { runFlasher } from '../support/terminal/flasher.ts'
import { startHostileServer, sendFile } from '../support/http/hostile-server.ts'
import { createLoop } from '../support/disk/loop.ts'
import { digestOf, pushImage, startRegistry } from '../support/http/registry.ts'

const test = suite('flash from a registry')
const CONTENT = makeContent(4 * 1024 * 1024)
const PACKED = pipeThrough(['zstd', '-c', '-q'], CONTENT)

async function readStart(device: string, length: number): Promise<Buffer> {
  await using file = await open(device, 'r')
  const into = Buffer.alloc(length)
  await file.read(into, 0, length, 0)
  return into
}

test('--image oras://…: the layer is written, and its digest is the one in the result', async () => {
  await using registry = await startRegistry()
  await using loop = await createLoop()
  await pushImage(registry, 'lab/disk:v1', [
    { bytes: PACKED, title: 'disk.img.zst' },
    { bytes: Buffer.from('x'), title: 'disk.img.zst.sha256' },
  ])
  const image = `oras://${registry.host}/lab/disk:v1`
  const flags = ['--yes', '--progress', 'none', '--json']
  const argv = ['flash', '--image', image, '--target', loop.device, ...flags]
  const { code, stdout, stderr } = await runFlasher(argv)
  assert.is(code, 0, stderr)
  assert.ok(CONTENT.equals(await readStart(loop.device, CONTENT.length)))
  assert.ok(stdout.includes(createHash('sha256').update(PACKED).digest('hex')))
})

test('a registry that sends other bytes than its manifest says: no disk that could boot', async () => {
  const layer = {
    digest: digestOf(CONTENT),
    size: PACKED.length,
    annotations: { 'org.opencontainers.image.title': 'disk.img.zst' },
  }
  await using registry = await startHostileServer((request, response) => {
    if (request.url?.includes('/manifests/') === true) {
      response.end(JSON.stringify({ layers: [layer] }))
    } else sendFile(PACKED, request, response)
  })
  await using loop = await createLoop()
  const host = registry.origin.slice('http://'.length)
  const argv = ['flash', '--image', `oras://${host}/lab/disk:v1`, '--target', loop.device, '--yes']
  const { code, stderr } = await runFlasher(argv, { env: { FLASHER_REGISTRY_HTTP: host } })
  assert.is.not(code, 0)
  assert.match(stderr, new RegExp(layer.digest.slice(7)))
  assert.ok(Buffer.alloc(512).equals(await readStart(loop.device, 512)))
})

test.run()
