import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { renderError } from '#kit/foundation/fault.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { collect, faultOf, makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer, type Answer } from '#test/support/http/hostile-server.ts'

const test = suite('sources: redirects and secrets')
const BYTES = makeBytes(300_001)
const sources = createSources({ env: {}, retryMs: 1, stallMs: 5000 })
const hasty = createSources({ env: {}, retryMs: 1, stallMs: 250 })
const decent: Answer = (request, response) => sendFile(BYTES, request, response)
const secret = `Basic ${btoa('me:hidden')}`
const withSecret = (origin: string) => origin.replace('://', '://me:hidden@')

const redirectTo =
  (location: string, status = 302): Answer =>
  (_, response) => {
    response.writeHead(status, { location }).end()
  }

test('follows a chain of ten, of every kind, and remembers its end', async () => {
  const statuses = [301, 302, 303, 307, 308, 301, 302, 303, 307, 308]
  await using server = await startHostileServer((request, response, count) => {
    const step = Number(request.url?.slice(1))
    const status = statuses[step]
    if (status === undefined) sendFile(BYTES, request, response)
    else redirectTo(`/${step + 1}`, status)(request, response, count)
  })
  await using source = await sources.open(`${server.origin}/0`)
  assert.is(source.fileName, '0')
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.equal(
    server.seen.slice(-2).map(({ url }) => url),
    ['/10', '/10'],
  )
})

test('goes back to the original address when the place it led to is gone', async () => {
  const first = await startHostileServer(decent)
  await using second = await startHostileServer(decent)
  let led = first.origin
  await using server = await startHostileServer((request, response, count) =>
    redirectTo(`${led}/x.img`)(request, response, count),
  )
  await using source = await sources.open(`${server.origin}/x.img`)
  await first[Symbol.asyncDispose]()
  led = second.origin
  assert.ok(BYTES.equals(await collect(source.stream())))
})

test('asks many parts at once without the way round', async () => {
  await using other = await startHostileServer(decent)
  await using server = await startHostileServer(redirectTo(`${other.origin}/x.img`))
  await using source = await sources.open(`${server.origin}/x.img`)
  await Promise.all([1, 2, 3, 4].map((at) => source.readAt?.(Buffer.alloc(10), at)))
  assert.is(server.seen.length, 1)
})

test('ends a loop, and a way to nowhere', async () => {
  const rows = [
    ['/again', /\(more than 10 redirects\)$/],
    ['ftp://127.0.0.1/x', /\(redirected to ftp:\/\/, which is neither http nor https\)$/],
    ['http://', /\(redirected to nowhere\)$/],
  ] as const
  for (const [location, words] of rows) {
    await using server = await startHostileServer(redirectTo(location))
    const fault = await faultOf(() => sources.open(`${server.origin}/x.img`))
    assert.is(fault.code, 'input-missing')
    assert.match(fault.message, words)
  }
})

test('sends credentials to their origin and to no other', async () => {
  await using other = await startHostileServer(decent)
  await using server = await startHostileServer((request, response, count) =>
    redirectTo(request.url === '/x.img' ? '/y.img' : `${other.origin}/z.img`)(
      request,
      response,
      count,
    ),
  )
  await using source = await sources.open(`${withSecret(server.origin)}/x.img`)
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.ok(server.seen.every(({ headers }) => headers.authorization === secret))
  assert.ok(other.seen.every(({ headers }) => headers.authorization === undefined))
})

test('goes from http to https, but never back with credentials', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-redirect-'))
  const { caFile, certificate } = await makeAuthority(folder.path)
  const trusting = createSources({ env: { FLASHER_CA_FILE: caFile } })
  await using plain = await startHostileServer(decent)
  await using secure = await startHostileServer(redirectTo(`${plain.origin}/x.img`), certificate)
  await using up = await startHostileServer(redirectTo(`${secure.origin}/x.img`))
  await using source = await trusting.open(`${up.origin}/x.img`)
  assert.is(source.sizeBytes, BYTES.length)
  const before = plain.seen.length
  const fault = await faultOf(() => trusting.open(`${withSecret(secure.origin)}/x.img`))
  assert.match(fault.message, /redirected from https to http/)
  assert.is(plain.seen.length, before)
})

test('asks the original address again when a signed one has expired', async () => {
  for (const status of [401, 403]) {
    let ticket = 1
    await using server = await startHostileServer((request, response, count) => {
      if (request.url === '/x.img') redirectTo(`/signed?sig=${ticket}`)(request, response, count)
      else if (request.url !== `/signed?sig=${ticket}`) response.writeHead(status).end()
      else sendFile(BYTES, request, response, count < 4 ? { cutAfter: 1000 } : {})
    })
    await using source = await sources.open(`${server.origin}/x.img`)
    ticket = 2
    assert.ok(BYTES.equals(await collect(source.stream())))
    assert.is(server.seen.at(-1)?.url, '/signed?sig=2')
  }
})

test('fails in the middle where even the original address refuses', async () => {
  await using server = await startHostileServer((request, response, count) => {
    if (count < 3) sendFile(BYTES, request, response, count === 2 ? { cutAfter: 1000 } : {})
    else response.writeHead(403).end()
  })
  await using source = await sources.open(`${server.origin}/x.img`)
  const fault = await faultOf(() => collect(source.stream()))
  assert.is(fault.code, 'source-broken')
  assert.match(fault.message, /the server answered HTTP 403 at byte \d+ of 300001$/)
})

/** Everything a log could show of a fault, its causes and their properties. */
const everythingOf = (fault: Error) =>
  `${inspect(fault, { depth: 20, showHidden: true })} ${renderError(fault)}`

test('shows no credentials, whatever goes wrong', async () => {
  const ways: readonly Answer[] = [
    (_, response) => response.writeHead(404).end(),
    () => {},
    (request) => request.socket.destroy(),
    (request) => request.socket.end('nonsense\r\n\r\n'),
    redirectTo('/x.img?token=hidden'),
    redirectTo('ftp://me:hidden@127.0.0.1/'),
    (request, response, count) =>
      sendFile(BYTES, request, response, count === 2 ? { cutAfter: 1000 } : { ranges: false }),
    (request, response, count) =>
      sendFile(BYTES, request, response, { etag: count < 2 ? '"one"' : '"two"' }),
  ]
  for (const answer of ways) {
    await using server = await startHostileServer(answer)
    const url = `${withSecret(server.origin)}/x.img?X-Signature=hidden`
    const fault = await faultOf(async () => {
      await using source = await hasty.open(url)
      assert.not.match(`${source.name} ${source.url} ${source.fileName}`, /hidden/)
      await collect(source.stream())
    })
    assert.not.match(everythingOf(fault), /hidden|bWU6aGlkZGVu/)
    assert.is(server.seen[0]?.url, '/x.img?X-Signature=hidden')
  }
  const gone = await faultOf(() => sources.open('http://me:hidden@127.0.0.1:1/x.img'))
  assert.not.match(everythingOf(gone), /hidden/)
})

test.run()
