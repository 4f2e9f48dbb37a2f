import { createHash } from 'node:crypto'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { toRegistry } from '#engine/capture/registry-sink.ts'
import { parseOrasRef } from '#kit/net/registry/rules/oras.ts'
import { makeBytes } from '#test/support/collect.ts'
import { startUploadRegistry } from '#test/support/http/upload-registry.ts'

const test = suite('captures that go to a registry')
const BYTES = makeBytes(300_000)
const SHA256 = createHash('sha256').update(BYTES).digest('hex')
/** What the writer of frames says of them. */
const FRAMES = {
  imageBytes: BYTES.length,
  storedBytes: BYTES.length,
  frames: 1,
  zeroFrames: 0,
  imageSha256: null,
  indexSha256: '1'.repeat(64),
  sha256: SHA256,
}

for (const hasRanges of [true, false]) {
  test(`one ${hasRanges ? 'with' : 'without'} ranges: whether nothing was read back is said`, async () => {
    await using registry = await startUploadRegistry((request, response, { blobs }) => {
      const held = blobs.get(`sha256:${SHA256}`)
      if (hasRanges || request.headers.range === undefined || held === undefined) return false
      response.end(held)
      return true
    })
    const { host } = registry
    const ref = parseOrasRef(`oras://${host}/lab/disk:v1`)
    if (!ref.ok) throw new Error(ref.refusal)
    const heard: string[] = []
    const sink = toRegistry({
      ref: ref.value,
      env: { FLASHER_REGISTRY_HTTP: host },
      signal: new AbortController().signal,
      retryMs: 1,
      onAgain: () => heard.push('again'),
      onUnread: () => heard.push('unread'),
      onStored: () => heard.push('stored'),
    })
    await sink(async (put) => {
      await put(BYTES)
      return FRAMES
    })
    assert.equal(heard, hasRanges ? ['stored'] : ['unread', 'stored'])
    assert.ok(registry.blobs.get(`sha256:${SHA256}`)?.equals(BYTES))
  })
}

test.run()
