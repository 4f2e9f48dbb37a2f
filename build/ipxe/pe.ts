/** A UEFI program (PE32+) with one more section, whose code runs before all others. */

/** What code of the new section has to know: addresses relative to where the program is loaded. */
export interface Place {
  /** Where the section begins. */
  readonly at: number
  /** Where the program begins without it. */
  readonly entry: number
}

interface Section {
  /** At most 8 characters. */
  readonly name: string
  /** Code first. */
  readonly render: (place: Place) => Buffer
}

const MACHINES = { 0x8664: 'x86_64', 0xaa64: 'arm64' } as const

const HEADER_BYTES = 40
/** contains code, is run, is read */
const CODE = 0x60000020
const PAGE = 4096
const PE32_PLUS = 0x20b

/** The processor that the program is for; an Error where it is none of ours. */
export function readMachine(program: Buffer): (typeof MACHINES)[keyof typeof MACHINES] {
  const { machine } = readHeaders(program)
  if (machine === 0x8664 || machine === 0xaa64) return MACHINES[machine]
  throw new Error(`a program for machine 0x${machine.toString(16)}, which is none of ours`)
}

export function addSection(program: Buffer, { name, render }: Section): Buffer {
  const headers = readHeaders(program)
  const { pe, optional, table, count, entry, fileAlignment, sectionAlignment } = headers
  if (table + (count + 1) * HEADER_BYTES > headers.bytes) {
    throw new Error('there is no room for the header of another section')
  }
  const at = roundUp(headers.end, Math.max(sectionAlignment, PAGE))
  const content = render({ at, entry })
  const offset = roundUp(program.length, fileAlignment)
  const made = Buffer.alloc(offset + roundUp(content.length, fileAlignment))
  program.copy(made)
  content.copy(made, offset)

  const header = Buffer.alloc(HEADER_BYTES)
  header.write(name, 0, 8, 'latin1')
  header.writeUInt32LE(content.length, 8)
  header.writeUInt32LE(at, 12)
  header.writeUInt32LE(made.length - offset, 16)
  header.writeUInt32LE(offset, 20)
  header.writeUInt32LE(CODE, 36)
  header.copy(made, table + count * HEADER_BYTES)

  made.writeUInt16LE(count + 1, pe + 6)
  made.writeUInt32LE(at, optional + 16)
  made.writeUInt32LE(roundUp(at + content.length, sectionAlignment), optional + 56)
  // The checksum is optional for UEFI, and a signature would not cover us: both are gone.
  made.writeUInt32LE(0, optional + 64)
  return made
}

export const roundUp = (value: number, to: number): number => Math.ceil(value / to) * to

function readHeaders(program: Buffer) {
  const pe = program.length < 64 ? 0 : program.readUInt32LE(0x3c)
  const optional = pe + 24
  const isProgram =
    pe > 0 &&
    program.toString('latin1', pe, pe + 4) === 'PE\0\0' &&
    program.readUInt16LE(optional) === PE32_PLUS
  if (!isProgram) throw new Error('not a UEFI program (PE32+)')
  const count = program.readUInt16LE(pe + 6)
  const table = optional + program.readUInt16LE(pe + 20)
  const ends = Array.from({ length: count }, (_, index) => {
    const header = table + index * HEADER_BYTES
    return program.readUInt32LE(header + 8) + program.readUInt32LE(header + 12)
  })
  return {
    pe,
    optional,
    table,
    count,
    machine: program.readUInt16LE(pe + 4),
    entry: program.readUInt32LE(optional + 16),
    sectionAlignment: program.readUInt32LE(optional + 32),
    fileAlignment: program.readUInt32LE(optional + 36),
    /** Of all headers, in the file. */
    bytes: program.readUInt32LE(optional + 60),
    /** Where the last section ends, when loaded. */
    end: Math.max(...ends),
  }
}
