/** What the release before left unfinished in its folders is continued or kept. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { captureClient, makeCapture } from '../support/capture/uploads.ts'
import { sendFile, startHostileServer } from '../support/http/hostile-server.ts'
import { startReleaseSite } from '../support/http/release-site.ts'
import {
  ANNOUNCED_CAPTURE,
  CAME,
  CAPTURE,
  leaveBehind,
  sha256Of,
  UPLOAD,
  WAITING_CAPTURE,
  WHOLE_UPLOAD,
} from '../support/partial/release-before.ts'
import { makeBootFolder, partName } from '../support/server/boot-folder.ts'
import { makeFolder, serveCache, TOKEN, until } from '../support/server/image-cache.ts'
import { openReleaseFixture } from '../support/server/release-fixture.ts'

const test = suite('what the release before left unfinished')
const IMAGE = await makeCapture(2_000_000)
const { file: FILE, end: END } = IMAGE
const MACHINE = 'a-token-of-a-machine'

async function openBefore() {
  const folder = await makeFolder()
  const source = await startHostileServer((request, response) =>
    sendFile(FILE, request, response, { etag: '"one"' }),
  )
  await leaveBehind(folder.path, {
    image: IMAGE,
    token: MACHINE,
    src: `${source.origin}/x.img.zst`,
  })
  const served = await serveCache(folder.path)
  return {
    ...served,
    folder: folder.path,
    source,
    operator: captureClient(served.base, TOKEN),
    machine: captureClient(served.base, MACHINE),
    left: (name: string) => readdir(join(folder.path, '.cache', name)),
    async [Symbol.asyncDispose]() {
      await served[Symbol.asyncDispose]()
      await source[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

test('uploads go on where they were safe; one of which all had come is offered', async () => {
  await using before = await openBefore()
  const { operator } = before
  await until(() => before.cache.uploads.list().length === 1)
  const { body } = await operator.ask('GET', '/uploads')
  const { uploads } = Object(body)
  assert.equal(
    [uploads[0].id, uploads[0].offset, uploads[0].name],
    [UPLOAD, CAME, 'upload.img.zst'],
  )
  const range = { 'content-range': `bytes ${CAME}-${FILE.length - 1}/${FILE.length}` }
  const rest = new Uint8Array(FILE.subarray(CAME))
  assert.is((await operator.ask('PATCH', `/uploads/${UPLOAD}`, rest, range)).status, 200)
  for (const [id, name] of [
    [UPLOAD, 'upload.img.zst'],
    [WHOLE_UPLOAD, 'whole.img.zst'],
  ] as const) {
    const ended = await operator.post(`/uploads/${id}/complete`, {})
    assert.equal([ended.status, ended.body['sha256']], [201, END.sha256])
    assert.ok((await readFile(join(before.folder, name))).equals(FILE))
  }
  assert.equal(await before.left('uploads'), [])
})

test('captures go on, are verified, and wait; orders that were used up stay so', async () => {
  await using before = await openBefore()
  const { operator, machine } = before
  assert.is(await machine.offset(CAPTURE), String(CAME))
  assert.is((await machine.send(CAPTURE, CAME, FILE.subarray(CAME))).status, 204)
  for (const id of [CAPTURE, ANNOUNCED_CAPTURE, WAITING_CAPTURE])
    assert.is((await machine.finish(id, END)).status, 200)
  const { captures } = Object((await operator.ask('GET', '/captures')).body)
  assert.equal(
    captures.map(({ status, sha256 }: Record<string, unknown>) => [status, sha256]),
    [CAPTURE, ANNOUNCED_CAPTURE, WAITING_CAPTURE].map(() => ['waiting', END.sha256]),
  )
  for (const [id, name] of [
    [CAPTURE, 'capture.img.zst'],
    [WAITING_CAPTURE, 'waiting.img.zst'],
  ] as const) {
    assert.is((await operator.post(`/captures/${id}/accept`, {})).status, 201)
    assert.ok((await readFile(join(before.folder, name))).equals(FILE))
  }
  assert.equal(await before.left('captures'), [ANNOUNCED_CAPTURE])
  const ticket = { token: 't', order: 'order-0', issuedAt: 5_000 }
  const source = before.cache.captures.list()[0]?.source
  assert.ok(source !== undefined)
  await before.cache.captures.begin({ name: 'again.img.zst', source }, ticket).then(
    () => assert.unreachable(),
    ({ message }: Error) => assert.match(message, /used already/),
  )
})

test('a download goes on by itself where it was safe', async () => {
  await using before = await openBefore()
  await until(() => before.cache.rows().find(({ kind }) => kind !== 'file')?.state === 'ready')
  const ranges = before.source.seen.map(({ headers }) => headers.range)
  assert.ok(ranges.includes(`bytes=${CAME}-${FILE.length - 1}`), ranges.join(' '))
  assert.ok((await readFile(join(before.folder, '.cache/blobs', END.sha256))).equals(FILE))
  assert.equal(await before.left('parts'), [])
})

test('a fetch of a release goes on when it is asked for again', async () => {
  await using folder = await makeBootFolder()
  await using site = await startReleaseSite()
  const name = partName('1.2.3', 'initrd')
  const file = site.files.get(name) ?? Buffer.alloc(0)
  await mkdir(join(folder.dir, '.fetching'))
  await writeFile(join(folder.dir, '.fetching', sha256Of(file)), file.subarray(0, 70_000))
  await using fixture = await openReleaseFixture(folder.dir, { site: site.origin })
  assert.is((await fixture.fetch('v1.2.3')).status, 'completed')
  assert.ok((await readFile(join(folder.dir, name))).equals(file))
  const ranges = site.seen.map(({ headers }) => headers.range)
  assert.ok(
    ranges.some((range) => range?.startsWith('bytes=70000-')),
    ranges.join(' '),
  )
})

test.run()
