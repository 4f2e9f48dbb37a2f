import { stat } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  captureClient,
  MAC,
  makeCapture,
  makeSigner,
  uploadCapture,
} from '#test/support/capture/uploads.ts'
import { makeFolder, startCache, until } from '#test/support/server/image-cache.ts'

const test = suite('cache: captured images, when the cache is killed')
const IMAGE = await makeCapture()
const { file: FILE, end: END } = IMAGE
const PART = 1_000_000
const NAME = 'web-42.img.zst'

/** The real program, with the key of a server in its state directory. */
async function startLab(state: string) {
  const program = await startCache(state)
  const sign = await makeSigner(join(state, 'session-secret'))
  return { program, sign, operator: captureClient(program.base, program.token) }
}

test('a cache that is killed while a part arrives goes on at what was safe', async () => {
  await using state = await makeFolder()
  let id = ''
  let token = ''
  {
    const { program, sign } = await startLab(state.path)
    await using _ = program
    token = sign(NAME)
    const machine = captureClient(program.base, token)
    id = String((await machine.begin(NAME)).body['id'])
    await machine.send(id, 0, FILE.subarray(0, PART))
    const cut = request(`${program.base}/captures/${id}`, {
      method: 'PATCH',
      headers: {
        authorization: `Bearer ${token}`,
        'upload-offset': PART,
        'content-length': FILE.length - PART,
      },
    }).on('error', () => undefined)
    cut.write(FILE.subarray(PART, 2 * PART))
    const file = join(state.path, 'cache/.cache/captures', id)
    await until(async () => (await stat(file)).size > PART)
    await program.kill('SIGKILL')
  }
  const { program, operator } = await startLab(state.path)
  await using _ = program
  const machine = captureClient(program.base, token)
  assert.is(await machine.offset(id), String(PART))
  assert.is((await machine.begin(NAME)).body['id'], id)
  assert.is((await machine.send(id, PART, FILE.subarray(PART))).status, 204)
  assert.is((await machine.finish(id, END)).status, 200)
  assert.is((await operator.post(`/captures/${id}/accept`, {})).status, 201)
})

test('a cache that is killed after the end still has what waits, and accepts it once', async () => {
  await using state = await makeFolder()
  let id = ''
  let token = ''
  {
    const { program, sign } = await startLab(state.path)
    await using _ = program
    token = sign(NAME)
    id = await uploadCapture(captureClient(program.base, token), NAME, IMAGE, ['SSH host keys'])
    await program.kill('SIGKILL')
  }
  const { program, operator } = await startLab(state.path)
  await using _ = program
  const { captures } = Object((await operator.ask('GET', '/captures')).body)
  assert.equal(
    [captures[0].status, captures[0].source.mac, captures[0].warnings],
    ['waiting', MAC, ['SSH host keys']],
  )
  assert.is((await captureClient(program.base, token).finish(id, END)).status, 200)
  assert.is((await operator.post(`/captures/${id}/accept`, {})).status, 201)
  await program.kill('SIGKILL')
  const again = await startLab(state.path)
  await using __ = again.program
  assert.is((await captureClient(again.program.base, token).begin(NAME)).status, 401)
  const { entries } = Object((await again.operator.ask('GET', '/catalog?all')).body)
  assert.equal(
    [entries.length, entries[0].sha256, entries[0].index_sha256],
    [1, END.sha256, END.index_sha256],
  )
})

test.run()
