/** Adds a section to a UEFI program (PE32+), whose code runs first. */

/** What the code of the new section needs: addresses relative to the loaded program. */
export interface CodeAddresses {
  /** Where the section begins. */
  readonly at: number
  /** The original entry point. */
  readonly entry: number
}

interface Section {
  /** The name has at most 8 characters. */
  readonly name: string
  /** The content; the entry point is its first byte. */
  readonly render: (place: CodeAddresses) => Buffer
}

const MACHINES = { 0x8664: 'x86_64', 0xaa64: 'arm64' } as const

const HEADER_BYTES = 40
/** In the optional header: the size of the fifth table, that of signatures. */
const SIGNATURE_BYTES = 112 + 4 * 8 + 4
/** IMAGE_SCN_CNT_CODE, IMAGE_SCN_MEM_EXECUTE and IMAGE_SCN_MEM_READ. */
const CODE = 0x60000020
const PAGE = 4096
const PE32_PLUS = 0x20b

/**
 * Returns the program's processor. Throws when it is no UEFI program, or for a processor that we do
 * not support.
 */
export function readMachine(program: Buffer): (typeof MACHINES)[keyof typeof MACHINES] {
  const { machine } = readHeaders(program)
  if (machine === 0x8664 || machine === 0xaa64) return MACHINES[machine]
  throw new Error(`a program for machine 0x${machine.toString(16)}, which is none of ours`)
}

/**
 * Tells whether the program has a table of signatures; whose they are, firmware finds out. Throws
 * when it is no UEFI program.
 */
export function isSigned(program: Buffer): boolean {
  const { optional } = readHeaders(program)
  return program.readUInt32LE(optional + SIGNATURE_BYTES) > 0
}

/**
 * Returns the program with one more section, whose first byte is the new entry point. Throws when
 * it is no UEFI program, or has no room for the section's header.
 */
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
  // UEFI does not require the checksum, and a signature would not cover the new section: neither is kept.
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
    /** Size of all headers in the file. */
    bytes: program.readUInt32LE(optional + 60),
    /** Where the last section ends in memory. */
    end: Math.max(...ends),
  }
}
