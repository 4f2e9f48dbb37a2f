import { createHash, randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { request as requestPlain, type IncomingMessage } from 'node:http'
import { request as requestTls } from 'node:https'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { makeAuthority } from '#test/support/http/authority.ts'
import { readBlocks } from '#test/support/docs.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { exchange } from '#test/support/http/raw-http.ts'
import { NGINX, startNginx } from '#test/support/http/nginx.ts'

interface Wish {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
  /** Which address of this host asks. */
  readonly from?: string
}

/** The answer's head; its body is read by who wants it. */
function ask(url: string, { method = 'GET', headers = {}, body, from }: Wish = {}) {
  const request = url.startsWith('https:') ? requestTls : requestPlain
  return new Promise<IncomingMessage>((resolve, reject) => {
    request(url, { method, headers, localAddress: from, rejectUnauthorized: false }, resolve)
      .once('error', reject)
      .end(body)
  })
}

async function readAll(answer: AsyncIterable<Buffer>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(answer))
}

/** The documented files, with this test's ports and paths in the place of the documented ones. */
async function startProxied() {
  const home = await createServerHome()
  const [backend, https, http] = [await findPort(), await findPort(), await findPort()]
  await makeAuthority(home.dir)
  const [site = ''] = readBlocks('server.md', 'nginx')
  const conf = site
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${backend}`)
    .replaceAll('listen 443', `listen 127.0.0.1:${https}`)
    .replaceAll('listen 80', `listen 127.0.0.1:${http}`)
    .replaceAll('/etc/flasher/fullchain.pem', home.at('server.pem'))
    .replaceAll('/etc/flasher/privkey.pem', home.at('server.key'))
  const toml =
    readBlocks('server.md', 'toml').find((block) => block.includes('trusted_proxies')) ?? ''
  await home.write('flasher.toml', toml)
  const server = await home.start(['--config', home.at('flasher.toml')], {
    FLASHER_SERVER_PORT: String(backend),
    FLASHER_SERVER_HOST: '',
    FLASHER_ADMIN_PASSWORD: 'pass word',
  })
  const nginx = await startNginx(home.at('nginx'), conf, () =>
    ask(`http://127.0.0.1:${http}/healthz`),
  )
  return {
    https: `https://127.0.0.1:${https}`,
    http: `http://127.0.0.1:${http}`,
    async [Symbol.asyncDispose]() {
      await nginx[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
      await home[Symbol.asyncDispose]()
    },
  }
}

const test = suite('behind nginx as documented')

const login = async (base: string, password: string) => {
  const answer = await ask(`${base}/ui/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: base },
    body: new URLSearchParams({ password }).toString(),
  })
  answer.resume()
  return { status: answer.statusCode, cookie: answer.headers['set-cookie']?.[0] ?? '' }
}

if (existsSync(NGINX)) {
  test('sessions, addresses, scripts, live pages and uploads pass as they must', async () => {
    await using site = await startProxied()
    const { status, cookie } = await login(site.https, 'pass word')
    assert.is(status, 303)
    for (const word of ['Secure', 'HttpOnly', 'SameSite=Strict']) assert.match(cookie, word)
    const headers = { cookie: cookie.split(';')[0] ?? '' }

    // A machine, with addresses that it makes up.
    const script = await ask(`${site.http}/pxe/52-54-00-12-34-56`, {
      from: '127.0.0.77',
      headers: { 'x-forwarded-for': '203.0.113.9', forwarded: 'for=203.0.113.8;proto=https' },
    })
    assert.match((await readAll(script)).toString(), '#!ipxe')
    const bootstrap = await ask(`${site.http}/pxe-bootstrap.ipxe`)
    assert.match((await readAll(bootstrap)).toString(), `${site.http}/pxe/`)
    const machine = await ask(`${site.https}/machines/52:54:00:12:34:56`, { headers })
    const { last_seen_ip: seen } = JSON.parse((await readAll(machine)).toString())
    assert.is(seen, '127.0.0.77')

    // Pages are not for plain HTTP.
    const page = await ask(`${site.http}/ui/machines?q=a`)
    page.resume()
    assert.equal(
      [page.statusCode, page.headers.location],
      [301, 'https://flasher.example/ui/machines?q=a'],
    )

    // The first event arrives while the channel is still open, and the next when something happens.
    const channel = await ask(`${site.https}/events/machines`, { headers })
    const chunks = channel[Symbol.asyncIterator]()
    let text = ''
    while (!text.includes('52:54:00:12:34:56')) text += String((await chunks.next()).value)
    await readAll(await ask(`${site.http}/pxe/52-54-00-99-99-99`))
    while (!text.includes('52:54:00:99:99:99')) text += String((await chunks.next()).value)
    channel.destroy()

    // A file above nginx's own limits is uploaded whole, and read back with ranges.
    const bytes = randomBytes(5_000_000)
    const put = await ask(`${site.https}/boot/large.bin`, { method: 'PUT', headers, body: bytes })
    put.resume()
    assert.ok((put.statusCode ?? 500) < 300, String(put.statusCode))
    const whole = await ask(`${site.http}/boot/large.bin`)
    assert.is(whole.headers['content-length'], '5000000')
    assert.is(digest(await readAll(whole)), digest(bytes))
    const part = await ask(`${site.http}/boot/large.bin`, { headers: { range: 'bytes=10-19' } })
    assert.is(part.statusCode, 206)
    assert.equal(await readAll(part), bytes.subarray(10, 20))
  })

  test('what firmware and boot loaders ask for is answered without HTTPS', async () => {
    await using site = await startProxied()
    const { cookie } = await login(site.https, 'pass word')
    const headers = { cookie: cookie.split(';')[0] ?? '' }
    for (const name of ['shimx64.efi', 'grubx64.efi', 'ipxe.efi']) {
      const put = await ask(`${site.https}/boot/${name}`, { method: 'PUT', headers, body: 'bytes' })
      put.resume()
      assert.ok((put.statusCode ?? 500) < 300, name)
    }
    const port = Number(new URL(site.http).port)
    for (const [who, ...heads] of FIRMWARE) {
      for (const head of heads) {
        const [line = '', ...fields] = head.split('\n')
        const lines = [`${line} HTTP/1.1`, `Host: 127.0.0.1`, ...fields, 'Connection: close']
        const answer = await exchange(port, `${lines.join('\r\n')}\r\n\r\n`)
        assert.match(answer, /^HTTP\/1\.1 20[06] /, `${who}: ${line}\n${answer.slice(0, 300)}`)
        assert.not.match(answer, 'https:', `${who}: ${line}`)
      }
    }
  })

  test('a guesser behind the proxy is slowed down by its own address', async () => {
    await using site = await startProxied()
    let last: number | undefined = 0
    for (let guess = 0; guess < 12 && last !== 429; guess += 1) {
      last = (await login(site.https, `wrong ${guess}`)).status
    }
    assert.is(last, 429)
  })
}

/** Who asks, and the heads of its requests, as they were seen on the wire; `Host` stands second in each. */
const FIRMWARE = [
  [
    'UEFI HTTP Boot, then shim',
    'HEAD /boot/shimx64.efi\nAccept: */*\nUser-Agent: UefiHttpBoot/1.0',
    'GET /boot/shimx64.efi\nAccept: */*\nUser-Agent: UefiHttpBoot/1.0',
    'HEAD /boot//grubx64.efi\nAccept: */*\nUser-Agent: UefiHttpBoot/1.0',
    'GET /boot//grubx64.efi\nAccept: */*\nUser-Agent: UefiHttpBoot/1.0',
  ],
  [
    'an address that ends in a slash',
    'HEAD //boot/ipxe.efi\nAccept: */*\nUser-Agent: UefiHttpBoot/1.0',
    'GET //boot/ipxe.efi\nAccept: */*\nUser-Agent: UefiHttpBoot/1.0',
  ],
  [
    'GRUB',
    'GET /grub/grub.cfg\nUser-Agent: GRUB 2.12-9+deb13u2',
    'GET //grub/grub.cfg\nUser-Agent: GRUB 2.12-9+deb13u2',
    'GET /pxe/52:54:00:12:34:56.grub?buildarch=x86_64&platform=efi&server=127.0.0.1&offered=\nUser-Agent: GRUB 2.12-9+deb13u2',
  ],
  [
    'iPXE',
    'GET /pxe-bootstrap.ipxe\nUser-Agent: iPXE/1.21.1+ (g1d4be)',
    'GET /boot/autoexec.ipxe\nUser-Agent: iPXE/2.0.0',
    'GET /pxe/52-54-00-12-34-56?buildarch=x86_64&platform=pcbios&hostname=\nUser-Agent: iPXE/1.21.1+ (g1d4be)',
    'GET /boot/ipxe.efi?mac=52-54-00-12-34-56\nUser-Agent: iPXE/1.21.1+ (g1d4be)\nRange: bytes=0-3',
  ],
  [
    'the live system',
    'GET /pxe/52:54:00:12:34:56/plan?features=first-boot,capture,disk-id\nUser-Agent: flasher',
    'GET /images\nUser-Agent: flasher',
    'GET /catalog.toml\nUser-Agent: flasher',
  ],
] as const

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

test.run()
