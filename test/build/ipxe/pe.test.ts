/** A section more in a UEFI program: what the loader reads of it, and that the code says what it shall. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { addSection, readMachine } from '#build/ipxe/pe.ts'
import { renderStub } from '#build/ipxe/stub.ts'

const test = suite('a section of a UEFI program')

const PE = 0x80
const OPTIONAL = PE + 24
const TABLE = OPTIONAL + 240
const ENTRY = 0x1234

/** One section, as short as the format allows. */
function makeProgram({ machine = 0x8664, headerBytes = 0x400, magic = 0x20b } = {}): Buffer {
  const program = Buffer.alloc(0x600)
  program.write('MZ', 0, 'latin1')
  program.writeUInt32LE(PE, 0x3c)
  program.write('PE\0\0', PE, 'latin1')
  program.writeUInt16LE(machine, PE + 4)
  program.writeUInt16LE(1, PE + 6)
  program.writeUInt16LE(240, PE + 20)
  program.writeUInt16LE(magic, OPTIONAL)
  program.writeUInt32LE(ENTRY, OPTIONAL + 16)
  program.writeUInt32LE(0x20, OPTIONAL + 32)
  program.writeUInt32LE(0x200, OPTIONAL + 36)
  program.writeUInt32LE(0x3000, OPTIONAL + 56)
  program.writeUInt32LE(headerBytes, OPTIONAL + 60)
  program.writeUInt32LE(0xbad, OPTIONAL + 64)
  program.write('.text', TABLE, 'latin1')
  program.writeUInt32LE(0x1f00, TABLE + 8)
  program.writeUInt32LE(0x1000, TABLE + 12)
  return program
}

const stubOf = (processor: 'x86_64' | 'arm64') => (place: { at: number; entry: number }) =>
  renderStub(processor, 'ipxe #!ipxe\necho hello\n', place)

test('the loader finds it, page-aligned behind all others, and starts there', () => {
  const program = makeProgram()
  const made = addSection(program, { name: '.flash', render: stubOf('x86_64') })
  assert.is(made.readUInt16LE(PE + 6), 2)
  const header = TABLE + 40
  assert.is(made.toString('latin1', header, header + 8), '.flash\0\0')
  const [size, at, raw, offset] = [8, 12, 16, 20].map((each) => made.readUInt32LE(header + each))
  assert.is(at, 0x3000)
  assert.is(made.readUInt32LE(OPTIONAL + 16), at, 'the entry point')
  assert.is(offset, program.length)
  assert.is(raw, 0x200)
  assert.is(made.length, program.length + 0x200)
  assert.ok(size !== undefined && made.readUInt32LE(OPTIONAL + 56) >= 0x3000 + size)
  assert.is(made.readUInt32LE(OPTIONAL + 64), 0, 'the checksum')
  assert.ok(made.subarray(0x400, 0x600).equals(program.subarray(0x400)))
})

test('x86-64: the jump at its end leads to where the program began', () => {
  const made = addSection(makeProgram(), { name: '.flash', render: stubOf('x86_64') })
  const code = made.subarray(0x600)
  const end = code.indexOf(Buffer.from('5a595de9', 'hex')) + 8
  assert.is(0x3000 + end + code.readInt32LE(end - 4), ENTRY)
})

test('arm64: the branch at its end leads to where the program began', () => {
  const program = makeProgram({ machine: 0xaa64 })
  const made = addSection(program, { name: '.flash', render: stubOf('arm64') })
  const code = made.subarray(0x600)
  const at = code.indexOf(Buffer.from('fd7bc3a8', 'hex')) + 4
  const away = ((code.readUInt32LE(at) & 0x3ffffff) << 6) >> 4
  assert.is(0x3000 + at + away, ENTRY)
})

test('the text is UTF-16 and ends with a NUL', () => {
  const made = addSection(makeProgram(), { name: '.flash', render: stubOf('x86_64') })
  const text = made.toString('utf16le', 0x600)
  assert.ok(made.includes(Buffer.from('ipxe #!ipxe\necho hello\n\0', 'utf16le')), text)
})

test('what is no UEFI program of ours is refused', () => {
  assert.is(readMachine(makeProgram()), 'x86_64')
  assert.is(readMachine(makeProgram({ machine: 0xaa64 })), 'arm64')
  assert.throws(() => readMachine(makeProgram({ machine: 0x14c })), /machine 0x14c/)
  assert.throws(() => readMachine(makeProgram({ magic: 0x10b })), /not a UEFI program/)
  assert.throws(() => readMachine(Buffer.from('#!/bin/sh')), /not a UEFI program/)
  const full = makeProgram({ headerBytes: TABLE + 40 })
  assert.throws(() => addSection(full, { name: '.flash', render: stubOf('x86_64') }), /no room/)
})

test.run()
