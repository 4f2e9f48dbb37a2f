/** Uploads to a disk that has not got the room, on a file system of its own. */
import { readdir } from 'node:fs/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { createEarlierServer } from '#test/support/server/earlier-server.ts'

const test = suite('uploads to a full disk')
const run = $({ quiet: true, verbose: false })

test('an upload that says nothing of its length fails when the disk is full, and leaves nothing', async () => {
  await using server = await createEarlierServer()
  await using undo = new AsyncDisposableStack()
  await run`mount -t tmpfs -o size=64m tmpfs ${server.images}`
  undo.defer(async () => {
    await run`umount ${server.images}`
  })
  const ask = await server.operator()
  await server.putImage('a.img', 'whole')
  const endless = new ReadableStream({
    pull(controller) {
      controller.enqueue(new Uint8Array(2 ** 20))
    },
  })
  const init: RequestInit & { duplex: 'half' } = { method: 'PUT', body: endless, duplex: 'half' }
  const answer = await ask('/images/a.img', init)
  assert.is(answer.status, 507)
  assert.match((await answer.json()).detail, /free/)
  assert.is(await (await ask('/images/a.img')).text(), 'whole')
  assert.equal(await readdir(server.images), ['a.img'])
})

test.run()
