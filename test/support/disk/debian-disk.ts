/** A Debian tree as a disk image that a BIOS and UEFI boot, made without any device. */
import { mkdir, open, readFile, rm, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { $ } from 'zx'
import { ROOT_PARTUUID } from './debian-tree.ts'

const SECTOR = 512
const MIB = 2 ** 20

/** First sector and sectors of each partition; all but the first begin on a mebibyte. */
const BIOS_BOOT = { first: 34, sectors: 2014 }
const EFI = { first: 2048, sectors: (16 * MIB) / SECTOR }
const ROOT_FIRST = EFI.first + EFI.sectors
/** What GPT keeps at the end, rounded to a mebibyte. */
const TAIL_BYTES = MIB

/** Where the boot loader reads its menu from: the third partition of the disk it came from. */
const MENU = '(,gpt3)/boot/grub'
const SERIAL = ['normal', 'part_gpt', 'ext2', 'linux', 'serial', 'terminal', 'echo']

const run = $({ quiet: true, verbose: false })

/** Writes `path`, a sparse file of `sizeBytes`. `workspace` is a folder for what comes between. */
export async function makeDebianDisk(
  tree: string,
  path: string,
  { sizeBytes, workspace }: { readonly sizeBytes: number; readonly workspace: string },
): Promise<void> {
  await mkdir(workspace, { recursive: true })
  await using file = await open(path, 'w+')
  await file.truncate(sizeBytes)
  const rootBytes = sizeBytes - TAIL_BYTES - ROOT_FIRST * SECTOR
  await run`sgdisk ${[...PARTITIONS, `--new=3:${ROOT_FIRST}:+${rootBytes / SECTOR}`, ...ROOT_NAMES]} ${path}`
  await makeRoot(tree, path, rootBytes)
  await makeEfi(path, workspace)
  await embedBiosLoader(file, workspace)
  await file.sync()
  await rm(workspace, { recursive: true })
}

const PARTITIONS = [
  '--clear',
  '--set-alignment=1',
  `--new=1:${BIOS_BOOT.first}:+${BIOS_BOOT.sectors}`,
  '--typecode=1:ef02',
  `--new=2:${EFI.first}:+${EFI.sectors}`,
  '--typecode=2:ef00',
]
const ROOT_NAMES = ['--typecode=3:8304', `--partition-guid=3:${ROOT_PARTUUID}`]

async function makeRoot(tree: string, path: string, bytes: number) {
  const offset = ROOT_FIRST * SECTOR
  // Both features are newer than the boot loader of the oldest Debian we care for.
  const features = '^metadata_csum_seed,^orphan_file'
  const options = ['-q', '-F', '-t', 'ext4', '-b', '4096', '-m', '0', '-L', 'root', '-O', features]
  await run`mke2fs ${options} -E ${`offset=${offset}`} -d ${tree} ${path} ${bytes / 4096}`
}

async function makeEfi(path: string, workspace: string) {
  const loader = join(workspace, 'BOOTX64.EFI')
  const part = `${path}@@${EFI.first * SECTOR}`
  await run`grub-mkimage -O x86_64-efi -p ${MENU} -o ${loader} ${SERIAL}`
  await run`mformat -i ${part} -T ${EFI.sectors} -h 16 -s 32 -v EFI ::`
  await run`mmd -i ${part} ::/EFI ::/EFI/BOOT`
  await run`mcopy -i ${part} ${loader} ::/EFI/BOOT/BOOTX64.EFI`
}

/**
 * What grub-install does on a real device: the boot sector learns where the core begins, the
 * core's first sector where the rest of it lies.
 */
async function embedBiosLoader(disk: FileHandle, workspace: string) {
  const corePath = join(workspace, 'core.img')
  await run`grub-mkimage -O i386-pc -p ${MENU} -o ${corePath} biosdisk ${SERIAL}`
  const core = await readFile(corePath)
  if (core.length > BIOS_BOOT.sectors * SECTOR) throw new Error('the boot loader does not fit')
  core.writeBigUInt64LE(BigInt(BIOS_BOOT.first + 1), SECTOR - 12)
  await disk.write(core, 0, core.length, BIOS_BOOT.first * SECTOR)

  const boot = (await readFile('/usr/lib/grub/i386-pc/boot.img')).subarray(0, 440)
  boot.writeBigUInt64LE(BigInt(BIOS_BOOT.first), 0x5c)
  // The core is on the drive that the firmware named, and that is no floppy: skip that check.
  boot.writeUInt8(0xff, 0x64)
  boot.writeUInt16LE(0x9090, 0x66)
  await disk.write(boot, 0, boot.length, 0)
}
