/** Rows of the earlier specification on the command line: what each command prints, and its exit code. */
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { Readable } from 'node:stream'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { cli } from '#flasher/programs.ts'

const test = suite('flasher, by the rows of the specification')
const RAW = Buffer.alloc(2 ** 20, 7)

/** The program within this process; it writes to no disk, as it is not root here. */
async function run(argv: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const said = { stdout: '', stderr: '' }
  const code = await cli({
    argv,
    env: { PATH: process.env['PATH'], ...env },
    stdin: Readable.from([]),
    stdout: { write: (text: string) => (said.stdout += text) },
    stderr: { write: (text: string) => (said.stderr += text) },
    isRoot: false,
    signal: new AbortController().signal,
    now: () => performance.now() / 1000,
  })
  return { code, ...said }
}

/** An image of each format, and what is none, in a folder. */
async function createImages() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'flasher-rows-'))
  const at = (name: string) => join(folder.path, name)
  await writeFile(at('a.img'), RAW)
  await writeFile(at('b.img.zst'), zstdCompressSync(RAW))
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', at('c.qcow2'), '4M'])
  await writeFile(at('d.iso'), 'x')
  await mkdir(at('below'))
  await writeFile(at('below/e.img'), RAW)
  return { folder: folder.path, at, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() }
}

test('every leaf command takes --json: an object with schema_version "1" and its command', async () => {
  await using images = await createImages()
  const target = ['--image', images.at('a.img'), '--target', '/dev/null', '--dry-run']
  for (const [argv, command, code] of [
    [['list', 'disks'], 'list-disks', 0],
    [['list', 'images', '--image-root', images.folder], 'list-images', 0],
    [['inspect', 'image', images.at('a.img')], 'inspect-image', 0],
    [['flash', ...target], 'flash', 1],
  ] as const) {
    const ended = await run([...argv, '--json'])
    const document = JSON.parse(ended.stdout)
    assert.equal([document.schema_version, document.command, ended.code], ['1', command, code])
  }
})

test('list disks: each record has the fields of the table', async () => {
  const { stdout } = await run(['list', 'disks', '--json'])
  const fields = ['path', 'size', 'tran', 'vendor', 'model', 'serial', 'removable']
  const { disks } = JSON.parse(stdout)
  for (const disk of disks) {
    for (const field of fields) assert.ok(field in disk, field)
    assert.match(disk.path, /^\/dev\//)
    assert.type(disk.removable, 'boolean')
  }
  const table = await run(['list', 'disks'])
  assert.is(table.code, 0)
  if (disks.length === 0) return
  const [head = ''] = table.stdout.split('\n')
  assert.equal(head.trim().split(/ +/).slice(0, 7).join(' ').toLowerCase(), fields.join(' '))
})

const listImages = async (flags: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  JSON.parse((await run(['list', 'images', '--json', ...flags], env)).stdout)

test('list images: the recognised formats directly in the root, which the flag, the variable or the default names', async () => {
  await using images = await createImages()
  const found = await listImages(['--image-root', images.folder])
  assert.equal(
    found.images.map(({ name, format }: Readonly<Record<string, string>>) => [name, format]),
    [
      ['a.img', 'img'],
      ['b.img.zst', 'img.zst'],
      ['c.qcow2', 'qcow2'],
    ],
  )
  const env = { FLASHER_IMAGE_ROOT: images.at('below') }
  const named = await listImages([], env)
  assert.equal([named.image_root, named.images.length], [images.at('below'), 1])
  assert.is((await listImages(['--image-root', images.folder], env)).images.length, 3)
  assert.is((await listImages([])).image_root, '/var/lib/flasher/images')
})

test('inspect image: path, format and size_bytes always; a detail for qcow2 and zst, none for img', async () => {
  await using images = await createImages()
  for (const [name, format, detail] of [
    ['a.img', 'img', 'undefined'],
    ['b.img.zst', 'img.zst', 'string'],
    ['c.qcow2', 'qcow2', 'object'],
  ] as const) {
    const { code, stdout } = await run(['inspect', 'image', images.at(name), '--json'])
    const { image } = JSON.parse(stdout)
    assert.equal(
      [code, image.path, image.format, typeof image.size_bytes, typeof image.detail],
      [0, images.at(name), format, 'number', detail],
    )
  }
  for (const argv of [[images.at('none.img')], [], [images.at('a.img'), '--wrong'], ['a', 'b']]) {
    assert.is((await run(['inspect', 'image', ...argv])).code, 2, argv.join(' '))
  }
})

test('flash: without an image or a target, and with a progress or a mode of no table, 2', async () => {
  await using images = await createImages()
  const image = ['--image', images.at('a.img')]
  const target = ['--target', '/dev/null']
  for (const argv of [
    [...image, '--dry-run'],
    [...target, '--dry-run'],
    [...image, ...target, '--dry-run', '--progress', 'bars'],
    [...image, ...target, '--dry-run', '--provision', 'ansible'],
  ]) {
    const { code, stderr } = await run(['flash', ...argv])
    assert.is(code, 2, `${argv.join(' ')}: ${stderr}`)
  }
})

test('flash: neither --dry-run nor --yes: a hint that names both', async () => {
  await using images = await createImages()
  const argv = ['flash', '--image', images.at('a.img'), '--target', '/dev/null', '--json']
  const { code, stdout } = await run(argv)
  const { hint } = JSON.parse(stdout).error
  assert.equal([code, /--dry-run/.test(hint), /--yes/.test(hint)], [2, true, true])
})

test('flash: an image without a recognised format is a refused plan, 1', async () => {
  await using images = await createImages()
  const argv = ['flash', '--image', images.at('d.iso'), '--target', '/dev/null', '--dry-run']
  const { code, stderr } = await run(argv)
  assert.is(code, 1, stderr)
})

test('--progress: [failed] on stderr by default, an object on stdout with ndjson, nothing with none', async () => {
  await using images = await createImages()
  const argv = ['flash', '--image', images.at('a.img'), '--target', '/dev/null', '--yes']
  const rows = [
    [[], true, false],
    [['--progress', 'text'], true, false],
    [['--progress', 'ndjson'], false, true],
    [['--progress', 'none'], false, false],
  ] as const
  for (const [flags, isLine, isObject] of rows) {
    const { stdout, stderr } = await run([...argv, ...flags])
    const said = [/^\[failed\] ./m.test(stderr), /^\{"event": "failed", /m.test(stdout)]
    assert.equal(said, [isLine, isObject], flags.join(' '))
    assert.not.match(stdout, '[failed]')
  }
})

test.run()
