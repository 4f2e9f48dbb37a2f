import { execFileSync } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blobKeyOf } from '../../runtime/engine/catalog/rules/cache-entry.ts'
import { IMAGE_MANIFEST } from '../../runtime/kit/net/registry/rules/image-manifest.ts'
import { makeBytes } from '../support/collect.ts'
import { digestOf, pushImage, startRegistry } from '../support/http/registry.ts'
import { bring, makeFolder, openCache, QUIET, until } from '../support/server/image-cache.ts'

const test = suite('cache: tags for images in use')
const BYTES = makeBytes(1_500_000)
const DIGEST = digestOf(BYTES)
const TAG = `pin-${DIGEST.slice('sha256:'.length)}`

/** A log whose lines can be looked at. */
function listen() {
  const lines: string[] = []
  const note = (line: string) => void lines.push(line)
  return { lines, log: { ...QUIET, info: note, warn: note } }
}

const keyFor = (src: string) => blobKeyOf(src) ?? ''
const quick = { isEnabled: () => true, tickMs: 10, retryMs: 1 }

async function listTags(host: string): Promise<readonly string[]> {
  const answer = await fetch(`http://${host}/v2/lab/disk/tags/list`)
  const { tags } = Object(await answer.json())
  return tags.toSorted()
}

test('an image in use gets a tag that survives garbage collection, and a refused removal is said', async () => {
  await using folder = await makeFolder()
  await using registry = await startRegistry()
  const { lines, log } = listen()
  await using cache = await openCache(folder.path, { log, registryPins: { ...quick, env: {} } })
  await pushImage(registry, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img.zst' }])
  const src = `oras://${registry.host}/lab/disk:v1`
  await bring(cache, { src, name: '../a/b' })
  assert.equal(await listTags(registry.host), ['v1'])
  await cache.pin('server', [keyFor(src)], [3])
  await until(() => lines.some((line) => line.includes(`${TAG} keeps`)))
  assert.equal(await listTags(registry.host), [TAG, 'v1'].toSorted())
  const kept = await fetch(`http://${registry.host}/v2/lab/disk/manifests/${TAG}`, {
    headers: { accept: IMAGE_MANIFEST },
  })
  const { annotations, layers } = Object(await kept.json())
  // Who removes it by its digest takes no tag along that a push has made.
  assert.is(annotations['vnd.flasher.keeps'], 'in-use')
  assert.is(layers[0].annotations['org.opencontainers.image.title'], '__a_b')

  // The tag of the image moves on, and what no tag names is collected.
  await pushImage(registry, 'lab/disk:v1', [{ bytes: makeBytes(9000, 2), title: 'disk.img.zst' }])
  const config = `${registry.folder}/config.yml`
  execFileSync('docker-registry', ['garbage-collect', '--delete-untagged', config])
  const blob = await fetch(`http://${registry.host}/v2/lab/disk/blobs/${DIGEST}`)
  assert.ok(BYTES.equals(Buffer.from(await blob.arrayBuffer())))

  await cache.pin('server', [], [])
  await until(() => lines.some((line) => line.includes('does not let')))
  assert.match(lines.join('\n'), new RegExp(`${TAG} be removed \\(HTTP 405.*remove it there`))
})

test('off unless it is enabled, and a registry that cannot be written is one line', async () => {
  await using registry = await startRegistry()
  await using readOnly = await startRegistry({ readOnly: true, over: registry })
  await pushImage(registry, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img.zst' }])
  const src = `oras://${readOnly.host}/lab/disk:v1`
  for (const isEnabled of [false, true]) {
    await using folder = await makeFolder()
    const { lines, log } = listen()
    const registryPins = { ...quick, env: {}, isEnabled: () => isEnabled }
    await using cache = await openCache(folder.path, { log, registryPins })
    await bring(cache, { src })
    await cache.pin('server', [keyFor(src)], [1])
    if (isEnabled) await until(() => lines.length > 0)
    // The next twenty looks at it say nothing more.
    await sleep(200)
    const said = lines.filter((line) => line.includes(TAG))
    assert.is(said.length, isEnabled ? 1 : 0)
    if (isEnabled)
      assert.match(said[0] ?? '', /cannot be kept as .*refused the manifest \(HTTP 405/)
  }
  assert.equal(await listTags(registry.host), ['v1'])
})

test('a registry that is gone does not keep the others waiting for each of its images', async () => {
  await using folder = await makeFolder()
  await using other = await startRegistry()
  const { lines, log } = listen()
  const registryPins = { ...quick, retryMs: 0, env: {} }
  await using cache = await openCache(folder.path, { log, registryPins })
  const sources: string[] = []
  {
    await using gone = await startRegistry()
    for (const tag of ['v1', 'v2', 'v3']) {
      const bytes = makeBytes(9000, sources.length)
      await pushImage(gone, `lab/disk:${tag}`, [{ bytes, title: 'disk.img.zst' }])
      sources.push(`oras://${gone.host}/lab/disk:${tag}`)
      await bring(cache, { src: sources.at(-1) })
    }
  }
  await pushImage(other, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img.zst' }])
  sources.push(`oras://${other.host}/lab/disk:v1`)
  await bring(cache, { src: sources.at(-1) })
  await cache.pin(
    'server',
    sources.map(keyFor),
    sources.map(() => 1),
  )
  await until(() => lines.some((line) => line.includes(`${TAG} keeps`)))
  const before = lines.slice(
    0,
    lines.findIndex((line) => line.includes(`${TAG} keeps`)),
  )
  assert.is(before.filter((line) => line.includes('cannot be kept')).length, 1, before.join('\n'))
})

test.run()
