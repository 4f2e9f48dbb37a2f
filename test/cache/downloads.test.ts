import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { importCatalog, isManifestUrl } from '#cache/store/image-cache.ts'
import { blobUrl } from '#engine/catalog/rules/cache-entry.ts'
import { faultOf, makeBytes } from '#test/support/collect.ts'
import {
  type Answer,
  type FileBehaviour,
  sendFile,
  startHostileServer,
} from '#test/support/http/hostile-server.ts'
import { digestOf, pushImage, pushIndex, startRegistry } from '#test/support/http/registry.ts'
import {
  bring,
  makeFolder,
  openCache,
  serveCache,
  until,
} from '#test/support/server/image-cache.ts'

const test = suite('cache: downloads')
const BYTES = makeBytes(1_500_000)
const OTHER = makeBytes(1_500_000, 2)
const hex = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
const parts = (folder: string) => readdir(join(folder, '.cache/parts'))
const blobs = (folder: string) => readdir(join(folder, '.cache/blobs'))

/** Sends the head and the first bytes, and holds the rest back until it is released. */
function slowly(first: number, options: { readonly chunked?: boolean } = {}) {
  const held: ServerResponse[] = []
  const answer: Answer = (request, response) => {
    if (request.method === 'HEAD' || request.headers.range !== undefined) {
      if (options.chunked === true) response.writeHead(200).end()
      else sendFile(BYTES, request, response, { ranges: false })
      return
    }
    response.writeHead(200, options.chunked === true ? {} : { 'content-length': BYTES.length })
    response.write(BYTES.subarray(0, first))
    held.push(response)
  }
  return {
    answer,
    count: () => held.length,
    finish: () => held.splice(0).forEach((response) => response.end(BYTES.subarray(first))),
    cut: () => held.splice(0).forEach((response) => response.destroy()),
    end: (bytes: Buffer) => held.splice(0).forEach((response) => response.end(bytes)),
  }
}

test('twenty readers follow one download that has just begun, and all get all of it', async () => {
  await using folder = await makeFolder()
  const slow = slowly(400_000)
  await using source = await startHostileServer(slow.answer)
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  await served.cache.add({ src, sha256: hex(BYTES) })
  await served.cache.download('x.img', { force: false })
  await until(() => (served.cache.rows()[0]?.download?.growth.bytes ?? 0) >= 400_000)
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => fetch(blobUrl(served.base, src))),
  )
  for (const answer of answers) {
    assert.is(answer.status, 200)
    assert.is(answer.headers.get('content-length'), String(BYTES.length))
    assert.is(answer.headers.get('etag'), `"${hex(BYTES)}"`)
  }
  slow.finish()
  const bodies = await Promise.all(answers.map((answer) => answer.arrayBuffer()))
  assert.ok(bodies.every((body) => Buffer.from(body).equals(BYTES)))
  assert.is(
    source.seen.filter(({ method, headers }) => method === 'GET' && !headers.range).length,
    1,
  )
  await until(() => served.cache.rows()[0]?.state === 'ready')
})

test('readers of a download without a length get all of it, too', async () => {
  await using folder = await makeFolder()
  const slow = slowly(400_000, { chunked: true })
  await using source = await startHostileServer(slow.answer)
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  await served.cache.add({ src })
  await served.cache.download('x.img', { force: false })
  await until(() => (served.cache.rows()[0]?.download?.growth.bytes ?? 0) >= 400_000)
  const answer = await fetch(blobUrl(served.base, src))
  assert.is(answer.headers.get('content-length'), null)
  assert.is(answer.headers.get('etag'), null)
  slow.finish()
  assert.ok(Buffer.from(await answer.arrayBuffer()).equals(BYTES))
})

test('a download that fails ends its readers with an error, never with a short success', async () => {
  for (const chunked of [false, true]) {
    await using folder = await makeFolder()
    const slow = slowly(400_000, { chunked })
    await using source = await startHostileServer(slow.answer)
    await using served = await serveCache(folder.path)
    const src = `${source.origin}/x.img`
    await served.cache.add({ src })
    const download = await served.cache.download('x.img', { force: false })
    await until(() => (download?.growth.bytes ?? 0) >= 400_000)
    const answer = await fetch(blobUrl(served.base, src))
    slow.cut()
    await assertBroken(answer.arrayBuffer())
    await download?.ended
    assert.is(served.cache.rows()[0]?.state, 'failed')
    assert.match(served.cache.rows()[0]?.error ?? '', /cannot resume|gave up/)
    assert.is((await blobs(folder.path)).length, 0)
  }
})

test('readers of a wrong image never get its last byte, and nothing of it is offered', async () => {
  await using folder = await makeFolder()
  const slow = slowly(400_000)
  await using source = await startHostileServer(slow.answer)
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  await served.cache.add({ src, sha256: hex(OTHER) })
  const download = await served.cache.download('x.img', { force: false })
  await until(() => (download?.growth.bytes ?? 0) >= 400_000)
  const answer = await fetch(blobUrl(served.base, src))
  slow.finish()
  await assertBroken(answer.arrayBuffer())
  await download?.ended
  assert.match(served.cache.rows()[0]?.error ?? '', new RegExp(`${hex(BYTES)}.*${hex(OTHER)}`))
  assert.equal(await parts(folder.path), [])
  assert.equal(await blobs(folder.path), [])
  // It would be wrong again: asking for it does not fetch it a second time.
  const before = source.seen.length
  assert.is((await fetch(blobUrl(served.base, src))).status, 404)
  assert.is(source.seen.length, before)
})

test('a reader that leaves does not stop the download, nor others', async () => {
  await using folder = await makeFolder()
  const slow = slowly(400_000)
  await using source = await startHostileServer(slow.answer)
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  await served.cache.add({ src })
  const download = await served.cache.download('x.img', { force: false })
  await until(() => (download?.growth.bytes ?? 0) >= 400_000)
  const leaving = new AbortController()
  const left = await fetch(blobUrl(served.base, src), { signal: leaving.signal })
  const stays = await fetch(blobUrl(served.base, src))
  leaving.abort()
  await assertBroken(left.arrayBuffer())
  slow.finish()
  assert.ok(Buffer.from(await stays.arrayBuffer()).equals(BYTES))
})

test('a cancelled download leaves nothing, and its readers with an error', async () => {
  await using folder = await makeFolder()
  const slow = slowly(400_000)
  await using source = await startHostileServer(slow.answer)
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  await served.cache.add({ src })
  const download = await served.cache.download('x.img', { force: false })
  await until(() => (download?.growth.bytes ?? 0) >= 400_000)
  const answer = await fetch(blobUrl(served.base, src))
  assert.ok(await served.cache.cancel('x.img'))
  await assertBroken(answer.arrayBuffer())
  assert.equal(await parts(folder.path), [])
  assert.is(served.cache.rows()[0]?.state, 'absent')
  assert.not.ok(await served.cache.cancel('x.img'))
})

test('a restart goes on where the download was, of the same version of the file alone', async () => {
  for (const isSame of [true, false]) {
    await using folder = await makeFolder()
    let etag = '"one"'
    let bytes = BYTES
    let isHeld = true
    await using source = await startHostileServer((request, response) => {
      const isBody = request.method === 'GET' && request.headers.range !== 'bytes=0-0'
      sendFile(bytes, request, response, {
        etag,
        ...(isHeld && isBody ? { stallAfter: 600_000 } : {}),
      })
    })
    {
      await using cache = await openCache(folder.path)
      await cache.add({ src: `${source.origin}/x.img` })
      const download = await cache.download('x.img', { force: false })
      await until(() => (download?.growth.bytes ?? 0) >= 600_000)
    }
    isHeld = false
    if (!isSame) [etag, bytes] = ['"two"', OTHER]
    const before = source.seen.length
    await using cache = await openCache(folder.path)
    await until(() => cache.rows()[0]?.state === 'ready')
    const [asked] = source.seen
      .slice(before)
      .filter(({ headers }) => headers.range !== 'bytes=0-0' && headers.range)
    assert.is(asked?.headers.range, isSame ? 'bytes=600000-1499999' : undefined)
    assert.is(cache.rows()[0]?.entry.sha256, hex(isSame ? BYTES : OTHER))
  }
})

test('after a power cut only what was made durable counts', async () => {
  await using folder = await makeFolder()
  let isHeld = true
  await using source = await startHostileServer((request, response) => {
    const isBody = request.method === 'GET' && request.headers.range !== 'bytes=0-0'
    sendFile(BYTES, request, response, isHeld && isBody ? { stallAfter: 600_000 } : {})
  })
  {
    await using cache = await openCache(folder.path, { checkpointBytes: 200_000 })
    await cache.add({ src: `${source.origin}/x.img` })
    const download = await cache.download('x.img', { force: false })
    await until(() => (download?.growth.bytes ?? 0) >= 600_000)
  }
  isHeld = false
  // As if another run of the kernel had written it, and the end of it was lost.
  const records = join(folder.path, '.cache/records')
  const [name = ''] = (await readdir(records)).filter((file) => file.startsWith('part'))
  const note = await readFile(join(records, name), 'utf8')
  await writeFile(join(records, name), note.replace(/"bootId":"[^"]*"/, '"bootId":"another"'))
  const [part = ''] = await parts(folder.path)
  const path = join(folder.path, '.cache/parts', part)
  const content = await readFile(path)
  await writeFile(path, content.fill(0, 590_000))
  await using cache = await openCache(folder.path)
  await until(() => cache.rows()[0]?.state === 'ready')
  assert.is(cache.rows()[0]?.entry.sha256, hex(BYTES))
  const [asked] = source.seen.filter(({ headers }) => /bytes=[1-9]/.test(headers.range ?? ''))
  assert.match(asked?.headers.range ?? '', /^bytes=(4|5)\d{5}-1499999$/)
})

test('a source that is cut again and again is fetched to its end', async () => {
  await using folder = await makeFolder()
  await using source = await startHostileServer((request, response, count) =>
    sendFile(BYTES, request, response, count < 2 ? {} : { cutAfter: 150_000 }),
  )
  await using cache = await openCache(folder.path)
  await bring(cache, { src: `${source.origin}/x.img`, sha256: hex(BYTES) })
  assert.is(cache.rows()[0]?.state, 'ready')
})

test('redirects to files and other schemes are refused, and an absent registry is reported', async () => {
  await using folder = await makeFolder()
  await using source = await startHostileServer((_request, response) => {
    response.writeHead(302, { location: 'file:///etc/passwd' }).end()
  })
  await using cache = await openCache(folder.path)
  await bring(cache, { src: `${source.origin}/x.img` })
  assert.match(cache.rows()[0]?.error ?? '', /file:\/\//)
  await bring(cache, { src: 'oras://registry.invalid/a/b:latest' })
  const absent = cache.rows().find(({ entry }) => entry.name === 'b-latest')
  assert.match(absent?.error ?? '', /oras:\/\/registry\.invalid\/a\/b:latest \(/)
})

test('fetched anew, the old version is served until the new one is right', async () => {
  await using folder = await makeFolder()
  let bytes = BYTES
  await using source = await startHostileServer((request, response) =>
    sendFile(bytes, request, response, { etag: `"${hex(bytes)}"` }),
  )
  await using cache = await openCache(folder.path)
  const src = `${source.origin}/x.img`
  await bring(cache, { src })
  await using old = await cache.open(src, '')
  bytes = OTHER
  const download = await cache.download('x.img', { force: true })
  assert.is(cache.rows()[0]?.state, 'ready')
  await download?.ended
  assert.is(cache.rows()[0]?.entry.sha256, hex(OTHER))
  assert.equal(await blobs(folder.path), [hex(OTHER)])
  const into = Buffer.alloc(10)
  assert.is(await old?.read(into, 0, new AbortController().signal), 10)
  assert.ok(into.equals(BYTES.subarray(0, 10)))
})

async function assertBroken(body: Promise<unknown>): Promise<void> {
  try {
    await body
  } catch {
    return
  }
  assert.unreachable('a short body passed for a whole one')
}

/** Servers that cannot go on in the middle. */
const KINDS: readonly (readonly [string, FileBehaviour])[] = [
  ['no parts', { ranges: false, etag: '"1"' }],
  ['no version', { etag: null }],
  ['neither', { ranges: false, etag: null }],
]

/** A server whose first so many whole answers break off. */
function startBreaking(breaks: number, behaviour: FileBehaviour) {
  const state = { broken: 0 }
  const starting = startHostileServer((request, response) => {
    const range = request.headers.range ?? ''
    const isWhole = request.method === 'GET' && !range.endsWith('=0-0')
    const isCut = isWhole && state.broken < breaks
    if (isCut) state.broken += 1
    sendFile(BYTES, request, response, { ...behaviour, ...(isCut ? { cutAfter: 600_000 } : {}) })
  })
  return { starting, broken: () => state.broken }
}

test('an image comes though its connection breaks off', async () => {
  for (const [kind, behaviour] of KINDS) {
    await using folder = await makeFolder()
    const breaking = startBreaking(3, behaviour)
    await using source = await breaking.starting
    await using served = await serveCache(folder.path)
    await bring(served.cache, { src: `${source.origin}/x.img` })
    const [row] = served.cache.rows()
    assert.equal([row?.state, row?.error], ['ready', null], kind)
    assert.is(row?.entry.sha256, hex(BYTES))
    assert.is(breaking.broken(), 3)
  }
})

test('one that always breaks off fails with the reason', async () => {
  for (const [kind, behaviour] of KINDS) {
    await using folder = await makeFolder()
    const breaking = startBreaking(Infinity, behaviour)
    await using source = await breaking.starting
    await using served = await serveCache(folder.path)
    await bring(served.cache, { src: `${source.origin}/x.img` })
    const [row] = served.cache.rows()
    assert.is(row?.state, 'failed', kind)
    assert.match(row?.error ?? '', /cannot resume/)
    assert.is(breaking.broken(), 5)
    assert.equal(await readdir(join(folder.path, '.cache/blobs')), [])
  }
})

test('a reader that followed the first try is cut off, and gets all of it when it asks again', async () => {
  await using folder = await makeFolder()
  const held: (() => void)[] = []
  let gets = 0
  await using source = await startHostileServer((request, response) => {
    const isWhole = request.method === 'GET' && request.headers.range === undefined
    if (isWhole) gets += 1
    if (!isWhole || gets > 1) sendFile(BYTES, request, response, { ranges: false })
    else {
      response.writeHead(200, { 'content-length': BYTES.length })
      response.write(BYTES.subarray(0, 400_000))
      held.push(() => response.destroy())
    }
  })
  await using served = await serveCache(folder.path)
  const src = `${source.origin}/x.img`
  await served.cache.add({ src })
  const download = await served.cache.download('x.img', { force: false })
  await until(() => (served.cache.rows()[0]?.download?.growth.bytes ?? 0) >= 400_000)
  const first = await fetch(blobUrl(served.base, src))
  held.forEach((cut) => cut())
  const whole = await first.arrayBuffer().catch(() => null)
  assert.is(whole, null, 'what comes next is not what it had begun to read')
  await download?.ended
  const again = Buffer.from(await (await fetch(blobUrl(served.base, src))).arrayBuffer())
  assert.ok(again.equals(BYTES))
})

test('what has come stays while the source cannot be reached, and is gone on with', async () => {
  await using folder = await makeFolder()
  const state = { isGone: false, isBack: false }
  await using source = await startHostileServer((request, response) => {
    if (state.isGone && !state.isBack) return response.writeHead(404).end()
    const isProbe = request.method === 'HEAD' || (request.headers.range ?? '').endsWith('=0-0')
    const isCut = !isProbe && !state.isBack
    state.isGone ||= isCut
    sendFile(BYTES, request, response, { etag: '"1"', ...(isCut ? { cutAfter: 600_000 } : {}) })
  })
  await using served = await serveCache(folder.path)
  await bring(served.cache, { src: `${source.origin}/x.img` })
  assert.is(served.cache.rows()[0]?.state, 'failed')
  assert.is((await readdir(join(folder.path, '.cache/parts'))).length, 1)
  // Another try, of which the source sees nothing either.
  await (
    await served.cache.download('x.img', { force: false })
  )?.ended
  assert.is((await readdir(join(folder.path, '.cache/parts'))).length, 1)
  state.isBack = true
  await (
    await served.cache.download('x.img', { force: false })
  )?.ended
  assert.is(served.cache.rows()[0]?.state, 'ready')
  const ranges = source.seen.map(({ headers }) => headers.range ?? '')
  assert.ok(ranges.some((range) => /^bytes=[1-9]/.test(range)))
})

const OTHER_BLOB = makeBytes(400_000, 2)

test('entries are downloaded from a registry, by tag and by architecture', async () => {
  await using folder = await makeFolder()
  await using registry = await startRegistry()
  await using served = await serveCache(folder.path)
  const amd = await pushImage(registry, 'lab/disk:v1', [{ bytes: BYTES, title: 'disk.img.zst' }])
  const arm = await pushImage(registry, 'lab/disk:v2', [
    { bytes: OTHER_BLOB, title: 'arm.img.zst' },
  ])
  await pushIndex(registry, 'lab/disk:all', { amd64: amd, arm64: arm })
  const src = `oras://${registry.host}/lab/disk:v1`
  await bring(served.cache, { src })
  await bring(served.cache, { src: `oras://${registry.host}/lab/disk:all`, arch: 'arm64' })
  const find = (ending: string) =>
    served.cache.rows().find(({ entry }) => entry.src.endsWith(ending))
  const [tagged, chosen] = [find(':v1'), find(':all')]
  assert.equal([tagged?.state, tagged?.error, tagged?.entry.sha256], ['ready', null, hex(BYTES)])
  assert.equal([chosen?.state, chosen?.entry.sha256], ['ready', hex(OTHER_BLOB)])
  const answer = await fetch(blobUrl(served.base, src))
  assert.ok(BYTES.equals(Buffer.from(await answer.arrayBuffer())))
})

test('a pinned entry whose tag moved on is refused before a byte of it comes', async () => {
  await using folder = await makeFolder()
  await using registry = await startRegistry()
  await using cache = await openCache(folder.path)
  await pushImage(registry, 'lab/disk:v1', [{ bytes: OTHER_BLOB, title: 'disk.img.zst' }])
  await bring(cache, { src: `oras://${registry.host}/lab/disk:v1`, sha256: hex(BYTES) })
  const [row] = cache.rows()
  assert.equal([row?.state, row?.download], ['failed', null])
  assert.match(row?.error ?? '', new RegExp(`holds ${hex(OTHER_BLOB)}, but ${hex(BYTES)}`))
})

test('all images of a catalog that lies in a registry are listed', async () => {
  await using folder = await makeFolder()
  await using registry = await startRegistry()
  await using cache = await openCache(folder.path)
  const at = `oras://${registry.host}/lab`
  const toml = `version = 1\n[[images]]\nname = "disk"\nsrc = "${at}/disk:v1"\n`
  await pushImage(registry, 'lab/catalog:v1', [{ bytes: Buffer.from(toml), title: 'catalog.toml' }])
  assert.ok(isManifestUrl(`${at}/catalog:v1`))
  const imported = await importCatalog(cache, `${at}/catalog:v1`, {})
  assert.equal(imported, { added: ['disk'], known: [], flaws: [] })
  assert.is(cache.rows()[0]?.entry.src, `${at}/disk:v1`)
})

test('which addresses are catalogs', () => {
  const digest = `sha256:${'0'.repeat(64)}`
  const yes = [
    'x.toml',
    'http://h/C.TOML?x=1',
    'oras://h/a/catalog:v1',
    'oras://h/a/my.toml:v1',
    'oras://h/catalog:v1',
  ]
  for (const url of [...yes, `oras://h:5000/a/lab-catalog@${digest}`]) assert.ok(isManifestUrl(url))
  const no = ['http://h/catalog', 'oras://h/catalog/disk:v1', 'oras://h/a/disk:catalog', 'a.img']
  for (const url of no) assert.not.ok(isManifestUrl(url), url)
})

test('a page that asks for a catalog reads no file of this machine', async () => {
  await using folder = await makeFolder()
  await using cache = await openCache(folder.path)
  for (const url of ['/etc/x.toml', 'file:///etc/x.toml', './x.toml']) {
    const fault = await faultOf(() => importCatalog(cache, url, {}))
    assert.match(fault.message, /read from an http/)
  }
})

test('goes on after a restart where it stopped, though the registry names no version', async () => {
  await using folder = await makeFolder()
  const starts: (string | undefined)[] = []
  let limit = 600_000
  await using registry = await startHostileServer((request, response) => {
    if (request.url?.includes('/manifests/') === true) {
      const layers = [{ digest: digestOf(BYTES), size: BYTES.length }]
      response.end(JSON.stringify({ layers }))
      return
    }
    if (request.method === 'GET') starts.push(request.headers.range)
    const isWhole = limit >= BYTES.length || request.headers.range === 'bytes=0-0'
    if (isWhole || request.method === 'HEAD') sendFile(BYTES, request, response)
    else {
      response.writeHead(200, { 'content-length': BYTES.length })
      response.write(BYTES.subarray(0, limit))
    }
  })
  const src = `oras://${registry.origin.slice('http://'.length)}/lab/disk:v1`
  {
    await using cache = await openCache(folder.path, { checkpointBytes: 100_000 })
    await cache.add({ src })
    await cache.download('disk-v1', { force: false })
    await until(() => (cache.rows()[0]?.download?.growth.bytes ?? 0) >= 600_000)
  }
  limit = BYTES.length
  await using cache = await openCache(folder.path)
  await until(() => cache.rows()[0]?.state === 'ready')
  assert.is(cache.rows()[0]?.entry.sha256, hex(BYTES))
  assert.match(starts.at(-1) ?? '', /^bytes=600000-1499999$/)
})

test.run()
