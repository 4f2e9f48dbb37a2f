import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { blobUrl } from '#engine/catalog/rules/cache-entry.ts'
import { makeBytes } from '#test/support/collect.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { cacheEnv, makeFolder, startCache, until } from '#test/support/server/image-cache.ts'

const test = suite('flasher-cache')
const PROGRAM = new URL('../../runtime/bin/flasher-cache.mjs', import.meta.url).pathname
const BYTES = makeBytes(3_000_000)
const SHA256 = createHash('sha256').update(BYTES).digest('hex')

async function run(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [PROGRAM, ...argv], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...env },
  })
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  await once(child, 'close')
  return { code: child.exitCode, stdout, stderr }
}

const entriesOf = async (base: string) =>
  Object(await (await fetch(`${base}/catalog?all`)).json()).entries

test('is killed in the middle of a download, again and again, and ends with the right bytes', async () => {
  await using state = await makeFolder()
  let least = 300_000
  await using source = await startHostileServer((request, response) => {
    const isBody = request.method === 'GET' && request.headers.range !== 'bytes=0-0'
    const from = Number(/bytes=(\d+)/.exec(request.headers.range ?? '')?.[1] ?? 0)
    sendFile(BYTES, request, response, isBody ? { stallAfter: least - from } : {})
  })
  const asked = () =>
    source.seen.flatMap(({ headers }) => /=([1-9]\d*)-/.exec(headers.range ?? '')?.[1] ?? [])
  for (const stop of [600_000, 1_200_000, 2_400_000, 4_000_000]) {
    least = stop
    const program = await startCache(state.path)
    const headers = { authorization: `Bearer ${program.token}`, 'content-type': 'application/json' }
    if (stop === 600_000) {
      const body = JSON.stringify({ src: `${source.origin}/x.img`, sha256: SHA256 })
      await fetch(`${program.base}/catalog/entries`, { method: 'POST', headers, body })
      await fetch(`${program.base}/catalog/entries/x.img/download`, { method: 'POST', headers })
    }
    const wanted = Math.min(stop, BYTES.length)
    await until(async () => {
      const [entry] = await entriesOf(program.base)
      return entry.state === 'ready' || entry.bytes_done >= wanted
    })
    if (stop < BYTES.length) await program.kill('SIGKILL')
    else {
      const answer = await fetch(blobUrl(program.base, `${source.origin}/x.img`))
      assert.ok(Buffer.from(await answer.arrayBuffer()).equals(BYTES))
      assert.is(await program.kill('SIGTERM'), 0)
    }
  }
  assert.equal(asked(), ['600000', '1200000', '2400000'])
  assert.equal(await readdir(join(state.path, 'cache/.cache/parts')), [])
})

test('tells a newcomer where it is and the password once, and no one else anything', async () => {
  await using state = await makeFolder()
  {
    await using program = await startCache(state.path)
    assert.match(program.said(), /Images: +http:\/\/127\.0\.0\.1:\d+\/ui\n/)
    assert.match(program.said(), /Password: +\S+\n/)
    assert.ok(program.said().includes(`Folder:   ${state.path}/cache\n`))
    const { mode } = await stat(join(state.path, 'cache/.cache/token'))
    assert.is(mode & 0o777, 0o600)
    const second = await run([], { ...cacheEnv(state.path, 1), FLASHER_CACHE_PORT: '18998' })
    assert.is(second.code, 1)
    assert.match(second.stderr, /another flasher-cache serves/)
  }
  await using program = await startCache(state.path)
  assert.not.match(program.said(), /Password/)
})

test('an operator adds, lists, fetches and removes by command', async () => {
  await using state = await makeFolder()
  await using source = await startHostileServer((request, response) =>
    sendFile(BYTES, request, response),
  )
  await using program = await startCache(state.path)
  const env = cacheEnv(state.path, Number(new URL(program.base).port))
  const added = await run(['add', `${source.origin}/x.img`, '--sha256', SHA256.toUpperCase()], env)
  assert.equal([added.code, added.stderr], [0, ''])
  assert.match(added.stdout, /^x\.img added\n(x\.img: .*\n)*x\.img: ready\n$/)
  const wrong = await run(['add', `${source.origin}/y.img`, '--sha256', '0'.repeat(64)], env)
  assert.is(wrong.code, 1)
  assert.match(wrong.stderr, /but 0{64} was expected/)
  const list = await run(['list'], env)
  assert.match(list.stdout, new RegExp(`x\\.img +ready +3\\.00 MB +${SHA256.slice(0, 12)}\n`))
  const json = await run(['list', '--json'], env)
  assert.is(JSON.parse(json.stdout).entries.length, 2)
  assert.is((await run(['fetch', 'x.img'], env)).code, 0)
  assert.equal(await run(['remove', 'x.img'], env), {
    code: 0,
    stdout: 'x.img removed\n',
    stderr: '',
  })
  const gone = await run(['remove', 'x.img'], env)
  assert.equal([gone.code, gone.stderr], [1, 'flasher-cache: there is no entry named x.img\n'])
  const manifest = join(state.path, 'catalog.toml')
  await writeFile(
    manifest,
    'version = 1\n[[images]]\nname = "m"\nsrc = "https://h.invalid/m.img"\n',
  )
  assert.is((await run(['add', manifest], env)).stdout, 'm added\n')
  const again = await run(['add', manifest], env)
  assert.equal([again.code, again.stdout, again.stderr], [0, 'm is listed already\n', ''])
})

test('says what is wrong with how it was called, or that no cache answers', async () => {
  await using state = await makeFolder()
  const env = cacheEnv(state.path, 9)
  const rows = [
    [['--version'], 0, /^flasher-cache \d/],
    [['--help'], 0, /flasher-cache: keeps images near the machines/],
    [['fly'], 2, /fly/],
    [['add'], 2, /URL/],
    [['add', 'x', '--sha256', 'short'], 2, /64 hexadecimal digits/],
    [['list'], 1, /no cache answers at http:\/\/127\.0\.0\.1:9\n.*Start "flasher-cache"/],
    [['--config', '/nonexistent.toml', 'list'], 2, /nonexistent/],
  ] as const
  for (const [argv, code, words] of rows) {
    const ended = await run(argv, env)
    assert.match(`${ended.stdout}${ended.stderr}`, words)
    if (argv[0] !== '--config') assert.is(ended.code, code, argv.join(' '))
  }
})

test('a configuration that is read again takes effect, or says what needs a restart', async () => {
  await using state = await makeFolder()
  const file = join(state.path, 'a.toml')
  await writeFile(file, '')
  await using program = await startCache(state.path, { FLASHER_CONFIG_FILE: file })
  const reads = async (text: string, said: string) => {
    await writeFile(file, text)
    process.kill(program.pid, 'SIGHUP')
    await until(() => program.said().includes(said))
  }
  await reads('[cache]\ndir = "/elsewhere"\n', 'restart to apply: cache.dir')
  await reads('[cache]\nmax_bytes = 1\n', 'configuration: cache.max_bytes changed')
  await reads('[cache\n', 'the configuration was not reloaded')
})

test.run()
