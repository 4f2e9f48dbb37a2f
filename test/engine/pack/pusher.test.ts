import { createHash } from 'node:crypto'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { packImage } from '#engine/pack/packer.ts'
import { pushImage } from '#engine/pack/pusher.ts'
import type { PushStage } from '#engine/pack/rules/push.ts'
import { parseOrasRef } from '#kit/net/registry/rules/oras.ts'
import { faultOf } from '#test/support/collect.ts'
import { makeDiskImage, makeNoise } from '#test/support/disk/disk-images.ts'
import { startHostileServer } from '#test/support/http/hostile-server.ts'
import { opened } from '#test/support/opened.ts'
import { startUploadRegistry, type UploadFault } from '#test/support/http/upload-registry.ts'

const test = suite('push to a registry that fails')
const MIB = 1 << 20
const CHUNK = 8 * MIB
/** It is larger than two chunks when it is packed. */
const IMAGE = Buffer.concat([makeDiskImage(2 * MIB), makeNoise(18 * MIB, 3)])

interface Pushing {
  readonly fault?: UploadFault
  readonly env?: Readonly<Record<string, string>>
  readonly retryMs?: number
}

const quiet = { signal: new AbortController().signal, onProgress: () => undefined }

/** One packed image is enough for all of them. */
const packed = opened(test, async (stack) => {
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'flasher-push-test-')))
  const image = join(folder.path, 'disk.img')
  const path = `${image}.zst`
  await writeFile(image, IMAGE)
  await packImage({ env: {} }, { image, output: path, format: null, sha256: null, level: 1 }, quiet)
  const bytes = await readFile(path)
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  return { path, bytes, digest }
})

async function push(host: string, { env = {}, retryMs = 1 }: Pushing = {}) {
  const ref = parseOrasRef(`oras://${host}/lab/disk:v1`)
  if (!ref.ok) throw new Error(ref.refusal)
  const stages: PushStage[] = []
  const pushed = await pushImage(
    { env: { FLASHER_REGISTRY_HTTP: host, ...env } },
    {
      image: packed().path,
      ref: ref.value,
      format: null,
      sha256: null,
      level: 1,
      name: 'disk',
      arch: null,
    },
    { ...quiet, retryMs, onStage: (stage) => stages.push(stage) },
  )
  return { pushed, stages }
}

const isPatch = (request: { readonly method?: string | undefined }) => request.method === 'PATCH'

/** Lets a fault happen at the first `times` requests that it is for. */
function createOnce(isFor: (request: Parameters<UploadFault>[0]) => boolean, times = 1) {
  let left = times
  return (act: UploadFault): UploadFault =>
    (...given) => {
      if (left === 0 || !isFor(given[0])) return false
      left -= 1
      return act(...given)
    }
}

test('a cut in the middle of a chunk: only the rest of it is sent again', async () => {
  const once = createOnce(
    (request) => isPatch(request) && request.headers['content-range']?.startsWith('0-') === false,
  )
  let kept = 0
  const fault = once((request, _, { uploads }) => {
    const last = [...uploads.keys()].at(-1) ?? ''
    request.on('data', (bytes: Buffer) => {
      if (kept > 3 * MIB) return
      kept += bytes.length
      uploads.set(last, Buffer.concat([uploads.get(last) ?? Buffer.alloc(0), bytes]))
      if (kept > 3 * MIB) request.socket.destroy()
    })
    return true
  })
  await using registry = await startUploadRegistry(fault)
  const { stages } = await push(registry.host)
  assert.ok(registry.blobs.get(packed().digest)?.equals(packed().bytes))
  assert.equal(stages, ['checking', 'uploading'])
  const ranges = registry.seen
    .filter(isPatch)
    .map(({ headers }) => headers['content-range'])
    .filter((range) => range !== '0-1')
  assert.equal(ranges.slice(0, 3), [
    `0-${CHUNK - 1}`,
    `${CHUNK}-${2 * CHUNK - 1}`,
    `${CHUNK + kept}-${2 * CHUNK - 1}`,
  ])
})

test('an answer that is lost: what has arrived is not sent again', async () => {
  const once = createOnce(isPatch, 2)
  const fault = once((request, _, { uploads }) => {
    const last = [...uploads.keys()].at(-1) ?? ''
    request.on('data', (bytes: Buffer) =>
      uploads.set(last, Buffer.concat([uploads.get(last) ?? Buffer.alloc(0), bytes])),
    )
    request.on('end', () => request.socket.destroy())
    return true
  })
  await using registry = await startUploadRegistry(fault)
  await push(registry.host)
  assert.ok(registry.blobs.get(packed().digest)?.equals(packed().bytes))
  const ranges = registry.seen.filter(isPatch).map(({ headers }) => headers['content-range'])
  assert.is(new Set(ranges).size, ranges.length)
})

test('429 with Retry-After is waited for, and a busy registry is asked again', async () => {
  const asked: number[] = []
  const busy = createOnce(
    (request) => isPatch(request),
    2,
  )((request, response) => {
    asked.push(performance.now())
    request.resume()
    const headers = asked.length === 1 ? { 'retry-after': '1' } : {}
    response.writeHead(asked.length === 1 ? 429 : 503, headers).end()
    return true
  })
  const note: UploadFault = (request, ...rest) => {
    if (busy(request, ...rest)) return true
    if (isPatch(request)) asked.push(performance.now())
    return false
  }
  await using registry = await startUploadRegistry(note)
  await push(registry.host)
  assert.ok(registry.blobs.get(packed().digest)?.equals(packed().bytes))
  assert.ok((asked[1] ?? 0) - (asked[0] ?? 0) >= 990)
})

test('a token that expires during the upload is asked for anew, for pull and push', async () => {
  let tokens = 0
  let left = 0
  const fault: UploadFault = (request, response) => {
    const url = new URL(request.url ?? '', `http://${request.headers.host}`)
    if (url.pathname === '/token') {
      tokens += 1
      left = 3
      response.end(JSON.stringify({ token: `token-${tokens}` }))
      return true
    }
    if (request.headers.authorization === `Bearer token-${tokens}` && left > 0) {
      left -= 1
      return false
    }
    request.resume()
    const realm = `realm="http://${request.headers.host}/token",service="lab"`
    response.writeHead(401, { 'www-authenticate': `Bearer ${realm}` }).end('{}')
    return true
  }
  await using registry = await startUploadRegistry(fault)
  await push(registry.host)
  assert.ok(registry.blobs.get(packed().digest)?.equals(packed().bytes))
  assert.ok(tokens >= 3)
  const scopes = registry.seen
    .filter(({ url }) => url.startsWith('/token'))
    .map(({ url }) => new URL(url, registry.origin).searchParams.get('scope'))
  assert.equal([...new Set(scopes)], ['repository:lab/disk:pull,push'])
})

test('uploads that lie elsewhere are never told the password', async () => {
  await using target = await startUploadRegistry(() => false)
  const BASIC = `Basic ${Buffer.from('me:secret').toString('base64')}`
  await using registry = await startHostileServer((request, response) => {
    request.resume()
    if (request.headers.authorization !== BASIC) {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="lab"' }).end()
    } else if (request.method === 'POST') {
      // This is the front of a registry that keeps uploads on hosts of their own.
      void fetch(`${target.origin}${request.url}`, { method: 'POST' }).then((begun) => {
        const location = `${target.origin}${begun.headers.get('location')}`
        response.writeHead(202, { location }).end()
      })
    } else {
      response.writeHead(307, { location: `${target.origin}${request.url}` }).end()
    }
  })
  const host = registry.origin.slice('http://'.length)
  const env = {
    FLASHER_REGISTRY_HOST: host,
    FLASHER_REGISTRY_USER: 'me',
    FLASHER_REGISTRY_PASSWORD: 'secret',
  }
  const { pushed } = await push(host, { env })
  assert.equal([pushed.wasThere, pushed.hasRanges], [false, true])
  assert.ok(target.blobs.get(packed().digest)?.equals(packed().bytes))
  assert.ok(target.seen.every(({ headers }) => headers.authorization === undefined))
})

test('an upload that is collected in the middle begins again, and not for ever', async () => {
  for (const times of [1, Number.POSITIVE_INFINITY]) {
    const once = createOnce(
      (request) => isPatch(request) && request.headers['content-range'] !== '0-1',
      times,
    )
    const fault = once((request, response, { uploads }) => {
      uploads.clear()
      request.resume()
      response.writeHead(404).end()
      return true
    })
    await using registry = await startUploadRegistry(fault)
    if (times === 1) {
      assert.equal((await push(registry.host)).stages, ['checking', 'uploading', 'again'])
      assert.ok(registry.blobs.get(packed().digest)?.equals(packed().bytes))
    } else {
      const lost = await faultOf(() => push(registry.host))
      assert.match(lost.message, /lost the upload 3 times/)
      assert.is(registry.manifests.size, 0)
    }
  }
})

test('a blob that is collected before its manifest is stored is sent once more', async () => {
  const once = createOnce(
    ({ method, url }) => method === 'PUT' && url?.includes('/manifests/') === true,
  )
  const fault = once((_, __, { blobs }) => {
    blobs.delete(packed().digest)
    return false
  })
  await using registry = await startUploadRegistry(fault)
  const { pushed, stages } = await push(registry.host)
  assert.equal(stages, ['checking', 'uploading', 'again'])
  assert.ok(registry.blobs.get(packed().digest)?.equals(packed().bytes))
  assert.is(pushed.wasThere, false)
  const again = await push(registry.host)
  assert.equal([again.pushed.wasThere, again.pushed.manifest], [true, pushed.manifest])
})

const LIES: readonly (readonly [string, RegExp, UploadFault])[] = [
  [
    'other data than was uploaded',
    /returns other data for sha256:/,
    (request, _, { blobs }) => {
      const held = blobs.get(packed().digest)
      if (request.headers.range === undefined || held === undefined) return false
      const wrong = Buffer.from(held)
      wrong.writeUInt8(wrong.readUInt8(5) ^ 1, 5)
      blobs.set(packed().digest, wrong)
      return false
    },
  ],
  [
    'another size',
    /it has 7 bytes/,
    (request, response, { blobs }) => {
      if (request.method !== 'HEAD' || !blobs.has(packed().digest)) return false
      response.writeHead(200, { 'content-length': 7 }).end()
      return true
    },
  ],
  [
    'a digest of its own for what arrived',
    /did not get the bytes/,
    (request, _, { uploads }) => {
      if (request.method !== 'PUT' || request.url?.includes('/uploads/') !== true) return false
      uploads.forEach((bytes, id) => {
        if (bytes.length > 2) uploads.set(id, Buffer.concat([bytes, Buffer.alloc(1)]))
      })
      return false
    },
  ],
  [
    'another manifest',
    /another manifest where sha256:/,
    (request, response) => {
      const isRead = request.method === 'GET' && request.url?.includes('/manifests/') === true
      if (isRead) response.end('{}')
      return isRead
    },
  ],
]

for (const [what, message, lie] of LIES) {
  test(`a registry that lies: ${what}`, async () => {
    await using registry = await startUploadRegistry((request, response, held) =>
      request.url?.includes('44136fa3') === true ? false : lie(request, response, held),
    )
    // What is there already is compared as well.
    if (what === 'another size') registry.blobs.set(packed().digest, packed().bytes)
    const fault = await faultOf(() => push(registry.host))
    assert.is(fault.code, 'digest-mismatch')
    assert.match(fault.message, message)
  })
}

const REFUSALS: readonly (readonly [number, string, RegExp])[] = [
  [403, 'forbidden', /refused the upload \(HTTP 403: no rights \(DENIED\)\)/],
  [401, 'login-required', /refused the upload \(HTTP 401/],
  [413, 'too-large', /HTTP 413/],
  [405, 'upstream-failed', /HTTP 405/],
]

for (const [status, code, message] of REFUSALS) {
  test(`a registry that refuses with ${status}`, async () => {
    await using registry = await startUploadRegistry((request, response) => {
      if (request.method !== 'POST') return false
      response
        .writeHead(status)
        .end(JSON.stringify({ errors: [{ code: 'DENIED', message: 'no rights' }] }))
      return true
    })
    const fault = await faultOf(() => push(registry.host))
    assert.is(fault.code, code)
    assert.match(fault.message, message)
  })
}

test('a registry that fails while it is read back is asked again', async () => {
  let failed = 0
  await using registry = await startUploadRegistry((request, response) => {
    if (request.headers.range === undefined || failed === 3) return false
    failed += 1
    if (failed === 1) request.socket.destroy()
    else if (failed === 2) response.writeHead(503).end()
    else {
      response.writeHead(206, { 'content-length': 65_536 }).write(packed().bytes.subarray(0, 100))
      setTimeout(() => request.socket.destroy(), 20)
    }
    return true
  })
  assert.is((await push(registry.host)).pushed.hasRanges, true)
  assert.is(failed, 3)
})

test('a registry without ranges is noticed, and one that stays busy is given up', async () => {
  await using registry = await startUploadRegistry((request, response, { blobs }) => {
    const held = blobs.get(packed().digest)
    if (request.headers.range === undefined || held === undefined) return false
    response.end(held)
    return true
  })
  assert.is((await push(registry.host)).pushed.hasRanges, false)
  await using busy = await startUploadRegistry((request, response) => {
    const isBusy = request.url !== '/v2/'
    if (isBusy) response.writeHead(503).end()
    return isBusy
  })
  assert.match((await faultOf(() => push(busy.host))).message, /HTTP 503; gave up after 12/)
})

test.run()
