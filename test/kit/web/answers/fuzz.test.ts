/** Whatever path, `Host` and method a socket sends: both servers answer or close, and go on. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readBlocks } from '#test/support/docs.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'
import { findPort } from '#test/support/http/ports.ts'
import { startCache } from '#test/support/server/image-cache.ts'
import { NGINX, startNginx } from '#test/support/http/nginx.ts'
import { createLane, type RawRequest } from '#test/support/http/raw-lane.ts'

const SEED = 20_260_501
const LANES = 8
const COUNTS = { targets: 50, hosts: 25, combinations: 10_000 }

const MAC = '52:54:00:12:34:56'
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'CONNECT']
const TARGETS = [
  ['/', '/healthz', '/ui/login', `/pxe/${MAC}`, `/pxe/${MAC}/plan`, '/boot/x', '/catalog', '*'],
  ['/../', '/..', '/pxe/..', '/boot/../ui/login', '/b/./x', '/files/..', '/static/../x'],
  ['/%2e%2e/', '/.%2E', '/boot/%2e', '/%2e%2e%2f', '/..%5c', '/%252e%252e/'],
  ['/boot//x', '//', '//evil/..', '/\\', '/a\\..\\b', '/%5c', '/%', '/%zz', '/%ff', '/%00'],
  ['/a"b', '/<>', '/a#/..', '/\xff', '/?../..', '/?"\'%zz', `/pxe/%2f`, `/${'a'.repeat(3000)}`],
  ['http://a/healthz', 'http://a:99999/../', 'https://[::1/', 'http:\\\\a', 'ftp://a/', 'a'],
].flat()
/** null: none, as HTTP/1.0 has it. */
const HOSTS: readonly (string | null)[] = [
  [null, 'a', '', 'a:80', 'a:99999', 'a:0', 'a:', ':80', '[::1]:80', '[::1', '::1', '1.2.3'],
  ['xn--', 'a.0x7f', 'a b', 'a@b', 'a/../b', 'a..b', '${x}', '\xff', 'a\r\nHost: b'],
].flat()
const PIECES = ['/', '.', '..', '%2e', '\\', '%5c', '%2f', '//', ':', '@', '"', '#', '[', ']', 'a']

/** The same numbers from 0 to 1 at each run (mulberry32). */
function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

function listRequests(): readonly RawRequest[] {
  const random = createRandom(SEED)
  const garble = () =>
    Array.from({ length: 1 + random() * 6 }, () => PIECES[Math.floor(random() * PIECES.length)])
  const targets = fill(TARGETS, COUNTS.targets, () => `/${garble().join('')}`)
  const hosts = fill(HOSTS, COUNTS.hosts, () => `a${garble().join('')}`)
  return targets.flatMap((target) =>
    hosts.flatMap((host) => METHODS.map((method) => renderRequest(method, target, host))),
  )
}

/** The fixed ones, and as many others as are missing. */
const fill = <T>(fixed: readonly T[], length: number, make: () => T): readonly T[] => [
  ...fixed,
  ...Array.from({ length: length - fixed.length }, make),
]

function renderRequest(method: string, target: string, host: string | null): RawRequest {
  const [version, named] = host === null ? ['1.0', ''] : ['1.1', `Host: ${host}\r\n`]
  const text = `${method} ${target} HTTP/${version}\r\n${named}Connection: keep-alive\r\n\r\n`
  return { method, text }
}

/** Texts of requests by the status that they got; 0: a closed connection. */
async function sendAll(port: number): Promise<Map<number, string[]>> {
  const requests = listRequests()
  assert.is(requests.length, COUNTS.combinations)
  const found = new Map<number, string[]>()
  const waiting = requests.values()
  const work = async () => {
    using lane = createLane(port)
    // One iterator for all lanes: each takes the next that is left.
    for (const request of waiting) {
      const status = await lane.ask(request)
      found.set(status, [...(found.get(status) ?? []), request.text])
    }
  }
  await Promise.all(Array.from({ length: LANES }, work))
  return found
}

/** It answered clearly throughout, some of it well, and is still there. */
async function checkServer(port: number, backend: string): Promise<void> {
  const found = await sendAll(port)
  const failures = [...found].filter(([status]) => status >= 500).flatMap(([, texts]) => texts)
  assert.equal(failures.slice(0, 5), [])
  assert.ok((found.get(200)?.length ?? 0) > 0)
  assert.ok((found.get(400)?.length ?? 0) > COUNTS.combinations / 2)
  assert.is((await fetch(`${backend}/healthz`)).status, 200)
}

/** The documented site for pages and programs, in front of another server and without its TLS. */
function renderSite(listen: number, backend: string): string {
  const [site = ''] = readBlocks('server.md', 'nginx')
  const [pages = ''] = site.split('# Machines:')
  return pages
    .replace('listen 443 ssl', `listen 127.0.0.1:${listen}`)
    .replaceAll(/^ *ssl_.*$/gm, '')
    .replace('http://127.0.0.1:8080', backend)
}

const test = suite('fuzz')

test('10,000 combinations of path, Host and method end neither server', async () => {
  await using home = await createServerHome()
  await using web = await home.start()
  await using cache = await startCache(home.at('state-of-cache'))
  const backends = [web.url, cache.base]
  for (const backend of backends) await checkServer(Number(new URL(backend).port), backend)
  if (existsSync(NGINX)) {
    const ports = [await findPort(), await findPort()]
    const sites = backends.map((backend, at) => renderSite(ports[at] ?? 0, backend)).join('\n')
    await using _nginx = await startNginx(join(home.dir, 'nginx'), sites, () =>
      fetch(`http://127.0.0.1:${ports[0]}/healthz`),
    )
    for (const [at, backend] of backends.entries()) await checkServer(ports[at] ?? 0, backend)
  }
  assert.is(web.child.exitCode, null)
  assert.not.match(cache.said(), /error/i)
})

test.run()
