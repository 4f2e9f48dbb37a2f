/** User-data that cloud-init reads, and what it would ignore without a word. */
import { gzipSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { findUserDataProblem } from '#engine/first-boot/rules/template.ts'

const test = suite('the beginning of user-data')
const CONFIG = '#cloud-config\nhostname: a\n'
const problemOf = (content: string | Buffer) => findUserDataProblem(Buffer.from(content))

test('all kinds that cloud-init reads', () => {
  const kinds = [
    CONFIG,
    CONFIG.replaceAll('\n', '\r\n'),
    '\n  #Cloud-Config\n',
    '#!/bin/sh\n',
    '#include\nhttp://x/\n',
    '#include-once\nhttp://x/\n',
    '#cloud-boothook\n',
    '#cloud-config-archive\n[]\n',
    '#part-handler\n',
    '## template: jinja\n#cloud-config\n',
    'Content-Type: multipart/mixed; boundary="x"\nMIME-Version: 1.0\n\n--x--\n',
    gzipSync(CONFIG),
    '',
  ]
  for (const kind of kinds) assert.is(problemOf(kind), null, String(kind))
})

test('what it ignores', () => {
  const ignored: readonly (readonly [string | Buffer, RegExp])[] = [
    ['users:\n  - name: a\n', /^it begins with no header .* has to be #cloud-config/],
    ['# cloud-config\n', /no header/],
    [`\ufeff${CONFIG}`, /byte order mark/],
    [Buffer.from(CONFIG, 'utf16le'), /no header/],
    [Buffer.from(CONFIG).toString('base64'), /base64/],
    [Buffer.from('#!/bin/sh\ntrue\n').toString('base64'), /base64/],
    [gzipSync('users: []\n'), /no header/],
    [gzipSync(CONFIG).subarray(0, 20), /gzip data is damaged/],
  ]
  for (const [content, words] of ignored) assert.match(problemOf(content) ?? '', words)
})

test.run()
