/** What files are by their first bytes, and what may follow their end. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  describePage,
  findCutPartitions,
  isDiskImage,
  isKnownStart,
  renderShortfall,
} from '#engine/image/rules/raw-image.ts'
import { isTrailer } from '#engine/image/rules/gzip.ts'
import { parseSent } from '#kit/net/rules/http-range.ts'
import { makeBytes } from '#test/support/collect.ts'
import { makeTrailer } from '#test/support/disk/compressed.ts'
import { makeDiskImage } from '#test/support/disk/disk-images.ts'

const test = suite('content')
const IMAGE = makeDiskImage(2 << 20)

test('pages and texts are called what they are', () => {
  const rows: readonly (readonly [string | Buffer, string | null])[] = [
    ['<!DOCTYPE html>\n<html></html>', 'an HTML page'],
    ['\ufeff\n <HTML lang="de">', 'an HTML page'],
    ['<!-- a comment --><html>', 'an HTML page'],
    [Buffer.from(`<html>${'Gr\u00fc\u00dfe '.repeat(20)}`, 'latin1'), 'an HTML page'],
    ['<?xml version="1.0"?><Error/>', 'an XML document'],
    ['<Error><Code>AccessDenied</Code></Error>', 'an XML document'],
    ['{"errors": []}', 'a JSON document'],
    ['[{"a": 1}]', 'a JSON document'],
    ['Not Found', 'plain text'],
    [Buffer.from('\ufeffSHA256', 'utf16le'), 'plain text'],
    ['\n\n', 'nothing but blanks'],
    ['U'.repeat(4096), null],
    [Buffer.alloc(4096), null],
    [Buffer.alloc(4096, 0xff), null],
    // It could be the first byte of a character.
    [Buffer.of(0xc3), null],
    [makeBytes(4096), null],
    [IMAGE, null],
  ]
  for (const [bytes, what] of rows) {
    assert.is(describePage(Buffer.from(bytes)), what, String(bytes).slice(0, 40))
  }
  // What is cut off within a character is text as well.
  assert.is(describePage(Buffer.from('\u00fcber\u00fc').subarray(0, 6)), 'plain text')
  assert.is(describePage(Buffer.from(`<html>${'x'.repeat(200_000)}`)), 'an HTML page')
})

test('a disk image has a table or is a disc; a file system may be one', () => {
  const iso = Buffer.alloc(40_000)
  iso.write('CD001', 0x8001)
  const ext = Buffer.alloc(4096)
  ext.writeUInt16LE(0xef53, 1080)
  assert.equal([isDiskImage(IMAGE), isDiskImage(iso), isDiskImage(ext)], [true, true, false])
  assert.equal([isKnownStart(ext), isKnownStart(makeBytes(4096))], [true, false])
})

test('partitions beyond the end are counted to the byte', () => {
  assert.equal(findCutPartitions(IMAGE, IMAGE.length), [])
  assert.equal(findCutPartitions(IMAGE, 1 << 20), [{ number: 1, missingBytes: 1_031_680 }])
  const mbr = Buffer.alloc(512)
  mbr.set([0, 0, 0, 0, 0x83, 0, 0, 0], 446)
  mbr.writeUInt32LE(2048, 446 + 8)
  mbr.writeUInt32LE(4096, 446 + 12)
  mbr.writeUInt16LE(0xaa55, 510)
  assert.equal(findCutPartitions(mbr, 3 << 20), [])
  assert.equal(findCutPartitions(mbr, (3 << 20) - 1), [{ number: 1, missingBytes: 1 }])
  // All of it, and no more than all of it.
  assert.equal(findCutPartitions(mbr, 512), [{ number: 1, missingBytes: 2 << 20 }])
  assert.is(renderShortfall([]), null)
  assert.match(renderShortfall([{ number: 2, missingBytes: 7 }]) ?? '', /partition 2 .*7 bytes/)
})

test('behind gzip data only zeros and pieces of known metadata may stand', () => {
  const json = makeTrailer(Buffer.from('\0\0\0\0\0\0\0\0{"metadata_version": "1.1"}\n'))
  const signature = makeTrailer(Buffer.from('untrusted comment: x\n'))
  for (const rest of [
    [],
    [Buffer.alloc(700)],
    [json],
    [json, signature],
    [Buffer.alloc(9), json],
  ]) {
    assert.ok(isTrailer(Buffer.concat(rest)))
  }
  for (const rest of [[Buffer.from('x')], [json, Buffer.from('x')], [Buffer.from('x'), json]]) {
    assert.not(isTrailer(Buffer.concat(rest)))
  }
})

const sent = (type: string, coding: string) =>
  parseSent({ 'content-type': type, 'content-encoding': coding })

test('only codings that change bytes count', () => {
  assert.equal(sent('Text/HTML; charset=utf-8', 'GZIP'), { type: 'text/html', coding: 'gzip' })
  assert.equal(sent('', 'aws-chunked'), { type: null, coding: null })
})

test.run()
