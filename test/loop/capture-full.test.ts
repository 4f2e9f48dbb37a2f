import { execFileSync } from 'node:child_process'
import { stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeCapture, openCaptureLab } from '../support/capture/uploads.ts'
import { until } from '../support/server/image-cache.ts'

const test = suite('cache: captured images on a full disk')
const MIB = 2 ** 20
const { file: FILE, end: END } = await makeCapture(24 * MIB)
const NAME = 'web-42.img.zst'
const PART = 8 * MIB

/** The cache's folder on a file system of its own, so that it can be full. */
async function openFull(mebibytes: number) {
  const lab = await openCaptureLab({
    prepare(folder) {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', folder])
    },
    leave(folder) {
      execFileSync('umount', [folder])
    },
  })
  const token = lab.sign(NAME)
  return { lab, token, machine: lab.machine(token) }
}

test('a part that does not fit is refused; with room again the capture goes on', async () => {
  const { lab, machine } = await openFull(64 + 20)
  await using _ = lab
  const id = (await machine.begin(NAME)).body['id']
  assert.is((await machine.send(id, 0, FILE.subarray(0, PART))).status, 204)
  const filler = join(lab.folder, 'filler.bin')
  await writeFile(filler, Buffer.alloc(8 * MIB))
  const refused = await machine.send(id, PART, FILE.subarray(PART, 2 * PART))
  assert.equal([refused.status, await machine.offset(id)], [507, String(PART)])
  await writeFile(filler, '')
  execFileSync('mount', ['-o', 'remount,size=100m', lab.folder])
  assert.is((await machine.send(id, PART, FILE.subarray(PART))).status, 204)
  assert.is((await machine.finish(id, END)).status, 200)
})

test('a disk that others fill during a part keeps what was safe before', async () => {
  const { lab, token, machine } = await openFull(110)
  await using _ = lab
  const id = String((await machine.begin(NAME)).body['id'])
  assert.is((await machine.send(id, 0, FILE.subarray(0, PART))).status, 204)
  const { promise: answered, resolve, reject } = Promise.withResolvers<number | undefined>()
  const sending = request(`${lab.base}/captures/${id}`, {
    method: 'PATCH',
    headers: {
      authorization: `Bearer ${token}`,
      'upload-offset': PART,
      'content-length': FILE.length - PART,
    },
  })
  sending.on('response', (answer) => resolve(answer.resume().statusCode)).on('error', reject)
  sending.write(FILE.subarray(PART, PART + MIB))
  const file = join(lab.folder, '.cache/captures', id)
  await until(async () => (await stat(file)).size >= PART + MIB)
  const filler = join(lab.folder, 'filler.bin')
  await writeFile(filler, Buffer.alloc(200 * MIB)).catch(() => {})
  sending.end(FILE.subarray(PART + MIB))
  assert.is(await answered, 507)
  const offset = Number(await machine.offset(id))
  assert.ok(offset >= PART && offset <= (await stat(file)).size, String(offset))
  await writeFile(filler, '')
  assert.is((await machine.send(id, offset, FILE.subarray(offset))).status, 204)
  assert.is((await machine.finish(id, END)).status, 200)
})

if (process.getuid?.() === 0) test.run()
