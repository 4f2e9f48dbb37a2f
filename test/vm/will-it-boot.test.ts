/** Whether an image starts on a machine: each answer is held against what firmware does in QEMU. */
import { execFileSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempDisposableSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readFirmware } from '#engine/bootable/firmware.ts'
import { readImageBoot } from '#engine/bootable/image-boot.ts'
import { judgeBoot } from '#engine/bootable/rules/boot-facts.ts'
import { openFileSource } from '#engine/image/sources/source.ts'
import { startQemu } from '#test/support/vm/qemu.ts'

const test = suite('whether an image starts, against firmware')
const folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-will-it-boot-'))
const at = (name: string) => join(folder.path, name)
const call = (program: string, ...words: readonly string[]) =>
  execFileSync(program, words, { cwd: folder.path, stdio: 'pipe' })
test.after(() => folder.remove())

const OVMF = '/usr/share/OVMF/OVMF'
const MARK = 'STARTED-BY-FIRMWARE'

/** Each with where its keys lie; null: it has none. */
const FIRMWARES = {
  bios: null,
  uefi: { code: 'CODE_4M.fd', vars: 'VARS_4M.fd' },
  microsoft: { code: 'CODE_4M.ms.fd', vars: 'VARS_4M.ms.fd' },
  own: { code: 'CODE_4M.snakeoil.fd', vars: 'VARS_4M.snakeoil.fd' },
} as const
type Firmware = keyof typeof FIRMWARES

const argsOf = (firmware: Firmware): readonly string[] => {
  const files = FIRMWARES[firmware]
  if (files === null) return ['-machine', 'graphics=off']
  const drives = [
    `readonly=on,file=${OVMF}_${files.code}`,
    `snapshot=on,file=${OVMF}_${files.vars}`,
  ]
  return [
    '-machine',
    'smm=on',
    '-global',
    'driver=cfi.pflash01,property=secure,value=on',
    ...drives.flatMap((file, unit) => ['-drive', `if=pflash,format=raw,unit=${unit},${file}`]),
  ]
}

/** A store of authenticated variables of EDK2, as the kernel would show it. */
async function factsOf(firmware: Firmware) {
  const sys = at(`sys-${firmware}`)
  const files = FIRMWARES[firmware]
  if (files === null) {
    mkdirSync(join(sys, 'firmware/memmap'), { recursive: true })
    return await readFirmware('x64', sys)
  }
  const variables = join(sys, 'firmware/efi/efivars')
  mkdirSync(variables, { recursive: true })
  const store = readFileSync(`${OVMF}_${files.vars}`)
  writeFileSync(join(variables, 'Timeout-x'), 'there are variables')
  for (let from = 0; (from = store.indexOf(Buffer.from([0xaa, 0x55, 0x3f, 0]), from)) !== -1;) {
    const [nameBytes, dataBytes] = [store.readUInt32LE(from + 36), store.readUInt32LE(from + 40)]
    const nameAt = from + 60
    const name = store.toString('utf16le', nameAt, nameAt + nameBytes).replace(/\0$/, '')
    const data = store.subarray(nameAt + nameBytes, nameAt + nameBytes + dataBytes)
    const guid = 'd719b2cb-3d3a-4596-a3bc-dad00e67656f'
    const kept = Buffer.concat([Buffer.alloc(4), data])
    if (name === 'db' || name === 'dbx') writeFileSync(join(variables, `${name}-${guid}`), kept)
    // Firmware with a platform key enforces Secure Boot; it tells so when it runs.
    const on = Buffer.from([0, 0, 0, 0, 1])
    if (name === 'PK')
      writeFileSync(join(variables, 'SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c'), on)
    from = nameAt
  }
  return await readFirmware('x64', sys)
}

/** Prints the mark on the serial line, and stops: for a BIOS. */
const BIOS_CODE = Buffer.concat([
  Buffer.from(
    '31 c0 8e d8 fc be 16 7c ac 84 c0 74 06 b4 0e cd 10 eb f5 f4 eb fd'.replaceAll(' ', ''),
    'hex',
  ),
  Buffer.from(`${MARK}\n\0`),
])

interface Image {
  readonly bios?: true
  /** Files in its EFI system partition. */
  readonly files?: Readonly<Record<string, string>>
}

function makeImage(name: string, { bios, files = {} }: Image): string {
  const image = at(`${name}.img`)
  writeFileSync(image, '')
  call('truncate', '-s', '64M', image)
  const table = 'label: gpt\nstart=2048, size=120000, type=uefi\n'
  execFileSync('sfdisk', ['-q', image], { input: table })
  call('mkfs.fat', '-F', '32', '-s', '1', '--offset', '2048', image, '60000')
  const part = `${image}@@1M`
  call('mmd', '-i', part, '::/EFI', '::/EFI/BOOT', '::/EFI/debian')
  for (const [path, file] of Object.entries(files)) call('mcopy', '-i', part, file, `::/${path}`)
  if (bios) {
    const bytes = readFileSync(image)
    BIOS_CODE.copy(bytes)
    writeFileSync(image, bytes)
  }
  return image
}

/** Programs that print the mark: unsigned, and signed with the key that the firmware of Debian's tests trusts. */
function makePrograms() {
  writeFileSync(at('mark.cfg'), `echo ${MARK}\nsleep 1\nhalt\n`)
  const modules = ['echo', 'halt', 'sleep', 'normal']
  const format = ['-O', 'x86_64-efi', '-p', '/EFI/BOOT', '-c', 'mark.cfg', '-o', 'plain.efi']
  call('grub-mkimage', ...format, ...modules)
  const key = '/usr/share/ovmf/PkKek-1-snakeoil'
  call('openssl', 'rsa', '-in', `${key}.key`, '-passin', 'pass:snakeoil', '-out', 'own.key')
  call('sbsign', '--key', 'own.key', '--cert', `${key}.pem`, '--output', 'own.efi', 'plain.efi')
  const grub = '/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed'
  copyFileSync(grub, at('grub.efi'))
}

test.before(makePrograms)

const IMAGES: Readonly<Record<string, Image>> = {
  bios: { bios: true },
  unsigned: { files: { 'EFI/BOOT/BOOTX64.EFI': 'plain.efi' } },
  own: { bios: true, files: { 'EFI/BOOT/BOOTX64.EFI': 'own.efi' } },
  debian: {
    files: {
      'EFI/BOOT/BOOTX64.EFI': '/usr/lib/shim/shimx64.efi.signed',
      'EFI/BOOT/grubx64.efi': 'grub.efi',
      'EFI/debian/grub.cfg': 'mark.cfg',
    },
  },
}

/** Seconds, ten times what a free machine needs. */
const PATIENCE = 240

async function boots(image: string, firmware: Firmware): Promise<boolean> {
  const drive = `if=none,id=disk,format=raw,snapshot=on,file=${image}`
  const args = [...argsOf(firmware), '-drive', drive, '-device', 'ide-hd,drive=disk']
  await using machine = await startQemu({ args, megabytes: 256 })
  const said = await machine.waitFor(
    new RegExp(`${MARK}|No bootable option|startup\\.nsh`),
    PATIENCE,
  )
  return said.endsWith(MARK)
}

for (const firmware of Object.keys(FIRMWARES) as readonly Firmware[])
  for (const [name, parts] of Object.entries(IMAGES))
    test(`${name} image, ${firmware} firmware: the answer is what happens`, async () => {
      const image = makeImage(name, parts)
      await using source = await openFileSource(image)
      const verdict = judgeBoot(await readImageBoot(source, 'img'), await factsOf(firmware))
      // SeaBIOS runs any first sector, and zeros for ever.
      const isZeros = firmware === 'bios' && parts.bios !== true
      const happens = !isZeros && (await boots(image, firmware))
      const isOpen = name === 'bios' && firmware !== 'bios'
      assert.is(happens && isOpen, false)
      const expected = happens ? 'boots' : isOpen ? 'unknown' : 'refused'
      assert.is(verdict.answer, expected, JSON.stringify(verdict))
    })

test.run()
