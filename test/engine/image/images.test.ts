import { execFileSync } from 'node:child_process'
import { mkdir, mkdtempDisposable, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { detectFormat } from '#engine/image/rules/format.ts'
import { createImages } from '#engine/image/images.ts'
import { createShell, type Shell, toolMissing } from '#kit/host/shell.ts'
import { faultOf } from '#test/support/collect.ts'
import { fromFile, makeContent, pipeThrough } from '#test/support/disk/compressed.ts'

const test = suite('images')

const shell = createShell({ env: process.env })
const images = createImages({ shell })
const temporary = () => mkdtempDisposable(join(tmpdir(), 'flasher-images-'))

const CONTENT = makeContent(1_000_000)
const zst = (content: Buffer) => fromFile(['zstd', '-q', '-c', '{}'], content)
const xz = (content: Buffer) => pipeThrough(['xz', '-c', '-0', '--block-size=65536'], content)
const ZST = zst(CONTENT)

/** A qcow2 file made by qemu-img itself. */
const makeQcow2 = (path: string, ...more: readonly string[]) =>
  execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', ...more, path, '4M'])

test('lists what is named like an image and is a file, in natural order', async () => {
  await using folder = await temporary()
  const root = folder.path
  const names = [
    'v2.4.10.img',
    'v2.4.2.img',
    'b.img',
    'B.IMG',
    'a.img.zst',
    'ä.qcow2',
    '.hidden.img',
    '~.img.gz',
    '-x.img.bz2',
  ]
  for (const name of [...names, 'notes.txt', 'a.tar.gz', 'x.iso']) {
    await writeFile(join(root, name), name)
  }
  await mkdir(join(root, 'folder.img'))
  await writeFile(join(root, 'folder.img', 'inside.img'), '')
  await symlink(join(root, 'b.img'), join(root, 'link.img.xz'))
  await symlink(join(root, 'folder.img'), join(root, 'to-folder.img'))
  await symlink('nowhere', join(root, 'dangling.img'))
  const rows = await images.list(root)
  const order = [
    '-x.img.bz2',
    '.hidden.img',
    '~.img.gz',
    'a.img.zst',
    'ä.qcow2',
    'b.img',
    'B.IMG',
    'link.img.xz',
    'v2.4.2.img',
    'v2.4.10.img',
  ]
  assert.equal(
    rows.map(({ name }) => name),
    order,
  )
  assert.equal(rows[6], { name: 'B.IMG', path: `${root}/B.IMG`, format: 'img', size_bytes: 5 })
  assert.equal(
    (await images.list(`${root}/`)).map(({ path }) => path),
    order.map((name) => `${root}/${name}`),
  )
})

test('a root that is no folder holds no images', async () => {
  await using folder = await temporary()
  await writeFile(join(folder.path, 'file'), '')
  for (const name of ['missing', 'file', 'file/below']) {
    assert.equal(await images.list(join(folder.path, name)), [])
  }
})

test('inspects every format', async () => {
  await using folder = await temporary()
  const at = (name: string) => join(folder.path, name)
  await writeFile(at('a.img'), CONTENT)
  await writeFile(at('a.img.zst'), ZST)
  await writeFile(at('a.img.xz'), xz(CONTENT))
  await writeFile(at('a.img.gz'), pipeThrough(['gzip', '-c'], CONTENT))
  await writeFile(at('a.img.bz2'), pipeThrough(['bzip2', '-c'], CONTENT))
  makeQcow2(at('a.qcow2'))
  const base = { path: at('a.img'), format: 'img', size_bytes: CONTENT.length }
  assert.equal(await images.inspect(at('a.img')), { ...base, virtual_size_bytes: CONTENT.length })
  const inspectedZst = await images.inspect(at('a.img.zst'))
  assert.is(inspectedZst.virtual_size_bytes, CONTENT.length)
  assert.match(String(inspectedZst.detail), /^Frames .*\n.* 1 .*a\.img\.zst$/s)
  const inspectedXz = await images.inspect(at('a.img.xz'))
  assert.is(inspectedXz.virtual_size_bytes, CONTENT.length)
  assert.match(String(inspectedXz.detail), /^Strms .*a\.img\.xz$/s)
  const { detail, ...qcow2 } = await images.inspect(at('a.qcow2'))
  assert.is(qcow2.virtual_size_bytes, 4 * 2 ** 20)
  assert.is(typeof detail === 'object' && detail['virtual-size'], 4 * 2 ** 20)
  assert.is(typeof detail === 'object' && detail['filename'], at('a.qcow2'))
  const inspectedGz = await images.inspect(at('a.img.gz'))
  const { size_bytes: gzBytes } = inspectedGz
  assert.equal(inspectedGz, {
    path: at('a.img.gz'),
    format: 'img.gz',
    size_bytes: gzBytes,
    virtual_size_bytes: null,
    virtual_size_at_least_bytes: CONTENT.length,
  })
  assert.equal(Object.keys(await images.inspect(at('a.img.bz2'))), [
    'path',
    'format',
    'size_bytes',
    'virtual_size_bytes',
  ])
})

test('inspects through links, and names that look like options or protocols', async () => {
  await using folder = await temporary()
  const at = (name: string) => join(folder.path, name)
  await writeFile(at('a.img.zst'), ZST)
  await writeFile(at('a.img.xz'), xz(CONTENT))
  makeQcow2(at('a.qcow2'))
  for (const name of ['a.img.zst', 'a.img.xz', 'a.qcow2']) {
    await symlink(at(name), at(`--link:${name}`))
    const inspected = await images.inspect(at(`--link:${name}`))
    assert.ok(inspected.detail, JSON.stringify(inspected))
  }
})

test('what is not what its name says, or damaged, has a detail_error instead', async () => {
  await using folder = await temporary()
  const rows: readonly (readonly [string, Buffer, RegExp])[] = [
    [
      'junk.qcow2',
      Buffer.alloc(512, 'x'),
      /junk\.qcow2 is named \.qcow2 but does not hold qcow2 data$/,
    ],
    ['z.img', ZST, /z\.img is named \.img but holds zst data: name it \.img\.zst$/],
    ['empty.img.zst', Buffer.alloc(0), /does not hold img\.zst data$/],
    [
      'cut.img.zst',
      ZST.subarray(0, -9),
      /cut\.img\.zst: the zstd data ends after \d+ bytes, in the middle of a frame$/,
    ],
    ['cut.img.xz', xz(CONTENT).subarray(0, 1000), /cut\.img\.xz: its end is not that of xz data/],
    ['cut.qcow2', Buffer.from('514649fb00000003', 'hex'), /cut\.qcow2: it is cut off/],
  ]
  for (const [name, bytes, words] of rows) {
    const path = join(folder.path, name)
    await writeFile(path, bytes)
    const { detail_error: error, ...info } = await images.inspect(path)
    assert.equal(info, {
      path,
      format: detectFormat(name),
      size_bytes: bytes.length,
      virtual_size_bytes: null,
    })
    assert.match(error ?? '', words)
  }
})

test('an image that leans on another file is never opened by a tool', async () => {
  await using folder = await temporary()
  const path = join(folder.path, 'leaning.qcow2')
  makeQcow2(path, '-u', '-b', '/etc/passwd', '-F', 'raw')
  const { detail, detail_error: error } = await images.inspect(path)
  assert.is(detail, undefined)
  assert.match(error ?? '', /backing file/)
})

test('a tool that is missing or fails leaves its detail out, and nothing else', async () => {
  await using folder = await temporary()
  const path = join(folder.path, 'a.img.zst')
  await writeFile(path, ZST)
  const base = {
    path,
    format: 'img.zst',
    size_bytes: ZST.length,
    virtual_size_bytes: CONTENT.length,
  }
  const inspectWith = (run: Shell['run']) =>
    createImages({ shell: { ...shell, run } }).inspect(path)
  assert.equal(await inspectWith(async ([tool = '']) => Promise.reject(toolMissing(tool))), {
    ...base,
    detail_error: 'zstd is not installed. On Debian: apt-get install zstd',
  })
  assert.equal(await inspectWith(async () => ({ exitCode: 1, stdout: '', stderr: ' why \n' })), {
    ...base,
    detail_error: 'why',
  })
  assert.equal(await inspectWith(async () => ({ exitCode: 9, stdout: '', stderr: '' })), {
    ...base,
    detail_error: 'zstd ended with 9',
  })
})

test('a pipe, a folder or an unknown name has no format, and why; what is missing is a fault', async () => {
  await using folder = await temporary()
  const at = (name: string) => join(folder.path, name)
  await mkdir(at('folder.img'))
  execFileSync('mkfifo', [at('pipe.img')])
  await writeFile(at('a.iso'), 'x')
  await writeFile(at('a.tar.gz'), 'x')
  for (const [name, words] of [
    ['pipe.img', /pipe\.img is no regular file, so it is not an image$/],
    ['folder.img', /folder\.img is a folder, not an image$/],
    ['a.iso', /a\.iso is not an image: its name ends in none of \.img, \.qcow2, /],
    ['a.tar.gz', /a\.tar\.gz is a tarball, not an image: extract first$/],
  ] as const) {
    const found = await images.inspect(at(name))
    assert.equal([found.format, found.virtual_size_bytes], [null, null], name)
    assert.match(found.detail_error ?? '', words)
  }
  await symlink('loop.img', at('loop.img'))
  for (const [name, code] of [
    ['missing.img', 'input-missing'],
    ['a.iso/below.img', 'input-missing'],
    ['loop.img', 'input-invalid'],
  ] as const) {
    const fault = await faultOf(() => images.inspect(at(name)))
    assert.is(fault.code, code, name)
    assert.match(fault.message, at(name))
  }
})

test.run()
