/** Images and firmware for the question whether the one starts on the other: each answer beside what QEMU did. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { readFirmware } from '#engine/bootable/firmware.ts'
import { readImageBoot } from '#engine/bootable/image-boot.ts'
import { type BootVerdict, judgeBoot } from '#engine/bootable/rules/boot-facts.ts'
import { openFileSource } from '#engine/image/sources/source.ts'
import { startQemu } from './qemu.ts'

const MARK = 'STARTED-BY-FIRMWARE'
const SHIM = '/usr/lib/shim/shimx64.efi.signed'
const CODE = '/usr/share/OVMF/OVMF_CODE_4M.secboot.fd'
const VARS = '/usr/share/OVMF/OVMF_VARS_4M.fd'
const ARM_CODE = '/usr/share/AAVMF/AAVMF_CODE.fd'
/** Its store without keys is not even formatted. */
const ARM_VARS = '/usr/share/AAVMF/AAVMF_VARS'

/** Those of `db`: names of files of certificates; null: no Secure Boot. */
const FIRMWARES = {
  BIOS: null,
  UEFI: null,
  '2011': ['ca2011'],
  '2023': ['ca2023'],
  both: ['ca2011', 'ca2023'],
  own: ['own'],
  'arm64 UEFI': null,
  'arm64 own': ['own'],
} as const
export type Firmware = keyof typeof FIRMWARES
export const ON_PC = ['BIOS', 'UEFI', '2011', '2023', 'both', 'own'] as const
export const ON_ARM = ['arm64 UEFI', 'arm64 own'] as const

interface Image {
  /** Absent: one FAT, and no table. */
  readonly table?: 'gpt' | 'dos'
  /** Of the only partition, as sfdisk calls it; absent: an EFI system partition. */
  readonly type?: string
  readonly code?: 'mark' | 'windows'
  readonly bits?: '16' | '32'
  /** Files in the FAT; null: there is no FAT. */
  readonly files: Readonly<Record<string, string>> | null
}

const X64 = 'EFI/BOOT/BOOTX64.EFI'
const DEBIAN = { 'EFI/BOOT/grubx64.efi': 'grub.efi', 'EFI/debian/grub.cfg': 'mark.cfg' }

export const IMAGES: Readonly<Record<string, Image | 'disc'>> = {
  'BIOS code, MBR': { table: 'dos', type: '83', code: 'mark', files: null },
  'BIOS code, GPT': { table: 'gpt', type: 'linux', code: 'mark', files: null },
  'BIOS code, empty ESP': { table: 'gpt', code: 'mark', files: {} },
  nothing: { table: 'gpt', type: 'linux', files: null },
  unsigned: { table: 'gpt', files: { [X64]: 'x64.efi' } },
  'unsigned, MBR': { table: 'dos', type: 'ef', bits: '16', files: { [X64]: 'x64.efi' } },
  'unsigned, no table': { files: { [X64]: 'x64.efi' } },
  'for arm64': { table: 'gpt', files: { 'EFI/BOOT/BOOTAA64.EFI': 'aa64.efi' } },
  'for 32 bits': { table: 'gpt', files: { 'EFI/BOOT/BOOTIA32.EFI': 'ia32.efi' } },
  'for all': {
    table: 'gpt',
    code: 'mark',
    files: { [X64]: 'own.efi', 'EFI/BOOT/BOOTAA64.EFI': 'own-aa64.efi' },
  },
  own: { table: 'gpt', files: { [X64]: 'own.efi' } },
  "a stranger's": { table: 'gpt', files: { [X64]: 'stranger.efi' } },
  'own and a stranger': { table: 'gpt', files: { [X64]: 'two.efi' } },
  'own, changed': { table: 'gpt', files: { [X64]: 'changed.efi' } },
  'Debian, both': { table: 'gpt', files: { ...DEBIAN, [X64]: SHIM } },
  'Debian, 2011': { table: 'gpt', files: { ...DEBIAN, [X64]: 'shim2011.efi' } },
  'Debian, 2023': { table: 'gpt', files: { ...DEBIAN, [X64]: 'shim2023.efi' } },
  'Debian, MBR and BIOS code': {
    table: 'dos',
    type: 'c',
    code: 'mark',
    files: { ...DEBIAN, [X64]: SHIM },
  },
  'unsigned, code of Windows': { table: 'gpt', code: 'windows', files: { [X64]: 'x64.efi' } },
  'a disc': 'disc',
}

export interface Pair {
  readonly verdict: BootVerdict
  readonly boots: boolean
}

/** `boots` and `refused` are promises; `unknown` is none. */
export const isWrong = ({ verdict, boots }: Pair): boolean =>
  verdict.answer !== 'unknown' && (verdict.answer === 'boots') !== boots

/** Makes what pairs need in a folder. */
export function preparePairs(folder: string) {
  const at = (name: string) => join(folder, name)
  const call = (program: string, ...words: readonly string[]) =>
    execFileSync(program, words, { cwd: folder, stdio: 'pipe' })
  makePrograms(folder, call)
  const made = new Set<string>()
  const make = (name: string) => {
    const path = at(`${name.replaceAll(/\W+/g, '-')}.img`)
    const image = IMAGES[name]
    if (image === undefined) throw new Error(`there is no image ${name}`)
    if (!made.has(path)) {
      if (image === 'disc') makeDisc(path, call)
      else makeImage(path, image, call)
    }
    made.add(path)
    return path
  }
  const stores = new Map<Firmware, string>()
  const makeStore = (firmware: Firmware) => {
    const known = stores.get(firmware)
    if (known !== undefined) return known
    const keys = FIRMWARES[firmware]?.map((key) => readFileSync(at(`${key}.der`)))
    const path = at(`vars-${firmware.replaceAll(' ', '-')}`)
    const armVars = `${ARM_VARS}${keys === undefined ? '' : '.ms'}.fd`
    const store = readFileSync(isArm(firmware) ? armVars : VARS)
    if (keys !== undefined) enrol(store, keys, readFileSync(at('own.der')))
    writeFileSync(path, store)
    stores.set(firmware, path)
    return path
  }
  return async (name: string, firmware: Firmware): Promise<Pair> => {
    const path = make(name)
    const vars = makeStore(firmware)
    await using source = await openFileSource(path)
    const facts = await factsOf(at(`sys-${firmware}`), firmware, vars)
    const verdict = judgeBoot(await readImageBoot(source, 'img'), facts)
    return { verdict, boots: await run(path, firmware, vars) }
  }
}

const isArm = (firmware: Firmware) => firmware.startsWith('arm64')

type Call = (program: string, ...words: readonly string[]) => Buffer

/** Programs that print the mark, and stop. */
function makePrograms(folder: string, call: Call): void {
  const at = (name: string) => join(folder, name)
  writeFileSync(at('mark.cfg'), `echo ${MARK}\nsleep 1\nhalt\n`)
  copyFileSync('/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed', at('grub.efi'))
  for (const [name, [machine, code]] of Object.entries(PROGRAMS))
    writeFileSync(
      at(`${name}.efi`),
      makeProgram(machine, Buffer.from(code.replaceAll(' ', ''), 'hex')),
    )
  for (const name of ['own', 'stranger']) {
    const words = `req -new -x509 -newkey rsa:2048 -nodes -days 99 -subj /CN=${name} -keyout ${name}.key -out ${name}.pem`
    call('openssl', ...words.split(' '))
    writeFileSync(at(`${name}.der`), new X509Certificate(readFileSync(at(`${name}.pem`))).raw)
  }
  const sign = (key: string, from: string, to: string) =>
    call('sbsign', '--key', `${key}.key`, '--cert', `${key}.pem`, '--output', to, from)
  sign('own', 'x64.efi', 'own.efi')
  sign('own', 'aa64.efi', 'own-aa64.efi')
  sign('stranger', 'x64.efi', 'stranger.efi')
  sign('stranger', 'own.efi', 'two.efi')
  const changed = readFileSync(at('own.efi'))
  // In the head, behind what DOS programs have there.
  changed.writeUInt8(1, 0x30)
  writeFileSync(at('changed.efi'), changed)
  for (const [number, year] of [
    [1, '2011'],
    [2, '2023'],
  ] as const) {
    call('sbattach', '--signum', String(number), '--detach', `sig${year}`, SHIM)
    copyFileSync('/usr/lib/shim/shimx64.efi', at(`shim${year}.efi`))
    call('sbattach', '--attach', `sig${year}`, `shim${year}.efi`)
    const text = String(
      call('openssl', 'pkcs7', '-inform', 'der', '-in', `sig${year}`, '-print_certs'),
    )
    const all = (text.match(/-----BEGIN[^]*?END CERTIFICATE-----/g) ?? []).map(
      (pem) => new X509Certificate(pem),
    )
    const ca = all.find(({ subject }) => new RegExp(`UEFI CA ${year}$`, 'm').test(subject))
    writeFileSync(at(`ca${year}.der`), ca?.raw ?? '')
  }
}

/** Code that has the system table print what follows it, and stops. */
const PROGRAMS: Readonly<Record<string, readonly [machine: number, code: string]>> = {
  x64: [0x8664, '48 83 ec 28 48 8b 4a 40 48 8d 15 05 00 00 00 ff 51 08 eb fe'],
  ia32: [0x14c, 'eb fe'],
  aa64: [0xaa64, '20 20 40 f9 02 04 40 f9 61 00 00 10 40 00 3f d6 00 00 00 14'],
}

/** PE32+ with one section. */
function makeProgram(machine: number, code: Buffer): Buffer {
  const text = Buffer.concat([code, Buffer.from(`${MARK}\r\n\0`, 'utf16le')])
  const file = Buffer.alloc(2 * 4096)
  file.write('MZ')
  file.writeUInt32LE(0x40, 0x3c)
  file.write('PE', 0x40)
  const [coff, optional, section] = [0x44, 0x58, 0x58 + 240] as const
  file.writeUInt16LE(machine, coff)
  file.writeUInt16LE(1, coff + 2)
  file.writeUInt16LE(240, coff + 16)
  file.writeUInt16LE(0x22, coff + 18)
  file.writeUInt16LE(0x20b, optional)
  const fields = [
    [4, 4096],
    [16, 4096],
    [20, 4096],
    [32, 4096],
    [36, 4096],
    [56, 8192],
    [60, 4096],
    [108, 16],
  ] as const
  for (const [place, value] of fields) file.writeUInt32LE(value, optional + place)
  // An application of EFI.
  file.writeUInt16LE(10, optional + 68)
  file.write('.text', section)
  for (const [at, value] of [4096, 4096, 4096, 4096].entries())
    file.writeUInt32LE(value, section + 8 + 4 * at)
  file.writeUInt32LE(0x6000_0020, section + 36)
  text.copy(file, 4096)
  return file
}

/** Prints the mark on the serial line, and stops: for a BIOS, and known by its name as GRUB is. */
const BIOS_CODE = Buffer.concat([
  Buffer.from('31c08ed8fcbe167cac84c07406b40ecd10ebf5f4ebfd', 'hex'),
  Buffer.from(`${MARK}\n\0GRUB `),
])
/** Of Windows 11, whole as far as it looks for an active partition. */
const WINDOWS_CODE = Buffer.from(
  '33c08ed0bc007c8ec08ed8be007cbf0006b90002fcf3a450681c06cbfbb90400bdbe07807e00007c0b0f850e0183c510e2f1cd18',
  'hex',
)

function makeImage(
  path: string,
  { table, type, code, bits = '32', files }: Image,
  call: Call,
): void {
  writeFileSync(path, '')
  call('truncate', '-s', '64M', path)
  const first = table === undefined ? 0 : 2048
  if (table !== undefined)
    execFileSync('sfdisk', ['-q', path], {
      input: `label: ${table}\nstart=${first}, size=120000, type=${type ?? 'uefi'}\n`,
    })
  if (files !== null) {
    const clusters = bits === '16' ? '4' : '1'
    call('mkfs.fat', '-F', bits, '-s', clusters, '--offset', String(first), path, '60000')
    const part = `${path}@@${first * 512}`
    call('mmd', '-i', part, '::/EFI', '::/EFI/BOOT', '::/EFI/debian')
    for (const [name, file] of Object.entries(files)) call('mcopy', '-i', part, file, `::/${name}`)
  }
  if (code !== undefined) {
    const bytes = readFileSync(path)
    ;(code === 'mark' ? BIOS_CODE : WINDOWS_CODE).copy(bytes)
    writeFileSync(path, bytes)
  }
}

/** El Torito for UEFI, and nothing that a disk starts by. */
function makeDisc(path: string, call: Call): void {
  call('mkdir', '-p', 'disc')
  call('truncate', '-s', '4M', 'disc/efi.img')
  call('mkfs.fat', 'disc/efi.img')
  call('mmd', '-i', 'disc/efi.img', '::/EFI', '::/EFI/BOOT')
  call('mcopy', '-i', 'disc/efi.img', 'x64.efi', `::/${X64}`)
  const words = '-quiet -o disc.iso -eltorito-alt-boot -e efi.img -no-emul-boot disc'
  call('xorriso', '-as', 'mkisofs', ...words.split(' '))
  call('mv', 'disc.iso', path)
}

const GLOBAL = '61dfe48bca93d211aa0d00e098032b8c'
const SECURITY = 'cbb219d73a3d9645a3bcdad00e67656f'
const X509 = 'a159c0a5e494a74a87b5ab155c2bf072'

/** Puts keys alone into a store of authenticated variables of EDK2 (its `VariableFormat.h`). */
function enrol(store: Buffer, trusted: readonly Buffer[], platform: Buffer): void {
  const volume = store.readUInt16LE(0x30)
  let at = volume + 28
  store.fill(0xff, at, volume + store.readUInt32LE(volume + 16))
  const add = (name: string, vendor: string, certificates: readonly Buffer[]) => {
    const data = Buffer.concat(certificates.map(listOf))
    const wide = Buffer.from(`${name}\0`, 'utf16le')
    const head = Buffer.alloc(60)
    head.writeUInt16LE(0x55aa, 0)
    head.writeUInt8(0x3f, 2)
    // Kept, for boot and run time, signed with a time.
    head.writeUInt32LE(0x27, 4)
    head.writeUInt32LE(wide.length, 36)
    head.writeUInt32LE(data.length, 40)
    head.write(vendor, 44, 'hex')
    const variable = Buffer.concat([head, wide, data])
    variable.copy(store, at)
    at += Math.ceil(variable.length / 4) * 4
  }
  add('PK', GLOBAL, [platform])
  add('KEK', GLOBAL, [platform])
  add('db', SECURITY, trusted)
}

function listOf(certificate: Buffer): Buffer {
  const head = Buffer.alloc(28 + 16)
  head.write(X509, 0, 'hex')
  head.writeUInt32LE(head.length + certificate.length, 16)
  head.writeUInt32LE(16 + certificate.length, 24)
  return Buffer.concat([head, certificate])
}

/** What our own code reads of this store, shown as the kernel would. */
async function factsOf(sys: string, firmware: Firmware, vars: string) {
  const arch = isArm(firmware) ? 'arm64' : 'x64'
  if (firmware === 'BIOS') {
    mkdirSync(join(sys, 'firmware/memmap'), { recursive: true })
    return await readFirmware(arch, sys)
  }
  const variables = join(sys, 'firmware/efi/efivars')
  mkdirSync(variables, { recursive: true })
  writeFileSync(join(variables, 'Timeout-x'), 'there are variables')
  const store = readFileSync(vars)
  for (let from = 0; (from = store.indexOf(Buffer.from([0xaa, 0x55, 0x3f, 0]), from)) !== -1;) {
    const [nameBytes, dataBytes] = [store.readUInt32LE(from + 36), store.readUInt32LE(from + 40)]
    const nameAt = from + 60
    const name = store.toString('utf16le', nameAt, nameAt + nameBytes).replace(/\0$/, '')
    const data = store.subarray(nameAt + nameBytes, nameAt + nameBytes + dataBytes)
    const kept = Buffer.concat([Buffer.alloc(4), data])
    if (name === 'db')
      writeFileSync(join(variables, 'db-d719b2cb-3d3a-4596-a3bc-dad00e67656f'), kept)
    // Firmware with a platform key enforces Secure Boot; it tells so when it runs.
    if (name === 'PK')
      writeFileSync(
        join(variables, 'SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c'),
        Buffer.from([0, 0, 0, 0, 1]),
      )
    from = nameAt
  }
  return await readFirmware(arch, sys)
}

/** Seconds, many times what a free machine needs. */
const PATIENCE = 90
/** A BIOS runs any first sector, and zeros for ever. */
const BIOS_PATIENCE = 15
const ENDS = `${MARK}|No bootable option|No bootable device|startup\\.nsh|not a bootable disk`

async function run(image: string, firmware: Firmware, vars: string): Promise<boolean> {
  const onArm = isArm(firmware)
  const files = [`readonly=on,file=${onArm ? ARM_CODE : CODE}`, `snapshot=on,file=${vars}`]
  const flash = files.flatMap((file, unit) => [
    '-drive',
    `if=pflash,format=raw,unit=${unit},${file}`,
  ])
  const secure = ['-machine', 'smm=on', '-global', 'driver=cfi.pflash01,property=secure,value=on']
  const board =
    firmware === 'BIOS' ? ['-machine', 'graphics=off'] : [...(onArm ? [] : secure), ...flash]
  const drive = `if=none,id=disk,format=raw,snapshot=on,file=${image}`
  const disk = `${onArm ? 'virtio-blk-device' : 'ide-hd'},drive=disk`
  const args = [...board, '-drive', drive, '-device', disk]
  const processor = onArm ? 'aarch64' : 'x86_64'
  const start = async (seconds: number): Promise<boolean> => {
    await using machine = await startQemu({ args, megabytes: 256, processor })
    return (await machine.waitFor(new RegExp(ENDS), seconds)).endsWith(MARK)
  }
  if (firmware === 'BIOS') return await start(BIOS_PATIENCE).catch(() => false)
  // QEMU has been seen to stand still in the middle of a line.
  return await start(PATIENCE).catch(() => start(PATIENCE))
}
