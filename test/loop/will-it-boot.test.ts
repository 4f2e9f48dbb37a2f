/** Whether an image starts on a machine: what it starts from, in each format, against what firmware trusts. */
import { execFileSync } from 'node:child_process'
import { createHash, X509Certificate } from 'node:crypto'
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { seal } from '#engine/disk/rules/partition-tables.ts'
import { readFirmware } from '#engine/bootable/firmware.ts'
import { readImageBoot } from '#engine/bootable/image-boot.ts'
import { type BootVerdict, judgeBoot } from '#engine/bootable/rules/boot-facts.ts'
import type { FirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import { parseEfiProgram } from '#engine/bootable/rules/efi-program.ts'
import { createFlasher } from '#engine/flash/flasher.ts'
import { decideNotes, WHOLE_DISK } from '#engine/flash/rules/flash-plan.ts'
import { openFileSource } from '#engine/image/sources/source.ts'
import { sendFile, startHostileServer } from '#test/support/http/hostile-server.ts'
import { createLoop } from '#test/support/disk/loop.ts'
import { packBuffer } from '#test/support/disk/packed-image.ts'

const test = suite('whether an image starts on a machine')
const folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-bootable-'))
const at = (name: string) => join(folder.path, name)
const call = (program: string, ...words: readonly string[]) =>
  execFileSync(program, words, { stdio: 'pipe', cwd: folder.path })
const SHIM = '/usr/lib/shim/shimx64.efi.signed'
/** Certificates of the shim, as openssl reads them. */
let [ca2011, ca2023, own] = [Buffer.alloc(0), Buffer.alloc(0), Buffer.alloc(0)]

test.before(() => {
  const listed = [1, 2].flatMap((number) => {
    call('sbattach', '--signum', String(number), '--detach', `sig${number}`, SHIM)
    const text = call('openssl', 'pkcs7', '-inform', 'der', '-in', `sig${number}`, '-print_certs')
    return String(text).match(/-----BEGIN[^]*?END CERTIFICATE-----/g) ?? []
  })
  const find = (name: RegExp) =>
    listed.map((pem) => new X509Certificate(pem)).find(({ subject }) => name.test(subject))?.raw ??
    Buffer.alloc(0)
  ca2011 = find(/CN=Microsoft Corporation UEFI CA 2011$/m)
  ca2023 = find(/CN=Microsoft UEFI CA 2023$/m)
  const words = 'req -new -x509 -newkey rsa:2048 -nodes -days 9 -subj /CN=lab -keyout key -out crt'
  call('openssl', ...words.split(' '))
  own = new X509Certificate(readFileSync(at('crt'))).raw
})

test.after(() => folder.remove())

const LISTS = {
  x509: 'a159c0a5e494a74a87b5ab155c2bf072',
  sha256: '2616c4c14c509240aca941f936934328',
}

/** A list of UEFI with one entry. */
function listOf(type: keyof typeof LISTS | 'unknown', data: Buffer): Buffer {
  const head = Buffer.alloc(28 + 16)
  head.write(type === 'unknown' ? 'ff'.repeat(16) : LISTS[type], 0, 'hex')
  head.writeUInt32LE(head.length + data.length, 16)
  head.writeUInt32LE(16 + data.length, 24)
  return Buffer.concat([head, data])
}

const NAMES = {
  SecureBoot: '8be4df61-93ca-11d2-aa0d-00e098032b8c',
  db: 'd719b2cb-3d3a-4596-a3bc-dad00e67656f',
  dbx: 'd719b2cb-3d3a-4596-a3bc-dad00e67656f',
  SbatLevelRT: '605dab50-e046-4300-abb6-3dd810dd8b23',
} as const

/** Firmware with these variables, as the kernel shows them. */
async function firmwareOf(
  variables: Readonly<Partial<Record<keyof typeof NAMES, Buffer | string>>>,
  { arch = 'x64', bits = '64' } = {},
): Promise<FirmwareFacts> {
  const sys = mkdtempDisposableSync(at('sys-'))
  const efi = join(sys.path, 'firmware/efi')
  call('mkdir', '-p', join(efi, 'efivars'))
  writeFileSync(join(efi, 'fw_platform_size'), `${bits}\n`)
  for (const [name, content] of Object.entries({ Timeout: 'x', ...variables })) {
    const guid = Object.entries(NAMES).find(([known]) => known === name)?.[1] ?? NAMES.SecureBoot
    const bytes = Buffer.concat([Buffer.alloc(4), Buffer.from(content)])
    writeFileSync(join(efi, 'efivars', `${name}-${guid}`), bytes)
  }
  const facts = await readFirmware(arch, sys.path)
  if (facts === null) throw new Error('UEFI was not seen')
  return facts
}

const secure = (db: Buffer, more: Parameters<typeof firmwareOf>[0] = {}) =>
  firmwareOf({ SecureBoot: '\u0001', db, ...more })

interface ImageParts {
  /** What lies at EFI/BOOT/BOOTX64.EFI. */
  readonly program?: string
  readonly table?: 'gpt' | 'dos'
  readonly bits?: '12' | '16' | '32'
  readonly hasCode?: boolean
}

/** 64 MiB with one FAT. */
function makeImage({ program, table = 'gpt', bits = '32', hasCode = false }: ImageParts): string {
  const image = at('a.img')
  const MIB = 1 << 20
  writeFileSync(image, Buffer.alloc(64 * MIB))
  const script =
    table === 'gpt' ? 'label: gpt\nstart=2048, type=uefi' : 'label: dos\nstart=2048, type=c'
  execFileSync('sfdisk', ['-q', image], { input: `${script}, size=120000\n` })
  const clusters = { 12: '64', 16: '4', 32: '1' }[bits]
  call('mkfs.fat', '-F', bits, '-s', clusters, '--offset', '2048', image, String(60_000))
  if (program !== undefined) {
    call('mmd', '-i', `${image}@@1M`, '::/EFI', '::/EFI/BOOT')
    call('mcopy', '-i', `${image}@@1M`, program, '::/EFI/BOOT/BOOTX64.EFI')
  }
  if (hasCode) {
    const bytes = readFileSync(image)
    // As GRUB's begins and says.
    bytes.writeUInt16LE(0x63eb, 0)
    bytes.write('GRUB \0Geom', 0x180)
    writeFileSync(image, bytes)
  }
  return image
}

async function look(path: string, format: 'img' | 'qcow2' | 'img.zst' | 'img.xz' = 'img') {
  await using source = await openFileSource(path)
  return await readImageBoot(source, format)
}

test('the same is found in each format that can be entered, and in each FAT', async () => {
  for (const bits of ['12', '16', '32'] as const) {
    const image = makeImage({ program: SHIM, bits, table: bits === '32' ? 'gpt' : 'dos' })
    const found = await look(image)
    assert.is(found?.programs.length, 1, bits)
    call('qemu-img', 'convert', '-c', '-O', 'qcow2', image, 'a.qcow2')
    assert.equal(await look(at('a.qcow2'), 'qcow2'), found)
    writeFileSync(at('a.img.zst'), (await packBuffer(readFileSync(image))).file)
    assert.equal(await look(at('a.img.zst'), 'img.zst'), found)
    call('xz', '-0', '--keep', '--force', image)
    assert.is(await look(at('a.img.xz'), 'img.xz'), null)
  }
})

test('FAT32 of few clusters, and a FAT without a table of partitions', async () => {
  const image = makeImage({ program: SHIM })
  const bytes = readFileSync(image)
  bytes.writeUInt32LE(20_000, (1 << 20) + 32)
  writeFileSync(image, bytes)
  const few = await look(image)
  assert.is(few?.programs.length, 1)
  writeFileSync(image, Buffer.alloc(8 << 20))
  call('mkfs.fat', image)
  call('mmd', '-i', image, '::/EFI', '::/EFI/BOOT')
  call('mcopy', '-i', image, SHIM, '::/EFI/BOOT/BOOTX64.EFI')
  assert.equal((await look(image))?.programs, few?.programs)
})

/** The last section of a program, moved behind bytes that belong to none. */
function addGap(program: Buffer): Buffer {
  const header = program.readUInt32LE(0x3c)
  const count = program.readUInt16LE(header + 6)
  const table = header + 24 + program.readUInt16LE(header + 20)
  const places = Array.from({ length: count }, (_, index) => table + 40 * index + 20)
  const last = Math.max(...places.map((place) => program.readUInt32LE(place)))
  const moved = Buffer.concat([
    program.subarray(0, last),
    Buffer.alloc(512, 'gap'),
    program.subarray(last),
  ])
  const place = places.find((each) => program.readUInt32LE(each) === last) ?? 0
  moved.writeUInt32LE(last + 512, place)
  return moved
}

test('a program with a gap between its sections is signed for what firmware reads of it', () => {
  writeFileSync(at('gap.efi'), addGap(readFileSync('/usr/lib/shim/shimx64.efi')))
  call('sbsign', ...'--key key --cert crt --output own.efi gap.efi'.split(' '))
  assert.is(countSigners(readFileSync(at('own.efi'))), 1)
})

test('the digest and the signers are those that sbsign, openssl and Microsoft see', () => {
  const program = parseEfiProgram(readFileSync(SHIM))
  const said = String(call('openssl', 'asn1parse', '-inform', 'der', '-in', 'sig1'))
  assert.match(said, program?.digest.toUpperCase() ?? 'none')
  assert.equal(
    program?.signatures.map(({ certificates }) => certificates.at(-1)?.name),
    ['Microsoft Corporation UEFI CA 2011', 'Microsoft UEFI CA 2023'],
  )
  call(
    'sbsign',
    '--key',
    'key',
    '--cert',
    'crt',
    '--output',
    'own.efi',
    '/usr/lib/shim/shimx64.efi',
  )
  const [signature] = parseEfiProgram(readFileSync(at('own.efi')))?.signatures ?? []
  assert.equal(
    signature?.certificates.map(({ name }) => name),
    ['lab'],
  )
})

const sentencesOf = (verdict: BootVerdict): string =>
  verdict.answer === 'refused' ? `${verdict.why} ${verdict.wayOut}` : verdict.answer

test('Secure Boot starts what one key has signed and none has revoked, and what is not is named', async () => {
  const image = await look(makeImage({ program: SHIM }))
  const judge = async (firmware: Promise<FirmwareFacts>) =>
    sentencesOf(judgeBoot(image, await firmware))
  const [old, fresh, lab] = [
    listOf('x509', ca2011),
    listOf('x509', ca2023),
    listOf('x509', own),
  ] as const
  for (const keys of [old, fresh, Buffer.concat([lab, fresh])])
    assert.is(await judge(secure(keys)), 'boots')
  const other = await judge(secure(lab))
  assert.match(
    other,
    "the firmware trusts “lab”. The image's boot loader is signed by “Microsoft Corporation UEFI CA 2011”, “Microsoft UEFI CA 2023”. Turn Secure Boot off",
  )
  assert.is(await judge(firmwareOf({ SecureBoot: '\0', db: lab })), 'boots')
  assert.is(await judge(firmwareOf({})), 'boots')
  const digest = Buffer.from(parseEfiProgram(readFileSync(SHIM))?.digest ?? '', 'hex')
  assert.is(await judge(secure(listOf('sha256', digest))), 'boots')
  for (const dbx of [old, listOf('sha256', digest)])
    assert.match(await judge(secure(Buffer.concat([old, fresh]), { dbx })), 'has revoked')
  const level = 'sbat,1,2026010100\nshim,5\n'
  assert.match(await judge(secure(old, { SbatLevelRT: level })), 'is revoked (SBAT: shim)')
  assert.is(await judge(secure(old, { SbatLevelRT: 'sbat,1,1\nshim,4\n' })), 'boots')
  const strange = listOf('unknown', digest)
  for (const keys of [strange, Buffer.concat([lab, strange])])
    assert.is(await judge(secure(keys)), 'unknown')
  assert.is(await judge(secure(old, { dbx: strange })), 'unknown')
})

test('variables that cannot be read, and a program that cannot be judged, are unknown', async () => {
  const sys = mkdtempDisposableSync(at('sys-'))
  const efi = join(sys.path, 'firmware/efi/efivars')
  call('mkdir', '-p', ...Object.entries(NAMES).map(([name, guid]) => join(efi, `${name}-${guid}`)))
  const firmware = await readFirmware('x64', sys.path)
  assert.equal(firmware, {
    kind: 'uefi',
    processor: 'x64',
    secure_boot: null,
    allowed: null,
    revoked: null,
    sbat_level: null,
  })
  assert.is(judgeBoot(await look(makeImage({ program: SHIM })), firmware).answer, 'unknown')
  writeFileSync(at('damaged.efi'), readFileSync(SHIM).subarray(0, 2000))
  const damaged = await look(makeImage({ program: at('damaged.efi') }))
  assert.equal(damaged?.unread, ['x64'])
  assert.is(judgeBoot(damaged, await secure(listOf('x509', ca2011))).answer, 'unknown')
})

test('BIOS, UEFI and processors are told apart', async () => {
  assert.is(await readFirmware('x64', at('nothing')), null)
  call('mkdir', '-p', 'pc/firmware/memmap')
  assert.is(await readFirmware('arm64', at('pc')), null)
  const bios = await readFirmware('x64', at('pc'))
  assert.is(bios?.kind, 'bios')
  const [uefi, arm] = [await firmwareOf({}), await firmwareOf({}, { arch: 'arm64' })]
  const answers = async (parts: ImageParts) => {
    const image = await look(makeImage(parts))
    return [bios, uefi, arm].map((firmware) => judgeBoot(image, firmware).answer).join(' ')
  }
  assert.is(await answers({ program: SHIM }), 'refused boots refused')
  assert.is(await answers({ program: SHIM, hasCode: true }), 'boots boots refused')
  assert.is(await answers({ hasCode: true }), 'boots unknown unknown')
  const found = { bios: true, programs: [], unread: [], hasSystemPartition: false }
  const none = { ...found, isSearched: true, isDisc: false }
  assert.is(judgeBoot(none, uefi).answer, 'refused')
  assert.is(judgeBoot({ ...none, bios: false, isDisc: true }, bios).answer, 'refused')
  assert.is(judgeBoot(null, uefi).answer, 'unknown')
  assert.is(judgeBoot(none, null).answer, 'unknown')
})

test("Windows' code in the first sector proves a BIOS boot only where a partition is active", async () => {
  const bios = await readFirmware('x64', at('pc'))
  const answerOf = async (table: 'gpt' | 'dos', active: boolean) => {
    const image = makeImage({ table })
    const bytes = readFileSync(image)
    // As Windows 11 writes it, up to the search for the active partition.
    bytes.write(
      '33c08ed0bc007c8ec08ed8be007cbf0006b90002fcf3a450681c06cbfbb90400bdbe07807e00007c0b',
      0,
      'hex',
    )
    if (active) bytes.writeUInt8(0x80, 446)
    writeFileSync(image, bytes)
    return judgeBoot(await look(image), bios).answer
  }
  assert.is(await answerOf('gpt', false), 'unknown')
  assert.is(await answerOf('gpt', true), 'unknown')
  assert.is(await answerOf('dos', false), 'unknown')
  assert.is(await answerOf('dos', true), 'boots')
})

test('a program in any partition counts, and where not all is looked into, nothing is refused', async () => {
  const uefi = await firmwareOf({})
  const answerOf = async (change: (bytes: Buffer) => void) => {
    const image = makeImage({ program: SHIM })
    const bytes = readFileSync(image)
    change(bytes)
    writeFileSync(image, bytes)
    return judgeBoot(await look(image), uefi).answer
  }
  const BASIC_DATA = 'a2a0d0ebe5b9334487c068b6b72699c7'
  call(
    'sfdisk',
    '-q',
    '--part-type',
    makeImage({ program: SHIM }),
    '1',
    'EBD0A0A2-B9E5-4433-87C0-68B6B72699C7',
  )
  assert.ok(readFileSync(at('a.img')).includes(BASIC_DATA, 0, 'hex'))
  assert.is(judgeBoot(await look(at('a.img')), uefi).answer, 'boots')
  // In the header, its signature, and a type of the protective MBR.
  for (const [place, value] of [
    [512 + 60, 1],
    [512, 0],
    [446 + 4, 0x83],
  ] as const)
    assert.is.not(await answerOf((bytes) => bytes.writeUInt8(value, place)), 'refused', `${place}`)
  const image = at('a.img')
  writeFileSync(image, Buffer.alloc(64 << 20))
  execFileSync('sfdisk', ['-q', image], {
    input: 'label: dos\nstart=2048, type=5\nstart=4096, type=ef, size=100000\n',
  })
  assert.is(judgeBoot(await look(image), uefi).answer, 'unknown')
  // Two boot loaders, of which the first alone is refused.
  const of = (name: string) => ({
    processor: 'x64' as const,
    digest: sha256Of(name),
    signatures: [],
    sbat: null,
  })
  const boot = await look(makeImage({ program: SHIM }))
  const keys = await secure(listOf('sha256', Buffer.from(sha256Of('b'), 'hex')))
  if (boot === null) throw new Error('the image was not looked into')
  const judge = (...names: readonly string[]) =>
    judgeBoot({ ...boot, programs: names.map(of) }, keys).answer
  assert.equal([judge('b', 'a'), judge('a', 'b'), judge('a', 'a')], ['boots', 'unknown', 'refused'])
})

const sha256Of = (text: string) => createHash('sha256').update(text).digest('hex')

test('generic code of an MBR starts nothing without an active partition', async () => {
  const bios = await readFirmware('x64', at('pc'))
  for (const [active, answer] of [
    [0, 'unknown'],
    [0x80, 'boots'],
  ] as const) {
    const image = makeImage({ table: 'dos' })
    const bytes = readFileSync(image)
    // libparted's: it looks for the active entry.
    bytes.write('fab800108ed0bc00b0b800008ed88ec0fbbe007cbf0006b90002f3a4', 0, 'hex')
    bytes.writeUInt8(active, 446)
    writeFileSync(image, bytes)
    assert.is(judgeBoot(await look(image), bios).answer, answer)
  }
})

test('an entry of a table that no disk has ends nothing', async () => {
  const image = makeImage({ program: SHIM })
  const bytes = readFileSync(image)
  bytes.writeBigUInt64LE(2n ** 60n, 1024 + 32)
  bytes.writeBigUInt64LE(2n ** 63n, 1024 + 40)
  bytes.writeUInt32LE(crc32(bytes.subarray(1024, 1024 + 128 * 128)), 512 + 88)
  seal(bytes.subarray(512, 512 + 92))
  writeFileSync(image, bytes)
  assert.is((await look(image))?.isSearched, false)
})

const withNames = (...names: readonly string[]) => ({
  certificates: names.map((name) => ({ fingerprint: '0'.repeat(64), name, subject: name })),
  digests: '',
  others: 0,
})

test("Microsoft's two pairs of certificates are told apart", async () => {
  const firmware = await secure(listOf('x509', own))
  const judge = (signer: string, ...trusted: readonly string[]) => {
    const certificate = { fingerprint: '1'.repeat(64), contentFingerprint: '', name: signer }
    const signatures = [{ certificates: [certificate], issuer: 'root' }]
    const program = { processor: 'x64' as const, digest: '1'.repeat(64), signatures, sbat: null }
    const found = { bios: false, programs: [program], unread: [], hasSystemPartition: true }
    const image = { ...found, isSearched: true }
    const keys = { ...firmware, allowed: withNames(...trusted), revoked: withNames() }
    return sentencesOf(judgeBoot({ ...image, isDisc: false }, keys))
  }
  const all = ['Microsoft UEFI CA 2023', 'Windows UEFI CA 2023']
  assert.match(
    judge('Microsoft Corporation UEFI CA 2011', ...all),
    "of Microsoft's certificates for systems other than Windows, the firmware trusts only “Microsoft UEFI CA 2023”. The image's boot loader is signed by “Microsoft Corporation UEFI CA 2011”.",
  )
  assert.match(
    judge('Microsoft Windows Production PCA 2011', ...all),
    "for Windows' boot manager, the firmware trusts only “Windows UEFI CA 2023”.",
  )
  assert.match(judge('Microsoft UEFI CA 2023', 'Windows UEFI CA 2023'), 'firmware trusts “Windows')
})

const countSigners = (program: Buffer) => parseEfiProgram(program)?.signatures.length ?? 0

test('a program that lies is none, or has no signer', () => {
  const shim = readFileSync(SHIM)
  const header = shim.readUInt32LE(0x3c)
  const places = [0x3c, ...[6, 20, 24 + 108, 24 + 144, 24 + 148].map((from) => header + from)]
  for (const place of places)
    for (const value of [0, 0x7f, 0x7fff_ffff, 0xffff_ffff]) {
      const lying = Buffer.from(shim)
      lying.writeUInt32LE(value, place)
      assert.is.not(countSigners(lying), 2, `${place} ${value}`)
    }
  for (let bytes = 0; bytes < shim.length; bytes = bytes * 2 + 7)
    assert.is.not(countSigners(shim.subarray(0, bytes)), 2)
  const changed = Buffer.from(shim)
  changed.writeUInt8(changed.readUInt8(0x1000) ^ 1, 0x1000)
  assert.is(countSigners(changed), 0)
})

test('a list of keys or a file system that lies ends nothing', async () => {
  const image = makeImage({ program: SHIM })
  const bytes = readFileSync(image)
  for (const place of [11, 13, 14, 16, 17, 19, 22, 32, 36, 44]) {
    const lying = Buffer.from(bytes)
    lying.writeUInt32LE(0xffff_ffff, (1 << 20) + place)
    writeFileSync(image, lying)
    await look(image)
  }
  for (const length of [0, 0.1, 1.1, 1.3, 1.6, 2.1]) {
    writeFileSync(image, bytes.subarray(0, length * (1 << 20)))
    await look(image)
  }
  const cut = listOf('x509', own).subarray(0, 60)
  for (const db of [Buffer.alloc(28, 255), listOf('x509', Buffer.alloc(10)), cut])
    assert.ok((await secure(db)).allowed?.others)
})

test('a program whose parts lie all over the image is not read for ever', async () => {
  const image = makeImage({ program: SHIM })
  const bytes = readFileSync(image)
  const table = (1 << 20) + bytes.readUInt16LE((1 << 20) + 14) * 512
  for (let cluster = 2; cluster < 110_000; cluster += 1)
    bytes.writeUInt32LE(2 + ((cluster + 1033) % 109_998), table + 4 * cluster)
  bytes.writeUInt32LE(100 << 20, bytes.indexOf('BOOTX64 EFI') + 28)
  writeFileSync(image, bytes)
  await using source = await openFileSource(image)
  let read = 0
  const readAt: typeof source.readAt = async (into, from) => {
    read += into.length
    return (await source.readAt?.(into, from)) ?? 0
  }
  assert.equal((await readImageBoot({ ...source, readAt }, 'img'))?.programs, [])
  assert.ok(read <= 1.1 * 2 ** 30, String(read))
})

const findNone = async () => null

test('a flash of a disk that is no stick says before the first byte that this machine would not start', async () => {
  const image = makeImage({ program: SHIM })
  await using loop = await createLoop({ megabytes: 64 })
  const planNotes = async (firmware: FirmwareFacts, from = image, more: object = {}) => {
    const flasher = createFlasher({ env: {}, readFirmware: async () => firmware })
    const targets = [{ path: loop.device }]
    const order = { image: from, format: null, targets, options: WHOLE_DISK, ...more }
    await using planned = await flasher.plan(order, new AbortController().signal)
    return planned.disks.flatMap((disk) => decideNotes(disk.image))
  }
  assert.equal(await planNotes(await secure(listOf('x509', ca2023))), [])
  const refusing = await secure(listOf('x509', own))
  const [note = ''] = await planNotes(refusing)
  assert.match(note, 'This machine does not start from this image. Secure Boot is on')
  const bytes = readFileSync(image)
  await using server = await startHostileServer((request, response) =>
    sendFile(bytes, request, response),
  )
  assert.equal(await planNotes(refusing, `${server.origin}/a.img`), [note])
  assert.equal(await planNotes(refusing, `${server.origin}/a.img`, { renewSource: findNone }), [])
  // Without ranges, nothing is looked at.
  await using whole = await startHostileServer((_, response) => response.end(bytes))
  assert.not.match(String(await planNotes(refusing, `${whole.origin}/a.img`)), 'does not start')
})

test.run()
