/** Reads what this machine's firmware starts, from the kernel's files. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isFolder } from '#kit/host/folders.ts'
import type { EfiProcessor, FirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import { parseKeyList } from './rules/key-list.ts'
import { parseSbat } from './rules/sbat.ts'

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

/** Never rejects: what cannot be read is unknown. */
export async function readFirmware(arch: string, sys = '/sys'): Promise<FirmwareFacts> {
  const efi = join(sys, 'firmware/efi')
  if (!(await isFolder(efi))) return BIOS
  const hasVariables = (await readdir(join(efi, 'efivars')).catch(() => [])).length > 0
  const readVariable = async (name: string, guid: string) => {
    const bytes = await readFile(join(efi, 'efivars', `${name}-${guid}`)).catch(() => null)
    return bytes === null || bytes.length < ATTRIBUTE_BYTES || bytes.length > MAX_BYTES
      ? null
      : bytes.subarray(ATTRIBUTE_BYTES)
  }
  const bits = (await readFile(join(efi, 'fw_platform_size'), 'utf8').catch(() => '64')).trim()
  const [secure, allowed, revoked, level] = await Promise.all([
    readVariable('SecureBoot', GLOBAL),
    readVariable('db', SECURITY),
    readVariable('dbx', SECURITY),
    readVariable('SbatLevelRT', SHIM),
  ])
  return {
    kind: 'uefi',
    processor: PROCESSORS.get(`${arch} ${bits}`) ?? null,
    // Firmware that knows no Secure Boot has no such variable.
    secure_boot: hasVariables ? secure?.[0] === 1 : null,
    allowed: allowed === null ? null : parseKeyList(allowed),
    // Nor one for what is revoked, where nothing is.
    revoked: hasVariables ? parseKeyList(revoked ?? Buffer.alloc(0)) : null,
    sbat_level: level === null ? null : parseSbat(level),
  }
}

const BIOS: FirmwareFacts = {
  kind: 'bios',
  processor: null,
  secure_boot: false,
  allowed: null,
  revoked: null,
  sbat_level: null,
}
