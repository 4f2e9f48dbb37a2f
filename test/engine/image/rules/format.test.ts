import { globSync, readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { planInspection, renderMismatch } from '#engine/image/rules/image-head.ts'
import {
  checkContent,
  detectContent,
  detectFormat,
  isTarballName,
} from '#engine/image/rules/format.ts'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import { pipeThrough, pzstd, skippable } from '#test/support/disk/compressed.ts'

const test = suite('format')

test('names: the longest suffix counts, in any case', () => {
  const rows = [
    ['a.qcow2', 'qcow2'],
    ['a.img', 'img'],
    ['A.IMG.ZST', 'img.zst'],
    ['a.img.xz', 'img.xz'],
    ['a.img.gz', 'img.gz'],
    ['a.Img.Bz2', 'img.bz2'],
    ['/x/a.qcow2/b.img', 'img'],
    ['.img', 'img'],
    ['img', null],
    ['a.zst', null],
    ['a.iso', null],
    ['a.img.lz4', null],
    ['a.img.tar.gz', null],
    ['a.img/', null],
    ['', null],
  ] as const
  for (const [name, format] of rows) assert.is(detectFormat(name), format, name)
})

test('tarballs by name', () => {
  for (const name of ['a.tar', 'a.tar.gz', 'a.TGZ', 'a.txz', 'a.tzst', 'a.tbz2', 'a.img.tar.xz']) {
    assert.ok(isTarballName(name), name)
  }
  for (const name of ['a.img', 'a.img.gz', 'tar', 'atar']) assert.not(isTarballName(name), name)
})

const at = (offset: number, magic: string) =>
  Buffer.concat([Buffer.alloc(offset), Buffer.from(magic, 'latin1'), Buffer.alloc(512)])

test('content by its first bytes', () => {
  const rows: readonly (readonly [Buffer, string])[] = [
    [pipeThrough(['zstd', '-q', '-c'], Buffer.from('x')), 'zst'],
    [pzstd(Buffer.from('x')), 'zst'],
    [skippable(Buffer.from('x'), 15), 'zst'],
    [Buffer.from('27b52ffd00', 'hex'), 'zst'],
    [pipeThrough(['xz', '-c'], Buffer.from('x')), 'xz'],
    [pipeThrough(['gzip', '-c'], Buffer.from('x')), 'gz'],
    [pipeThrough(['bzip2', '-c'], Buffer.from('x')), 'bz2'],
    [at(0, 'QFI\xfb'), 'qcow2'],
    [at(257, 'ustar'), 'tar'],
    [at(0, 'PK\x03\x04'), 'zip'],
    [at(0, 'KDMV'), 'vmdk'],
    [at(0, 'vhdxfile'), 'vhdx'],
    [at(0, 'conectix'), 'vhd'],
    [at(64, '\x7f\x10\xda\xbe'), 'vdi'],
    [at(0, '\x3a\xff\x26\xed'), 'android-sparse'],
    [at(510, '\x55\xaa'), 'raw'],
    [Buffer.alloc(0), 'raw'],
    [Buffer.from('(\xb5'), 'raw'],
  ]
  for (const [head, content] of rows)
    assert.is(detectContent(head), content, head.toString('hex', 0, 9))
})

test('a name that does not match the content is refused with the right name', () => {
  const rows = [
    ['img', at(0, 'QFI\xfb'), 'a.img', 'is named .img but holds qcow2 data: name it .qcow2'],
    ['img', at(257, 'ustar'), 'a.img', 'is a tarball: extract first'],
    ['qcow2', at(0, ''), 'A.QCOW2', 'is named .qcow2 but does not hold qcow2 data'],
    [
      'img',
      at(0, 'vhdxfile'),
      'a.img',
      'is named .img but holds vhdx data: extract or convert it first',
    ],
    [
      'img.gz',
      at(0, '\xfd7zXZ\0'),
      'a.img.gz',
      'is named .img.gz but holds xz data: name it .img.xz',
    ],
    [
      'img',
      at(0, 'QFI\xfb'),
      'Debian 13',
      'is said to be of format img but holds qcow2 data: say qcow2',
    ],
    ['img.xz', at(0, ''), 'a.img', 'is said to be of format img.xz but does not hold img.xz data'],
  ] as const
  for (const [format, head, name, words] of rows) {
    const checked = checkContent(format, head)
    assert.is(checked.ok ? '' : renderMismatch({ name }, checked.refusal), `${name} ${words}`)
  }
  assert.ok(checkContent('img', at(0, '')).ok)
})

test('fuzz: any bytes are some content', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 600 }),
      fc.constantFrom(...IMAGE_FORMATS),
      (bytes, format) => {
        const checked = checkContent(format, Buffer.from(bytes))
        if (!checked.ok)
          assert.ok(renderMismatch({ name: 'a' }, checked.refusal).startsWith('a is '))
      },
    ),
  )
})

test('no path is taken for an option or a protocol', () => {
  assert.equal(planInspection('qcow2', 'nbd:x.qcow2')?.argv.slice(-2), ['--', './nbd:x.qcow2'])
  assert.equal(planInspection('qcow2', 'a/b:c.qcow2')?.argv.slice(-2), ['--', 'a/b:c.qcow2'])
  assert.equal(planInspection('qcow2', '/b:c.qcow2')?.argv.slice(-2), ['--', '/b:c.qcow2'])
  for (const format of ['img.zst', 'img.xz', 'qcow2'] as const) {
    assert.equal(planInspection(format, '-x')?.argv.slice(-2), ['--', '-x'])
  }
  for (const format of ['img', 'img.gz', 'img.bz2'] as const) {
    assert.is(planInspection(format, 'x'), null)
  }
})

test('an answer of qemu-img that is no object is refused', () => {
  const parse = planInspection('qcow2', 'x')?.parse
  assert.equal(parse?.('{"format": "qcow2"}'), { ok: true, value: { format: 'qcow2' } })
  for (const text of ['', '[]', 'null', '1', '{', '{"a":1}x'])
    assert.is(parse?.(text).ok, false, text)
})

/** Each has a row of a format, or is about one format alone for the reason beside it. */
const NAMED_IN: readonly string[] = [
  'appliance/disk-images.ts',
  'runtime/engine/image/rules/format.ts',
  'runtime/engine/image/formats.ts',
  // Which compressions of an initrd are read is the kernel's matter.
  'runtime/fleet/boot/boot-sets.ts',
]

test('the tables alone name formats: all else follows from their rows', () => {
  const literals = IMAGE_FORMATS.map((format) => `'${format}'`)
  const files = globSync('{appliance,build,runtime}/**/*.ts').filter(
    (file) => !NAMED_IN.includes(file),
  )
  const named = files.flatMap((file) => {
    // Examples in comments are no lists.
    const text = readFileSync(file, 'utf8').replaceAll(/^ *(?:\*|\/[*/]).*$/gm, '')
    const found = literals.filter((literal) => text.includes(literal))
    // A list in a text is one as well.
    const isList = /\.img\.(?:xz|gz|bz2)\b[^\n]*\.img\.(?:xz|gz|bz2)\b/.test(text)
    return [...found, ...(isList ? ['a list'] : [])].map((what) => `${file}: ${what}`)
  })
  assert.equal(named, [])
})

test.run()
