/** How long an upload waits for a cache that is busy with it. */
import { createServer } from 'node:http'
import { once } from 'node:events'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { toUpload } from '#engine/capture/upload-client.ts'

const test = suite('upload client')

test('a cache that verifies uses up no patience', async () => {
  let finishes = 0
  await using server = createServer((request, response) => {
    const isFinish = request.url?.endsWith('/finish') === true
    if (isFinish) finishes += 1
    request.resume().on('end', () => {
      response.statusCode = isFinish && finishes < 4 ? 202 : 200
      response.end('{"id":"one"}')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const disk = { path: '/dev/sda', model: null, serial: null, size_bytes: 512 }
  const sink = toUpload(
    {
      base: `http://127.0.0.1:${port}/captures`,
      token: 'token',
      name: 'a.img.zst',
      source: { disk },
      env: {},
      signal: new AbortController().signal,
      retryMs: 1,
      patienceMs: 0,
    },
    [],
  )
  const frames = {
    storedBytes: 1,
    imageBytes: 512,
    frames: 1,
    zeroFrames: 1,
    sha256: 'a'.repeat(64),
    imageSha256: 'b'.repeat(64),
    indexSha256: 'c'.repeat(64),
  }
  assert.is(await sink(async () => frames), frames)
  assert.is(finishes, 4)
})
test.run()
