/** Reads what this machine's firmware starts, from the kernel's files. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isFolder } from '#kit/host/folders.ts'
import type { EfiProcessor, FirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import { parseKeyList } from './rules/key-list.ts'
import { parseSbat } from './rules/efi-program.ts'

const GLOBAL = '8be4df61-93ca-11d2-aa0d-00e098032b8c'
const SECURITY = 'd719b2cb-3d3a-4596-a3bc-dad00e67656f'
const SHIM = '605dab50-e046-4300-abb6-3dd810dd8b23'
/** Firmware has a few hundred KiB for all of them. */
const MAX_BYTES = 1024 * 1024
/** The attributes come first. */
const ATTRIBUTE_BYTES = 4

/** Node's name of the processor, and the bits of the firmware. */
const PROCESSORS: ReadonlyMap<string, EfiProcessor> = new Map([
  ['x64 64', 'x64'],
  ['x64 32', 'ia32'],
  ['ia32 32', 'ia32'],
  ['arm64 64', 'aa64'],
  ['arm 32', 'arm'],
  ['riscv64 64', 'riscv64'],
])

/** Null: neither UEFI nor a BIOS is certain. Never rejects: what cannot be read is unknown. */
export async function readFirmware(arch: string, sys = '/sys'): Promise<FirmwareFacts | null> {
  const efi = join(sys, 'firmware/efi')
  if (await isFolder(efi)) return await readUefi(arch, efi)
  // Boards have a loader of their own, containers no `/sys`; a BIOS leaves its map of memory.
  const isPc = arch === 'x64' || arch === 'ia32'
  return isPc && (await isFolder(join(sys, 'firmware/memmap'))) ? BIOS : null
}

async function readUefi(arch: string, efi: string): Promise<FirmwareFacts> {
  const bits = (await readFile(join(efi, 'fw_platform_size'), 'utf8').catch(() => '64')).trim()
  const [secure, allowed, revoked, level] = await Promise.all(
    VARIABLES.map((name) => readVariable(join(efi, 'efivars'), name)),
  )
  return {
    kind: 'uefi',
    processor: PROCESSORS.get(`${arch} ${bits}`) ?? null,
    // Firmware that knows no Secure Boot has no such variable, nor one for what is revoked where nothing is.
    secure_boot: ifRead(secure, (value) => value[0] === 1),
    allowed: allowed === NONE ? null : ifRead(allowed, parseKeyList),
    revoked: ifRead(revoked, parseKeyList),
    sbat_level: level === NONE ? null : ifRead(level, parseSbat),
  }
}

const VARIABLES = [
  `SecureBoot-${GLOBAL}`,
  `db-${SECURITY}`,
  `dbx-${SECURITY}`,
  `SbatLevelRT-${SHIM}`,
] as const

const ifRead = <Value>(bytes: Buffer | null | undefined, parse: (bytes: Buffer) => Value) =>
  bytes ? parse(bytes) : null

/** The firmware has no such variable. */
const NONE = Buffer.alloc(0)

/** Null: it cannot be read. */
async function readVariable(folder: string, name: string): Promise<Buffer | null> {
  const names: readonly string[] = await readdir(folder).catch(() => [])
  if (names.length > 0 && !names.includes(name)) return NONE
  const bytes = await readFile(join(folder, name)).catch(() => null)
  return bytes === null || bytes.length < ATTRIBUTE_BYTES || bytes.length > MAX_BYTES
    ? null
    : bytes.subarray(ATTRIBUTE_BYTES)
}

const BIOS: FirmwareFacts = {
  kind: 'bios',
  processor: null,
  secure_boot: false,
  allowed: null,
  revoked: null,
  sbat_level: null,
}
