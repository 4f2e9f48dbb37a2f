import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSources } from '#engine/image/sources/sources.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { collect, createRandom, faultOf, makeBytes } from '#test/support/collect.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { startConnectProxy } from '#test/support/http/connect-proxy.ts'
import {
  type Answer,
  type Certificate,
  type FileBehaviour,
  sendFile,
  startHostileServer,
} from '#test/support/http/hostile-server.ts'
import { findPort } from '#test/support/http/ports.ts'

const test = suite('sources: resuming')
const BYTES = makeBytes(1_000_003)
const OTHER = makeBytes(1_000_003, 2)
const DATE = 'Wed, 21 Oct 2015 07:28:00 GMT'
const resuming = createSources({ env: {}, retryMs: 1, stallMs: 5000 })

/** A behaviour for each request; HEAD and the probe are numbers 0 and 1, and are decent. */
const behave = (behaviourOf: (count: number) => FileBehaviour, bytes = BYTES): Answer => {
  return (request, response, count) =>
    sendFile(bytes, request, response, count < 2 ? behaviourOf(1_000_000) : behaviourOf(count))
}

async function streamed(answer: Answer) {
  await using server = await startHostileServer(answer)
  await using source = await resuming.open(`${server.origin}/x.img`)
  const got = await collect(source.stream())
  return { got, seen: server.seen.slice(2) }
}

async function broken(answer: Answer) {
  await using server = await startHostileServer(answer)
  await using source = await resuming.open(`${server.origin}/x.img`)
  const fault = await faultOf(() => collect(source.stream()))
  assert.is(fault.code, 'source-broken')
  assert.ok(fault.message.startsWith(`${server.origin}/x.img: `))
  return { fault, seen: server.seen.slice(2) }
}

test('goes on after the last byte, with a closed range and the version', async () => {
  const { got, seen } = await streamed(behave((n) => (n === 2 ? { cutAfter: 300_000 } : {})))
  assert.ok(got.equals(BYTES))
  assert.is(seen.length, 2)
  assert.is(seen[0]?.headers.range, undefined)
  assert.match(seen[1]?.headers.range ?? '', /^bytes=[1-9]\d*-1000002$/)
  assert.is(seen[1]?.headers['if-range'], '"one"')
})

test('a server that sends all of a file where If-Range has an ETag is asked without it', async () => {
  let etag = '"one"'
  const answer: Answer = (request, response, count) => {
    if (request.headers['if-range'] !== undefined) {
      delete request.headers.range
      delete request.headers['if-range']
    }
    sendFile(BYTES, request, response, { etag, ...(count === 2 ? { cutAfter: 300_000 } : {}) })
  }
  const { got, seen } = await streamed(answer)
  assert.ok(got.equals(BYTES))
  assert.match(seen.at(-1)?.headers.range ?? '', /^bytes=[1-9]\d*-1000002$/)
  const { fault } = await broken((request, response, count) => {
    etag = count < 4 ? '"one"' : '"two"'
    answer(request, response, count)
  })
  assert.match(fault.message, 'the server sent the whole file where a part was asked for')
})

test('survives a hundred cuts at random bytes', async () => {
  const random = createRandom(7)
  let cuts = 0
  const { got } = await streamed(
    behave((count) => {
      if (count > 1000 || cuts === 100) return {}
      cuts += 1
      return { cutAfter: Math.floor(random() * 20_000) + 1 }
    }),
  )
  assert.is(cuts, 100)
  assert.ok(got.equals(BYTES))
})

test('reads at a place through cuts as well', async () => {
  const answer = behave((count) => (count % 2 === 0 && count < 1000 ? { cutAfter: 1000 } : {}))
  await using server = await startHostileServer(answer)
  await using source = await resuming.open(`${server.origin}/x.img`)
  const into = Buffer.alloc(5000)
  assert.is(await source.readAt?.(into, 4321), into.length)
  assert.ok(into.equals(BYTES.subarray(4321, 9321)))
})

test('takes the date where there is no strong ETag', async () => {
  const weak = { etag: 'W/"one"', lastModified: DATE }
  const { got, seen } = await streamed(
    behave((n) => (n === 2 ? { ...weak, cutAfter: 1000 } : weak)),
  )
  assert.ok(got.equals(BYTES))
  assert.is(seen[1]?.headers['if-range'], DATE)
})

test('goes on after a stall', async () => {
  const answer = behave((n) => (n === 2 ? { stallAfter: 300_000 } : {}))
  await using server = await startHostileServer(answer)
  const hasty = createSources({ env: {}, retryMs: 1, stallMs: 250 })
  await using source = await hasty.open(`${server.origin}/x.img`)
  assert.ok(BYTES.equals(await collect(source.stream())))
})

test('a slow reader is no stall', async () => {
  await using server = await startHostileServer(behave(() => ({})))
  const hasty = createSources({ env: {}, retryMs: 1, stallMs: 300 })
  await using source = await hasty.open(`${server.origin}/x.img`)
  let got = 0
  let asked = 0
  let chunks = 0
  for await (const chunk of source.stream()) {
    chunks += 1
    got += chunk.length
    if (chunks === 1) {
      asked = server.seen.length
      await new Promise((resolve) => setTimeout(resolve, 700))
    } else if (chunks === 2) assert.is(server.seen.length, asked, 'what it had was thrown away')
  }
  assert.is(got, BYTES.length)
})

test('goes on after answers that mean "later"', async () => {
  const { got, seen } = await streamed((request, response, count) => {
    if (count === 2) sendFile(BYTES, request, response, { cutAfter: 5000 })
    else if (count < 6 && count > 2) {
      response.writeHead([503, 429, 502][count - 3] ?? 503, { 'retry-after': '0' }).end('busy')
    } else sendFile(BYTES, request, response)
  })
  assert.ok(got.equals(BYTES))
  assert.is(seen.length, 5)
})

test('takes parts that are smaller than asked for', async () => {
  const { got } = await streamed((request, response, count) => {
    const [, from = '0'] = /^bytes=(\d+)-\d+$/.exec(request.headers.range ?? '') ?? []
    if (count > 2) request.headers.range = `bytes=${from}-${Number(from) + 99_999}`
    sendFile(BYTES, request, response, count === 2 ? { cutAfter: 1000 } : {})
  })
  assert.ok(got.equals(BYTES))
})

test('gives up after a few tries without a byte, and says where', async () => {
  const { fault, seen } = await broken(
    behave((n) => (n === 2 ? { cutAfter: 300_000 } : n < 1000 ? { cutAfter: 0 } : {})),
  )
  assert.match(
    fault.message,
    /: connection closed by the server; gave up after 5 more tries at byte [1-9]\d* of 1000003$/,
  )
  assert.is(seen.length, 6)
})

test('a file that is shorter than the server says is never taken as whole', async () => {
  await using server = await startHostileServer((request, response, count) => {
    const whole = Buffer.concat([BYTES, Buffer.alloc(500)])
    const cutAfter = BYTES.length - Number(/\d+/.exec(request.headers.range ?? '0')?.[0])
    sendFile(whole, request, response, count < 2 ? {} : { cutAfter })
  })
  await using source = await resuming.open(`${server.origin}/x.img`)
  const fault = await faultOf(() => collect(source.stream()))
  assert.match(fault.message, /gave up .* at byte 1000003 of 1000503$/)
})

test('notices another version, and never joins two files', async () => {
  const cut = { cutAfter: 300_000 }
  for (const later of [{ etag: '"two"' }, { etag: null, lastModified: DATE }]) {
    const { fault } = await broken((request, response, count) => {
      const behaviour = count < 2 ? {} : count === 2 ? cut : later
      sendFile(count <= 2 ? BYTES : OTHER, request, response, behaviour)
    })
    assert.match(fault.message, /(the file on the server changed|the whole file) .*at byte \d+ of/)
  }
})

test('notices the same ETag with another size', async () => {
  const { fault } = await broken(
    behave((n) => (n === 2 ? { cutAfter: 300_000 } : n < 1000 ? { totalLie: 2_000_000 } : {})),
  )
  assert.match(fault.message, /the file on the server changed at byte \d+ of 1000003$/)
  assert.match(fault.hint ?? '', /start over/)
})

test('notices a file that changed since it was found', async () => {
  const { fault } = await broken(behave((n) => (n < 1000 ? { etag: '"two"' } : {})))
  assert.match(fault.message, /the file on the server changed at byte 0 of/)
  const longer = await broken((request, response, count) =>
    sendFile(count < 2 ? BYTES : BYTES.subarray(1), request, response),
  )
  assert.match(longer.fault.message, /the file on the server changed at byte 0 of/)
})

test('a part whose length is not what its range says is refused', async () => {
  for (const lengthLie of [-1, 1]) {
    const { fault } = await broken(
      behave((n) => (n === 2 ? { cutAfter: 300_000 } : n < 1000 ? { lengthLie } : {})),
    )
    assert.match(fault.message, /the server sent other bytes than were asked for at byte/)
  }
})

test('bytes after the end of an answer hurt nobody', async () => {
  await using server = await startHostileServer((request, response, count) => {
    if (count < 2) return sendFile(BYTES, request, response)
    const head = 'HTTP/1.1 200 OK\r\nETag: "one"\r\nContent-Length: 1000003\r\n\r\n'
    request.socket.end(Buffer.concat([Buffer.from(head), BYTES, Buffer.from('and some more')]))
  })
  await using source = await resuming.open(`${server.origin}/x.img`)
  assert.ok(BYTES.equals(await collect(source.stream())))
})

test('without ranges or a version it cannot go on, and says so', async () => {
  for (const [behaviour, words] of [
    [{ ranges: false }, /cannot resume \(the server sends no parts\) at byte \d+ of 1000003$/],
    [{ etag: null }, /cannot resume \(the server sends no version of the file\) at byte \d+ of/],
  ] as const) {
    const { fault, seen } = await broken(
      behave((n) => (n < 1000 ? { ...behaviour, cutAfter: 300_000 } : behaviour)),
    )
    assert.match(fault.message, words)
    assert.match(fault.hint ?? '', /download the image first/)
    assert.is(seen.length, 1)
  }
})

const temporary = () => mkdtempDisposable(join(tmpdir(), 'flasher-tls-'))

const serve = (certificate?: Certificate) =>
  startHostileServer((request, response) => sendFile(BYTES, request, response), certificate)

const sourcesWith = (env: Readonly<Record<string, string>>) => createSources({ env, retryMs: 1 })

test('trusts the authorities of FLASHER_CA_FILE, and no unknown one', async () => {
  await using folder = await temporary()
  const { caFile, certificate } = await makeAuthority(folder.path)
  await using server = await serve(certificate)
  const url = `${server.origin}/x.img`
  const fault = await faultOf(() => sourcesWith({}).open(url))
  assert.is(fault.code, 'input-missing')
  assert.match(fault.message, /\(the certificate was issued by an unknown authority\)$/)
  assert.match(fault.hint ?? '', /FLASHER_CA_FILE/)
  await using source = await sourcesWith({ FLASHER_CA_FILE: caFile }).open(url)
  assert.ok(BYTES.equals(await collect(source.stream())))
  const wrongName = url.replace('127.0.0.1', 'localhost')
  const other = await faultOf(() => sourcesWith({ FLASHER_CA_FILE: caFile }).open(wrongName))
  assert.match(other.message, /\(the certificate is for another host name\)$/)
})

test('takes a bundle of several, with text between them', async () => {
  await using folder = await temporary()
  const { caFile, certificate } = await makeAuthority(folder.path)
  const bundle = join(folder.path, 'bundle.pem')
  await writeFile(
    bundle,
    `# ours\n${certificate.cert}\nsubject=x\n${await readFile(caFile, 'utf8')}`,
  )
  await using server = await serve(certificate)
  await using source = await sourcesWith({ FLASHER_CA_FILE: bundle }).open(`${server.origin}/x`)
  assert.is(source.sizeBytes, BYTES.length)
})

test('says what is wrong with FLASHER_CA_FILE', async () => {
  await using folder = await temporary()
  const at = (name: string) => join(folder.path, name)
  await writeFile(at('empty.pem'), 'nothing')
  const damaged = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
  await writeFile(at('damaged.pem'), damaged)
  for (const [name, code, words] of [
    ['absent.pem', 'input-missing', /FLASHER_CA_FILE cannot be read: .*absent\.pem does not exist/],
    ['empty.pem', 'input-invalid', /empty\.pem: it holds no PEM certificate$/],
    ['damaged.pem', 'input-invalid', /damaged\.pem: a certificate in it is damaged/],
  ] as const) {
    const sources = sourcesWith({ FLASHER_CA_FILE: at(name) })
    const fault = await faultOf(() => sources.open('https://127.0.0.1:1/x.img'))
    assert.is(fault.code, code)
    assert.match(fault.message, words)
  }
})

test('goes through the proxy of the environment, in either case of its name', async () => {
  await using server = await serve()
  const { port } = new URL(server.origin)
  for (const name of ['http_proxy', 'HTTP_PROXY']) {
    await using proxy = await startConnectProxy()
    const sources = sourcesWith({ [name]: `http://me:hidden@${proxy.address}` })
    await using source = await sources.open(`http://files.test:${port}/x.img`)
    assert.ok(BYTES.equals(await collect(source.stream())))
    assert.ok(proxy.asked.includes(`GET http://files.test:${port}/x.img`))
    assert.is(proxy.authorizations[0], `Basic ${btoa('me:hidden')}`)
  }
})

test('goes through a tunnel for https', async () => {
  await using folder = await temporary()
  const { caFile, certificate } = await makeAuthority(folder.path)
  await using server = await serve(certificate)
  const { port } = new URL(server.origin)
  for (const name of ['https_proxy', 'HTTPS_PROXY']) {
    await using proxy = await startConnectProxy()
    const sources = sourcesWith({ [name]: proxy.address, FLASHER_CA_FILE: caFile })
    await using source = await sources.open(`https://files.test:${port}/x.img`)
    assert.ok(BYTES.equals(await collect(source.stream())))
    const into = Buffer.alloc(10)
    assert.is(await source.readAt?.(into, 1000), 10)
    assert.ok(into.equals(BYTES.subarray(1000, 1010)))
    assert.is(proxy.asked[0], `CONNECT files.test:${port}`)
  }
})

test('goes round the proxy where no_proxy says so', async () => {
  await using server = await serve()
  for (const [name, direct] of [
    ['no_proxy', 'other.test,127.0.0.1'],
    ['NO_PROXY', 'other.test,127.0.0.1'],
    ['no_proxy', 'fd00::/8, 127.0.0.0/8'],
  ] as const) {
    await using proxy = await startConnectProxy()
    const sources = sourcesWith({ http_proxy: proxy.address, [name]: direct })
    await using source = await sources.open(`${server.origin}/x.img`)
    assert.is(source.sizeBytes, BYTES.length)
    assert.equal(proxy.asked, [])
  }
})

test('names a proxy that is not there, without its password', async () => {
  const port = await findPort()
  const sources = sourcesWith({ http_proxy: `http://me:hidden@127.0.0.1:${port}` })
  const fault = await faultOf(() => sources.open('http://files.test/x.img'))
  assert.match(fault.message, `the proxy 127.0.0.1:${port} cannot be reached: connection refused`)
  assert.not.match(fault.message, 'hidden')
})

test('says so where the proxy refuses, or is none', async () => {
  await using proxy = await startConnectProxy(407)
  const refused = sourcesWith({ https_proxy: `http://me:hidden@${proxy.address}` })
  const fault = await faultOf(() => refused.open('https://files.test/x.img'))
  assert.is(
    fault.message,
    'image URL not reachable: https://files.test/x.img (the proxy refused (HTTP 407))',
  )
  const odd = sourcesWith({ http_proxy: 'socks5://me:hidden@127.0.0.1:1' })
  const misuse = await faultOf(() => odd.open('http://files.test/x.img'))
  assert.is(misuse.code, 'misuse')
  assert.is(misuse.message, 'http_proxy is not the address of an http proxy')
})

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
  await using source = await resuming.open(`${server.origin}/0`)
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
  await using source = await resuming.open(`${server.origin}/x.img`)
  await first[Symbol.asyncDispose]()
  led = second.origin
  assert.ok(BYTES.equals(await collect(source.stream())))
})

test('asks many parts at once without the way round', async () => {
  await using other = await startHostileServer(decent)
  await using server = await startHostileServer(redirectTo(`${other.origin}/x.img`))
  await using source = await resuming.open(`${server.origin}/x.img`)
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
    const fault = await faultOf(() => resuming.open(`${server.origin}/x.img`))
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
  await using source = await resuming.open(`${withSecret(server.origin)}/x.img`)
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
    await using source = await resuming.open(`${server.origin}/x.img`)
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
  await using source = await resuming.open(`${server.origin}/x.img`)
  const fault = await faultOf(() => collect(source.stream()))
  assert.is(fault.code, 'source-broken')
  assert.match(fault.message, /the server answered HTTP 403 at byte \d+ of 1000003$/)
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
  const gone = await faultOf(() => resuming.open('http://me:hidden@127.0.0.1:1/x.img'))
  assert.not.match(everythingOf(gone), /hidden/)
})

test.run()
