import { scryptSync } from 'node:crypto'
import { once } from 'node:events'
import * as http from 'node:http'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createPasswords } from '#fleet/access/passwords.ts'
import { codeOf, exchange } from '#test/support/http/raw-http.ts'
import { PASSWORD } from '#test/support/server/assembled.ts'
import { diskOf, entryOf, REF, setOf } from '#test/support/server/machine-fixture.ts'
import {
  asJson,
  checkUp,
  createTestServer,
  listen,
  type TestServer,
} from '#test/support/server/server.ts'

const MAC = '52:54:00:12:34:56'
const JSON_TYPE = { 'content-type': 'application/json' }
const test = suite('attacks')

test('a Host header goes into no script unless it is one', async () => {
  await using server = await createTestServer()
  await using site = await listen(server)
  const bad = [
    'x y',
    'x;reboot',
    'x/../../evil',
    'x@evil',
    'evil?x',
    'x#y',
    '${net0/mac}',
    'x&&shell',
    'x:99999',
    'x:0',
    'x:',
    ':8080',
    '[::1',
    '::1',
    'x"y',
    "x'y",
    '<script>',
    'x\\y',
    'a..b',
    '-x',
    'x'.repeat(300),
    '\x7f',
    '\xe4',
    '1.2.3',
    '0x7f.1',
  ]
  for (const host of bad) {
    for (const path of ['/pxe-bootstrap.ipxe', `/pxe/${MAC}`, '/version', '/boot/autoexec.ipxe']) {
      const text = await exchange(
        site.port,
        Buffer.from(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`, 'latin1'),
      )
      assert.is(codeOf(text), 400, `${host} ${path}: ${text.slice(0, 200)}`)
    }
  }
  for (const good of ['x', 'x:80', '10.0.0.1:8080', '[fe80::1]:8080', 'Flasher.Example.']) {
    const text = await exchange(
      site.port,
      `GET /pxe-bootstrap.ipxe HTTP/1.1\r\nHost: ${good}\r\nConnection: close\r\n\r\n`,
    )
    assert.is(codeOf(text), 200, good)
    assert.match(text, `http://${good.toLowerCase()}/pxe/`)
  }
  const twice = await exchange(
    site.port,
    'GET /version HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n',
  )
  assert.is(codeOf(twice), 400)
  assert.is(await server.machines.count(), 0)
  await checkUp(server)
})

test('allowed_hosts keeps other names out', async () => {
  await using server = await createTestServer({
    env: {
      FLASHER_SERVER_ALLOWED_HOSTS: 'flasher.lan,10.0.0.1',
      FLASHER_SERVER_PUBLIC_URL: 'https://boxes.test',
    },
  })
  const rows = [
    ['flasher.lan', 200],
    ['FLASHER.lan:8080', 200],
    ['10.0.0.1:80', 200],
    ['boxes.test', 200],
    ['evil.test', 400],
    ['flasher.lan.evil.test', 400],
  ] as const
  for (const [host, status] of rows) {
    const answer = await server.request('/version', { headers: { host } })
    assert.is(answer.status, status, host)
  }
})

test('a proxy that leaves out the Host header is named', async () => {
  await using server = await createTestServer()
  const post = async (headers: Readonly<Record<string, string>>) => {
    const body = new URLSearchParams({ password: PASSWORD })
    const answer = await server.request('/ui/login', { method: 'POST', body, headers })
    assert.is(answer.status, 403)
    return await answer.text()
  }
  const dot = { host: 'a.test.', origin: 'http://a.test' }
  const body = new URLSearchParams({ password: PASSWORD })
  const same = await server.request('/ui/login', { method: 'POST', body, headers: dot })
  assert.is(same.status, 303, 'the dot of the root is no other site')
  const behind = { host: '127.0.0.1:8080', origin: 'https://flasher.example' }
  for (const headers of [behind, { ...behind, 'sec-fetch-site': 'same-origin' }]) {
    const text = await post(headers)
    assert.match(text, /proxy in front of this server does not pass on the Host header/)
    assert.match(
      text,
      'the page is at flasher.example, and this server was asked for 127.0.0.1:8080',
    )
    assert.match(text, 'proxy_set_header Host $http_host')
  }
  const other = await post({ ...behind, 'sec-fetch-site': 'cross-site' })
  assert.not.match(other, 'proxy')
})

test('another site can send no form', async () => {
  await using server = await createTestServer()
  const ask = await server.operator()
  const posts: readonly (readonly [string, RequestInit])[] = [
    [`/machines/${MAC}`, asJson({}, 'PUT')],
    ['/machines/bulk', asJson({ action: 'delete', q: '' })],
    [`/pxe/${MAC}/done`, { method: 'POST' }],
    ['/ui/logout', { method: 'POST' }],
    ['/ui/login', { method: 'POST', body: new URLSearchParams({ password: PASSWORD }) }],
  ]
  const foreign = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: 'http://evil.test' },
    { origin: 'null' },
    { origin: 'http://flasher.test:9999' },
    { origin: 'http://flasher.test:8080.evil.test' },
    { origin: 'nonsense' },
    { 'sec-fetch-site': 'same-origin', origin: 'http://evil.test' },
    { 'sec-fetch-site': 'cross-site', origin: 'null' },
    { 'sec-fetch-site': 'none', origin: 'null' },
    { 'sec-fetch-site': 'same-origin', origin: 'nonsense' },
  ]
  for (const [path, init] of posts) {
    for (const headers of foreign) {
      const answer = await ask(path, { ...init, headers: { ...init.headers, ...headers } })
      assert.is(answer.status, 403, `${path} ${JSON.stringify(headers)}`)
    }
  }
  assert.is(await server.machines.count(), 0)
  for (const headers of [
    {},
    { origin: 'http://flasher.test:8080', 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
    // Its own origin was hidden by an extension of the browser, or by a proxy.
    { origin: 'null', 'sec-fetch-site': 'same-origin' },
  ]) {
    const wish = asJson({}, 'PUT')
    const answer = await ask(`/machines/${MAC}`, {
      ...wish,
      headers: { ...JSON_TYPE, ...headers },
    })
    assert.is(answer.status, 200)
  }
})

test('behind a proxy, its name for us counts', async () => {
  await using server = await createTestServer({
    env: { FLASHER_SERVER_PUBLIC_URL: 'https://boxes.test' },
  })
  const body = new URLSearchParams({ password: PASSWORD })
  const headers = { origin: 'https://boxes.test' }
  const answer = await server.request('/ui/login', { method: 'POST', body, headers })
  assert.is(answer.status, 303)
})

test('an address is taken from proxies that are trusted, and from no one else', async () => {
  await using server = await createTestServer()
  await using site = await listen(server)
  const seenAs = async (headers: Record<string, string>, trustedProxies: readonly string[]) => {
    server.set({ FLASHER_SERVER_TRUSTED_PROXIES: trustedProxies.join(',') })
    await fetch(`${site.url}/pxe/${MAC}`, { headers })
    return (await server.machines.list())[0]?.last_seen_ip
  }
  const spoof = { 'x-forwarded-for': '192.0.2.1' }
  assert.is(await seenAs(spoof, []), '127.0.0.1')
  assert.is(await seenAs(spoof, ['10.0.0.0/8']), '127.0.0.1')
  assert.is(await seenAs(spoof, ['127.0.0.1']), '192.0.2.1')
  const chain = { 'x-forwarded-for': '1.1.1.1, 192.0.2.9, 10.0.0.3' }
  assert.is(await seenAs(chain, ['127.0.0.0/8', '10.0.0.0/8']), '192.0.2.9')
  const standard = { forwarded: 'for=1.1.1.1, for="[2001:db8::7]:4711";proto=https' }
  assert.is(await seenAs(standard, ['127.0.0.0/8']), '2001:db8::7')
  assert.is(await seenAs({ 'x-forwarded-for': 'rubbish' }, ['127.0.0.0/8']), '127.0.0.1')
  assert.is(await seenAs({ 'x-forwarded-for': '::ffff:192.0.2.5' }, ['127.0.0.0/8']), '192.0.2.5')
  const endless = { 'x-forwarded-for': Array.from({ length: 500 }, () => '127.0.0.1').join(',') }
  assert.is(await seenAs(endless, ['127.0.0.0/8']), '127.0.0.1')
})

test('unknown machines by the thousand stay bounded, and get a script each', async () => {
  let time = Date.now()
  await using server = await createTestServer({
    env: { FLASHER_PXE_DISCOVERY_PER_MINUTE: '50', FLASHER_PXE_DISCOVERY_ROWS: '80' },
    now: () => new Date(time),
  })
  const flood = async (from: number, count: number) => {
    const answers = await Promise.all(
      Array.from({ length: count }, (_, n) => {
        const tail = (from + n)
          .toString(16)
          .padStart(6, '0')
          .replaceAll(/(..)(?=.)/g, '$1:')
        return server.request(`/pxe/02:00:00:${tail}`)
      }),
    )
    for (const answer of answers) {
      assert.is(answer.status, 200)
      assert.match(await answer.text(), /^#!ipxe\n/)
    }
  }
  await flood(0, 500)
  assert.is(await server.machines.count(), 50)
  time += 61_000
  await flood(1000, 500)
  assert.is(await server.machines.count(), 80)
  const told = await server.journal.list({ kind: 'machine.discovery.refused', limit: 9 })
  assert.is(told.length, 2)
  const plan = await server.request('/pxe/02:ff:00:00:00:01/plan')
  assert.is(plan.status, 200)
  assert.is(await server.machines.count(), 80)
  const { status } = await server.request('/pxe/02:00:00:00:00:01')
  assert.is(status, 200)
  await checkUp(server)
})

test('malformed HTTP is refused, and the server goes on', async () => {
  await using server = await createTestServer()
  await using site = await listen(server)
  const messages = [
    'GARBAGE\r\n\r\n',
    '\x00\x01\x02\r\n\r\n',
    'GET / HTTP/9.9\r\nHost: x\r\n\r\n',
    'GET /healthz HTTP/1.1\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nHost: x\r\nBad Header: y\r\n\r\n',
    `GET /healthz HTTP/1.1\r\nHost: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`,
    `GET /${'a'.repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`,
    'POST /ui/login HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    'POST /ui/login HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n',
    'POST /ui/login HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
    'POST /ui/login HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    'GET /%zz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    'GET /pxe/%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    'GET http://evil.test/pxe-bootstrap.ipxe HTTP/1.1\r\nHost: a b\r\nConnection: close\r\n\r\n',
    'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
    'CONNECT evil.test:80 HTTP/1.1\r\nHost: x\r\n\r\n',
    'GET /healthz HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n',
  ]
  for (const message of messages) {
    const text = await exchange(site.port, Buffer.from(message, 'latin1'), 1000)
    const code = codeOf(text)
    const isUpgrade = message.includes('Upgrade')
    const isClear = (code >= 400 && code < 500) || text === '' || (isUpgrade && code === 200)
    assert.ok(isClear, `${JSON.stringify(message.slice(0, 80))}: ${text.slice(0, 200)}`)
    assert.not.match(text, /\n\s+at /)
  }
  await checkUp(server)
})

test('an absolute request target does not stand in for the Host header', async () => {
  await using server = await createTestServer()
  await using site = await listen(server)
  const text = await exchange(
    site.port,
    'GET http://evil.test/pxe-bootstrap.ipxe HTTP/1.1\r\nHost: real.test\r\nConnection: close\r\n\r\n',
  )
  assert.not.match(text, 'evil')
})

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

test('each wrong one after the third waits longer; a right one passes regardless', async () => {
  const clock = { now: Date.now() }
  await using server = await createTestServer({ now: () => new Date(clock.now) })
  const ask = await server.operator()
  const made = await ask('/tokens', asJson({ name: 'ci', scopes: ['read'] }))
  const { token } = await made.json()
  const guess = (n: number) => server.request('/machines', bearer(`guess-${n}`))
  for (let n = 0; n < 4; n++) assert.is((await guess(n)).status, 401)
  const slowed = await guess(4)
  assert.is(slowed.status, 429)
  assert.is(slowed.headers.get('retry-after'), '1')
  assert.match((await slowed.json()).detail, 'too many wrong tokens')
  assert.is((await server.request('/machines', bearer(token))).status, 200)
  assert.is((await ask('/machines')).status, 200)
  const form = new URLSearchParams({ password: PASSWORD })
  const login = await server.request('/ui/login', { method: 'POST', body: form })
  assert.is(login.status, 303, 'no bearer is a password here')
  clock.now += 1000
  assert.is((await guess(5)).status, 401)
  assert.is((await guess(6)).headers.get('retry-after'), '2')
  const noted = await server.journal.list({ kind: 'auth.token.failed', limit: 20 })
  assert.ok(noted.length > 0)
  assert.not.match(JSON.stringify(noted), 'guess')
})

test('thousands of guesses at once are a handful of checks', async () => {
  await using server = await createTestServer()
  const answers = await Promise.all(
    Array.from({ length: 2000 }, async (_, n) => {
      const answer = await server.request('/machines', bearer(`guess-${n}`))
      return answer.status
    }),
  )
  const checked = answers.filter((status) => status === 401)
  assert.ok(checked.length >= 4 && checked.length <= 12, `${checked.length} were looked at`)
})

test('a rack that shows wrong boot tokens is counted, and its done is taken', async () => {
  await using server = await createTestServer({
    catalog: [entryOf(REF)],
    env: { FLASHER_PXE_TOKENS: 'require' },
    now: () => new Date(1_800_000_000_000),
  })
  const ask = await server.operator()
  const flash = { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' }
  await ask(`/machines/${MAC}`, asJson(flash, 'PUT'))
  const script = await (await server.request(`/pxe/${MAC}`)).text()
  const token = / flasher\.token=(\S+) /.exec(script)?.[1] ?? ''
  for (let n = 0; n < 30; n++) {
    assert.is((await server.request(`/pxe/${MAC}/plan`, bearer(`stale-${n}`))).status, 401)
    await server.request('/machines', bearer(`guess-${n}`))
  }
  assert.is((await server.request('/machines', bearer('guess'))).status, 429)
  assert.is((await server.request(`/pxe/${MAC}/plan`, bearer(token))).status, 200)
  const done = await server.request(`/pxe/${MAC}/done`, { method: 'POST', ...bearer(token) })
  assert.is(done.status, 204)
  const metrics = await (await ask('/metrics')).text()
  assert.match(metrics, /flasher_boot_tokens_refused_total\{request="plan"\} 30\n/)
})

/** Logs in from an address of this host's loopback. */
async function logIn(port: number, from: string, password: string): Promise<number> {
  const body = new URLSearchParams({ password }).toString()
  const request = http.request({
    port,
    host: '127.0.0.1',
    localAddress: from,
    path: '/ui/login',
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    agent: false,
  })
  request.end(body)
  const [answer]: http.IncomingMessage[] = await once(request, 'response')
  answer?.resume()
  return answer?.statusCode ?? 0
}

/** 0 for those that are still waiting when the server ends. */
const flood = (port: number, count: number) =>
  Array.from({ length: count }, (_, n) => logIn(port, `127.1.2.${n + 1}`, 'guess').catch(() => 0))

test('checks of one network that never end leave room for 25 of 25 from elsewhere', async () => {
  const held = Promise.withResolvers<void>()
  let checking = 0
  await using server = await createTestServer({
    async checkPassword(given) {
      if (given === PASSWORD) return true
      checking += 1
      await held.promise
      return false
    },
  })
  await using served = await listen(server)
  const answers = flood(served.port, 100)
  // So many are turned away only when its lanes are taken, and as many as may wait do.
  let refused = 0
  await new Promise<void>((resolve) => {
    for (const answer of answers) {
      void answer.then((status) => {
        refused += status === 429 ? 1 : 0
        if (refused === 82) resolve()
      })
    }
  })
  assert.is(checking, 2)
  const one = []
  for (let n = 0; n < 25; n++) one.push(await logIn(served.port, '127.9.9.1', PASSWORD))
  assert.equal(one, Array(25).fill(303))
  const many = Array.from({ length: 25 }, (_, n) => logIn(served.port, `127.9.${n}.1`, PASSWORD))
  assert.equal(await Promise.all(many), Array(25).fill(303), 'all at once')
  held.resolve()
  assert.is((await Promise.all(answers)).filter((status) => status === 401).length, 18)
  assert.is(await logIn(served.port, '127.1.2.200', PASSWORD), 303, 'and the lanes are free again')
})

test('with real hashes, 25 of 25 right logins pass beside a flood from another network', async () => {
  // A real one of less cost: 25 logins are a matter of seconds.
  const digest = scryptSync(PASSWORD.normalize('NFC'), 'saltsalt', 32, { N: 2 ** 12, r: 8, p: 1 })
  const hash = `$scrypt$ln=12,r=8,p=1$${btoa('saltsalt')}$${digest.toString('base64')}`
  const passwords = createPasswords({
    path: '/nonexistent',
    configured: () => ({ password: '', password_hash: hash }),
  })
  await using server = await createTestServer({ checkPassword: passwords.check })
  await using served = await listen(server)
  const isOver = { now: false }
  const guessers = Array.from({ length: 40 }, async (_, n) => {
    const seen: number[] = []
    for (let at = n; !isOver.now; at += 40) {
      seen.push(await logIn(served.port, `127.1.2.${(at % 254) + 1}`, 'guess').catch(() => 0))
    }
    return seen
  })
  const statuses = []
  for (let n = 0; n < 25; n++) {
    statuses.push(await logIn(served.port, '127.9.9.1', PASSWORD).catch(() => 0))
  }
  isOver.now = true
  assert.equal(statuses, Array(25).fill(303))
  const seen = (await Promise.all(guessers)).flat()
  assert.ok(seen.includes(429), 'it was a flood')
  assert.not.ok(seen.includes(503))
})

/** With a live system, and a machine that is armed for it. */
async function createArmed() {
  const server = await createTestServer({ catalog: [entryOf(REF)] })
  const { vmlinuz, initrd, squashfs } = setOf('x86_64')
  for (const name of [vmlinuz, initrd, squashfs]) await server.putBootFile(name, 'bytes')
  const ask = await server.operator()
  await server.request(`/pxe/${MAC}`)
  await server.request(`/pxe/${MAC}/inventory`, asJson({ disks: [diskOf('S1')] }))
  const armed = await ask(
    `/machines/${MAC}`,
    asJson(
      { boot_mode: 'flasher-flash-once', bty_image_ref: REF, target_disk_serial: 'S1' },
      'PUT',
    ),
  )
  assert.is(armed.status, 200)
  return { server, ask }
}

const head = (server: TestServer, path: string) => server.request(path, { method: 'HEAD' })
const recordsOf = async (server: TestServer) => ({
  machines: await server.machines.list(),
  events: await server.journal.list({ limit: 100 }),
})

test('of a script: its length, and no offer, however often', async () => {
  const { server } = await createArmed()
  await using _ = server
  const before = await recordsOf(server)
  for (let times = 0; times < 8; times += 1) {
    const answer = await head(server, `/pxe/${MAC}?buildarch=x86_64`)
    assert.is(answer.status, 200)
    assert.is(await answer.text(), '')
    assert.ok(Number(answer.headers.get('content-length')) > 100)
  }
  assert.equal(await recordsOf(server), before)
  const asked = await head(server, `/pxe/${MAC}?buildarch=x86_64`)
  const script = await (await server.request(`/pxe/${MAC}?buildarch=x86_64`)).text()
  assert.is(asked.headers.get('content-length'), String(Buffer.byteLength(script)))
  assert.match(script, 'vmlinuz')
  assert.not.match(script, 'loop')
  const [machine] = await server.machines.list()
  assert.is(machine?.cycle.offers, 1)
  await checkUp(server)
})

test('of a script: nobody is discovered', async () => {
  await using server = await createTestServer()
  const asked = await head(server, `/pxe/${MAC}`)
  assert.is(asked.status, 200)
  assert.is(await server.machines.count(), 0)
  const script = await (await server.request(`/pxe/${MAC}`)).text()
  assert.is(asked.headers.get('content-length'), String(Buffer.byteLength(script)))
  const nobody = await head(server, '/pxe/ff:ff:ff:ff:ff:ff')
  const exit = await (await server.request('/pxe/ff:ff:ff:ff:ff:ff')).text()
  assert.is(nobody.headers.get('content-length'), String(Buffer.byteLength(exit)))
  assert.is((await head(server, '/pxe/nonsense')).status, 400)
})

test('of a boot file: the machine is not taken for one that boots', async () => {
  const { server } = await createArmed()
  await using _ = server
  const before = await recordsOf(server)
  const asked = await head(server, `/boot/${setOf('x86_64').vmlinuz}?mac=${MAC}`)
  assert.equal([asked.status, asked.headers.get('content-length')], [200, '5'])
  assert.equal(await recordsOf(server), before)
  await server.request(`/boot/${setOf('x86_64').vmlinuz}?mac=${MAC}`)
  assert.is((await server.machines.list())[0]?.saw_flasher_boot, true)
})

test('of a plan: not with this method', async () => {
  const { server } = await createArmed()
  await using _ = server
  const before = await recordsOf(server)
  const asked = await head(server, `/pxe/${MAC}/plan`)
  assert.equal([asked.status, asked.headers.get('allow')], [405, 'GET'])
  assert.equal(await recordsOf(server), before)
})

test('of everything else: the headers that a GET has, over a socket too', async () => {
  await using server = await createTestServer()
  await using site = await listen(server)
  await server.putBootFile('vmlinuz', 'bytes')
  await server.request(`/pxe/${MAC}`)
  const headersOf = async (method: string, path: string) => {
    const text = await exchange(
      site.port,
      `${method} ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    )
    const [top = '', body = ''] = text.split('\r\n\r\n')
    if (method === 'HEAD') assert.is(body, '')
    const [, ...headers] = top.split('\r\n').filter((line) => !line.startsWith('Date:'))
    return { code: codeOf(text), headers: headers.toSorted() }
  }
  const paths = [
    ['/healthz', '/version', '/pxe-bootstrap.ipxe', `/pxe/${MAC}`, '/boot/vmlinuz'],
    ['/boot/autoexec.ipxe', '/boot/none', '/docs/api', '/openapi.json', '/ui', '/ui/login'],
    ['/machines', '/ui/nothing', '/nothing', '/pxe/nonsense', '/a/../b', '/ui/dashboard?q=1'],
  ].flat()
  for (const path of paths) {
    const got = await headersOf('GET', path)
    assert.equal(await headersOf('HEAD', path), got, path)
    assert.ok(
      got.headers.some((line) => /^content-length: \d+$/i.test(line)),
      path,
    )
  }
})

test.run()
