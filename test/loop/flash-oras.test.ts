import { createHash } from 'node:crypto'
import { mkdtempDisposable, open, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeContent, pipeThrough } from '#test/support/disk/compressed.ts'
import { FLASHER, runFlasher } from '#test/support/terminal/flasher.ts'
import { EXITED, openTerminal } from '#test/support/terminal/tmux.ts'
import { startHostileServer, sendFile } from '#test/support/http/hostile-server.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { digestOf, pushImage, startRegistry } from '#test/support/http/registry.ts'

const test = suite('flash from a registry')
const MIB = 1 << 20
const CONTENT = makeContent(4 * MIB)
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

test('two images for one processor: a terminal asks which one, and a pipe refuses', async () => {
  await using registry = await startTwins([Buffer.alloc(MIB, 1), CONTENT])
  await using loop = await createLoop()
  const env = { FLASHER_REGISTRY_HTTP: registry.host }
  const image = `oras://${registry.host}/lab/disk:v1`
  const argv = ['flash', '--image', image, '--target', loop.device, '--yes']
  const refused = await runFlasher(argv, { env })
  assert.is(refused.code, 2, refused.stderr)
  for (const digest of registry.digests) assert.match(refused.stderr, digest)
  await using terminal = await openTerminal([process.execPath, FLASHER, ...argv], {
    env,
    columns: 120,
  })
  await terminal.waitFor('Which one should be flashed?')
  await terminal.press('Down', 'Enter')
  await terminal.waitFor(`${EXITED}0`)
  assert.ok(CONTENT.equals(await readStart(loop.device, CONTENT.length)))
  await using other = await openTerminal([process.execPath, FLASHER, ...argv], { env })
  const shown = (await other.waitFor('Which one should be flashed?')).join('\n')
  for (const digest of registry.digests) assert.match(shown, digest)
  await other.press('C-c')
  await other.waitFor(`${EXITED}130`)
})

/** A registry whose index has two raw images for one processor. */
async function startTwins(images: readonly Buffer[]) {
  const title = { 'org.opencontainers.image.title': 'disk.img' }
  const twins = images.map((bytes) => {
    const digest = digestOf(bytes)
    const layers = [{ digest, size: bytes.length, annotations: title }]
    return { bytes, digest, manifest: JSON.stringify({ layers }) }
  })
  const manifests = twins.map(({ manifest }) => ({ digest: digestOf(manifest) }))
  const platform = { os: 'linux', architecture: process.arch === 'x64' ? 'amd64' : process.arch }
  const index = JSON.stringify({ manifests: manifests.map((each) => ({ ...each, platform })) })
  const server = await startHostileServer((request, response) => {
    const name = request.url?.split('/').at(-1)
    const blob = twins.find(({ digest }) => digest === name)
    const twin = twins.find(({ manifest }) => digestOf(manifest) === name)
    if (blob !== undefined) sendFile(blob.bytes, request, response)
    else response.end(twin?.manifest ?? index)
  })
  return {
    host: server.origin.slice('http://'.length),
    digests: manifests.map(({ digest }) => digest),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

test('what was pushed is flashed, by its tag and by its digest', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-oras-'))
  await using registry = await startRegistry()
  const plain = join(folder.path, 'disk.img')
  await writeFile(plain, CONTENT)
  const reference = `oras://${registry.host}/lab/disk:v1`
  const env = { TMPDIR: folder.path }
  const argv = ['push', plain, reference, '--format', 'img', '--json']
  const pushed = await runFlasher(argv, { env })
  assert.is(pushed.code, 0, pushed.stderr)
  for (const image of [reference, String(JSON.parse(pushed.stdout).pushed.pinned)]) {
    await using loop = await createLoop()
    const order = ['flash', '--image', image, '--target', loop.device, '--yes', '--delta']
    const { code, stderr, stdout } = await runFlasher([...order, '--json'])
    assert.is(code, 0, stderr)
    assert.ok(CONTENT.equals(await readStart(loop.device, CONTENT.length)))
    assert.not.match(stdout, /untrusted|no-index/)
  }
})

/** A registry with one image in frames; it counts the requests for all of the image at once. */
async function startCounting(image: Buffer, indexSha256: string) {
  const layer = {
    digest: digestOf(image),
    size: image.length,
    annotations: {
      'org.opencontainers.image.title': 'disk.img.zst',
      'vnd.flasher.index_sha256': indexSha256,
    },
  }
  const manifest = JSON.stringify({ layers: [layer] })
  const server = await startHostileServer((request, response) => {
    if (request.url?.includes('/manifests/') === true) response.end(manifest)
    else sendFile(image, request, response)
  })
  return {
    host: server.origin.slice('http://'.length),
    manifest: digestOf(manifest),
    countWhole: () =>
      server.seen.filter(
        ({ method, url, headers }) =>
          method === 'GET' && url.includes('/blobs/') && headers.range === undefined,
      ).length,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

test('the digest of the index in the manifest: frames are read by range, unless it may be a lie', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-oras-'))
  const [plain, packed] = [join(folder.path, 'disk.img'), join(folder.path, 'disk.img.zst')]
  await writeFile(plain, CONTENT)
  const made = await runFlasher(['pack', plain, '--output', packed, '--format', 'img', '--json'])
  assert.is(made.code, 0, made.stderr)
  const { sha256, index_sha256: index } = JSON.parse(made.stdout).packed
  const image = await readFile(packed)
  await using registry = await startCounting(image, index)
  await using liar = await startCounting(image, 'f'.repeat(64))
  const flash = async (from: typeof registry, version: string, more: readonly string[] = []) => {
    await using loop = await createLoop()
    const before = from.countWhole()
    const reference = `oras://${from.host}/lab/disk${version}`
    const argv = ['flash', '--image', reference, '--target', loop.device, '--yes', ...more]
    const { code, stderr } = await runFlasher(argv, { env: { FLASHER_REGISTRY_HTTP: from.host } })
    const found = await readStart(loop.device, CONTENT.length)
    return { code, stderr, isSame: found.equals(CONTENT), whole: from.countWhole() - before }
  }
  const given = ['--sha256', sha256]
  const rows = [
    [registry, ':v1', [], 0],
    [registry, `@${registry.manifest}`, given, 0],
    // What this manifest says of the index could be of another image than the one asked for.
    [registry, ':v1', given, 1],
    [liar, ':v1', given, 1],
    [liar, ':v1', ['--index-sha256', index], 0],
  ] as const
  for (const [from, version, more, whole] of rows) {
    const { stderr, ...ended } = await flash(from, version, more)
    assert.equal(ended, { code: 0, isSame: true, whole }, stderr)
  }
  const lied = await flash(liar, ':v1')
  assert.equal([lied.code, lied.isSame], [1, false])
  assert.match(lied.stderr, /another index than the one asked for/)
})

test.run()
