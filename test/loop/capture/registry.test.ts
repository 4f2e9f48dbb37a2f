/** Captures that go to a real registry, also over connections that break. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { makeNoise } from '#test/support/disk/disk-images.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { openCuttingProxy } from '#test/support/http/cutting-proxy.ts'
import { startRegistry } from '#test/support/http/registry.ts'
import { runFlasher } from '#test/support/terminal/flasher.ts'

const test = suite('captures in a registry')
const run = $({ quiet: true })
const MIB = 1 << 20

/** A disk that hardly gets smaller. */
async function makeSource() {
  const loop = await createLoop({ megabytes: 24 })
  await writeFile(loop.backing, makeNoise(24 * MIB, 9))
  return loop
}

test('a disk is stored under a new tag, verified, and flashed from there', async () => {
  await using registry = await startRegistry()
  await using source = await makeSource()
  const output = `oras://${registry.host}/lab/web:v1`
  const argv = ['capture', '--source', source.device, '--output', output]
  const looked = await runFlasher([...argv, '--dry-run'])
  assert.is(looked.code, 0, looked.stderr)
  const catalog = await fetch(`http://${registry.host}/v2/_catalog`)
  assert.equal(await catalog.json(), { repositories: [] })
  const { code, stdout, stderr } = await runFlasher([...argv, '--json'])
  assert.is(code, 0, stderr)
  const { captured } = JSON.parse(stdout)
  assert.match(captured.pinned, /^oras:.*@sha256:[0-9a-f]{64}$/)
  const raw =
    await run`skopeo inspect --raw --tls-verify=false ${`docker://${registry.host}/lab/web:v1`}`
  const { layers } = JSON.parse(raw.stdout)
  assert.equal(layers[0].digest, `sha256:${captured.sha256}`)
  assert.equal(layers[0].annotations['vnd.flasher.index_sha256'], captured.index_sha256)
  await using target = await createLoop({ megabytes: 24 })
  const order = ['flash', '--image', captured.pinned, '--target', target.device, '--yes']
  const flashed = await runFlasher([...order, '--format', 'img.zst'])
  assert.is(flashed.code, 0, flashed.stderr)
  await run`cmp ${source.device} ${target.device}`
  // The disk is not read for a name that is taken.
  const again = await runFlasher(argv)
  assert.is(again.code, 1)
  assert.match(again.stderr, /lab\/web:v1 exists already/)
})

test('where the registry forgets what was cut, the disk is read again, and not for ever', async () => {
  await using registry = await startRegistry()
  await using source = await makeSource()
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-registry-'))
  for (const [cuts, tag] of [
    [2, 'two'],
    [100, 'many'],
  ] as const) {
    await using proxy = await openCuttingProxy(`http://${registry.host}`, 3 * MIB, cuts)
    const host = proxy.origin.slice('http://'.length)
    const output = `oras://${host}/lab/web:${tag}`
    const argv = ['capture', '--source', source.device, '--output', output, '--json']
    const { code, stdout, stderr } = await runFlasher(argv)
    if (tag === 'many') {
      assert.is(code, 1)
      assert.match(stderr, /the registry lost the upload 3 times/)
      continue
    }
    assert.is(code, 0, stderr)
    assert.match(stderr, /the disk is read again/)
    const { captured } = JSON.parse(stdout)
    const blob = await fetch(`http://${registry.host}/v2/lab/web/blobs/sha256:${captured.sha256}`)
    const file = join(folder.path, 'web.img.zst')
    await writeFile(file, Buffer.from(await blob.arrayBuffer()))
    await run`zstd -qdf ${file} -o ${join(folder.path, 'raw')}`
    await run`cmp ${join(folder.path, 'raw')} ${source.backing}`
  }
})

test.run()
