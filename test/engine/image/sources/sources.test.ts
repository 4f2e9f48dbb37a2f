import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:net'
import {
  mkdtempDisposable,
  open,
  rename,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSources } from '#engine/image/sources/sources.ts'
import { createShell } from '#kit/host/shell.ts'
import { collect, faultOf, makeBytes } from '#test/support/collect.ts'

const test = suite('sources')
const sources = createSources({ env: {} })
const temporary = () => mkdtempDisposable(join(tmpdir(), 'flasher-sources-'))
const BYTES = makeBytes(3_500_001)

async function savedIn(folder: string) {
  const path = join(folder, 'disk.img.gz')
  await writeFile(path, BYTES)
  return path
}

test('reads a file from any byte on, and at any place', async () => {
  await using folder = await temporary()
  const path = await savedIn(folder.path)
  await using source = await sources.open(path)
  assert.equal(
    [source.name, source.fileName, source.path, source.url, source.sizeBytes],
    [path, 'disk.img.gz', path, null, BYTES.length],
  )
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.ok(BYTES.subarray(1_234_567).equals(await collect(source.stream(1_234_567))))
  assert.is((await collect(source.stream(BYTES.length))).length, 0)
  const into = Buffer.alloc(1000)
  assert.is(await source.readAt?.(into, 2_000_000), 1000)
  assert.ok(into.equals(BYTES.subarray(2_000_000, 2_001_000)))
  assert.is(await source.readAt?.(into, BYTES.length - 10), 10)
  assert.is(await source.readAt?.(into, BYTES.length + 10), 0)
})

test('a reader that stops early leaves nothing behind', async () => {
  await using folder = await temporary()
  await using source = await sources.open(await savedIn(folder.path))
  for await (const chunk of source.stream()) {
    assert.ok(chunk.length > 0)
    break
  }
})

test('an empty file has no chunks', async () => {
  await using folder = await temporary()
  const path = join(folder.path, 'empty.img')
  await writeFile(path, '')
  await using source = await sources.open(path)
  assert.is(source.sizeBytes, 0)
  assert.is((await collect(source.stream())).length, 0)
})

test('follows a link to a file', async () => {
  await using folder = await temporary()
  const link = join(folder.path, 'latest.img')
  await symlink(await savedIn(folder.path), link)
  await using source = await sources.open(link)
  assert.ok(BYTES.equals(await collect(source.stream())))
})

test('refuses by name what is absent or no regular file', async () => {
  await using folder = await temporary()
  const at = (name: string) => join(folder.path, name)
  await createShell({ env: process.env }).require(['mkfifo', at('pipe')])
  const listener = createServer().listen(at('socket'))
  try {
    await once(listener, 'listening')
    await symlink('loop', at('loop'))
    const rows = [
      [at('absent.img'), 'input-missing', /^image not found: .*absent\.img$/],
      [at('pipe/x.img'), 'input-missing', /^image not found/],
      [folder.path, 'input-invalid', / is a directory$/],
      [at('pipe'), 'input-invalid', / is a named pipe$/],
      [at('socket'), 'input-invalid', / is a socket$/],
      ['/dev/null', 'input-invalid', /: \/dev\/null is a character device$/],
      [at('loop'), 'input-invalid', /ELOOP/],
      ['nul\0byte', 'input-invalid', /cannot be opened/],
    ] as const
    for (const [path, code, words] of rows) {
      const fault = await faultOf(() => sources.open(path))
      assert.is(fault.code, code, path)
      assert.match(fault.message, words)
    }
  } finally {
    listener.close()
  }
})

const changes: Readonly<Record<string, readonly [RegExp, (path: string) => Promise<unknown>]>> = {
  shrinks: [/shorter|changed/, (path) => truncate(path, 2_000_000)],
  grows: [/changed/, (path) => truncate(path, 4_000_000)],
  'is touched': [/changed/, (path) => utimes(path, 1, 1)],
  'is replaced': [
    /replaced/,
    async (path) => {
      await writeFile(`${path}.new`, BYTES)
      await rename(`${path}.new`, path)
    },
  ],
}

for (const [what, [words, change]] of Object.entries(changes)) {
  test(`notices a file that ${what} while it is read`, async () => {
    await using folder = await temporary()
    const path = await savedIn(folder.path)
    await using source = await sources.open(path)
    const fault = await faultOf(async () => {
      let isChanged = false
      for await (const _ of source.stream()) {
        if (!isChanged) await change(path)
        isChanged = true
      }
    })
    assert.is(fault.code, 'source-broken')
    assert.match(fault.message, words)
  })
}

test('notices a change between two reads at a place', async () => {
  await using folder = await temporary()
  const path = await savedIn(folder.path)
  await using source = await sources.open(path)
  await using writer = await open(path, 'r+')
  await writer.write(Buffer.from('other'), 0, 5, 0)
  await utimes(path, 1, 1)
  const fault = await faultOf(async () => source.readAt?.(Buffer.alloc(10), 0))
  assert.match(fault.message, /changed while it was read at byte 0 of 3500001/)
})

test('reads standard input once', async () => {
  await using folder = await temporary()
  const child = spawn('cat', [await savedIn(folder.path)], { stdio: ['ignore', 'pipe', 'inherit'] })
  await using source = await createSources({ env: {}, stdin: child.stdout }).open('-')
  assert.equal(
    [source.name, source.fileName, source.sizeBytes, source.readAt],
    ['-', '-', null, null],
  )
  assert.ok(BYTES.equals(await collect(source.stream())))
  assert.is((await faultOf(() => collect(source.stream()))).code, 'misuse')
})

test('cancels at once while standard input says nothing', async () => {
  const child = spawn('cat', [], { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    const cancel = new AbortController()
    const source = await createSources({ env: {}, stdin: child.stdout }).open('-', cancel)
    const reading = faultOf(() => collect(source.stream()))
    cancel.abort()
    assert.is((await reading).code, 'cancelled')
  } finally {
    child.stdin.end()
    await once(child, 'close')
  }
})

test('cancels between two chunks of a file', async () => {
  await using folder = await temporary()
  const cancel = new AbortController()
  await using source = await sources.open(await savedIn(folder.path), { signal: cancel.signal })
  const fault = await faultOf(async () => {
    for await (const _ of source.stream()) cancel.abort()
  })
  assert.is(fault.code, 'cancelled')
})

test('says of an oras:// reference what is wrong with it', async () => {
  const fault = await faultOf(() => sources.open('oras://registry.test/a/b'))
  assert.is(
    fault.message,
    'malformed: it wants one :tag or one @sha256:<64 digits>: oras://registry.test/a/b',
  )
})

test.run()
