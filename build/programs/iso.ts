/** Builds the hybrid ISO that boots PCs from a stick or disc, with a partition for images. */
import { createHash } from 'node:crypto'
import { cp, mkdir, mkdtemp, open, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { $ } from 'zx/core'
import { digestFile } from '#build/cache/digest.ts'
import { IMAGES_SECTORS, MEDIA_SERIAL, renderImages } from '#build/exfat/images.ts'
import { PARTITION_TYPES, SECTOR_BYTES } from '#build/gpt/table.ts'
import {
  type Asks,
  BIOS_MODULES,
  renderEarly,
  renderMark,
  renderMenu,
  SIGNED_CONFIG,
  SIGNED_CONFIG_PATH,
} from '#build/iso/grub.ts'
import { planHybrid } from '#build/iso/partitions.ts'
import { TEXT, requireOptions } from '#build/steps/program-options.ts'
import { writeFatVolume } from '#build/volumes/fat.ts'

interface Job {
  readonly kernel: string
  readonly initrd: string
  readonly squashfs: string
  /** The files of Debian's signed shim and GRUB, and of GRUB for a BIOS, below one root. */
  readonly packages: string
  readonly asks: Asks
  readonly version: string
  /** Seconds since 1970: the time of everything on the medium. */
  readonly epoch: number
  readonly out: string
}

/** The size of the EFI partition: 6 MiB. */
const EFI_SECTORS = 12_288

const readWhole = async (path: string, bytes: number) => {
  await using file = await open(path)
  const { buffer, bytesRead } = await file.read(Buffer.alloc(bytes), 0, bytes, 0)
  return buffer.subarray(0, bytesRead)
}

async function makeIso(job: Job): Promise<void> {
  const folder = await mkdtemp(`${job.out}.`)
  try {
    // Sticks of both lines in one machine must not start each other's menu.
    const kind = job.asks === 'wizard' ? '' : `-${job.asks}`
    const media = `${job.version}-${(await digestFile(job.squashfs)).slice(0, 12)}${kind}`
    const iso = join(folder, 'iso')
    const parts = {
      efi: await makeEfi(job, folder, media),
      files: await makeFiles(job, folder, media),
    }
    await runXorriso(job, { ...parts, iso, media })
    await addImages(job, iso, media)
    await rename(iso, job.out)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** The EFI partition: Debian's shim, which firmware trusts, and the GRUB that it trusts. */
async function makeEfi({ packages, epoch }: Job, folder: string, media: string): Promise<string> {
  const root = join(folder, 'efi')
  const config = dirname(SIGNED_CONFIG_PATH)
  for (const dir of ['EFI/BOOT', config]) await mkdir(join(root, dir), { recursive: true })
  const files = {
    'BOOTX64.EFI': 'usr/lib/shim/shimx64.efi.signed',
    'grubx64.efi': 'usr/lib/grub/x86_64-efi-signed/gcdx64.efi.signed',
    'mmx64.efi': 'usr/lib/shim/mmx64.efi.signed',
  }
  for (const [name, from] of Object.entries(files)) {
    await cp(join(packages, from), join(root, 'EFI/BOOT', name))
  }
  await writeFile(join(root, SIGNED_CONFIG_PATH), renderEarly(media))
  const image = join(folder, 'efi.img')
  const volume = { sectors: EFI_SECTORS, label: 'FLASHER_EFI', serial: MEDIA_SERIAL }
  await writeFatVolume({ ...volume, root, image, epoch })
  return image
}

/** The source of each file of the ISO, by its path on the ISO. */
async function makeFiles(
  { kernel, initrd, squashfs, packages, version, asks }: Job,
  folder: string,
  media: string,
) {
  const menu = renderMenu({ version, media, asks })
  const texts = {
    '.disk/info': `Flasher ${media}\n`,
    [renderMark(media)]: '',
    'live/id': `${media}\n`,
    'boot/grub/grub.cfg': menu,
    'boot/grub/loopback.cfg': menu,
    [SIGNED_CONFIG_PATH]: SIGNED_CONFIG,
  }
  const early = join(folder, 'early.cfg')
  const eltorito = join(folder, 'eltorito.img')
  await writeFile(early, renderEarly(media))
  const modules = join(packages, 'usr/lib/grub/i386-pc')
  const what = ['-O', 'i386-pc-eltorito', '-d', modules, '-p', '/boot/grub', '-c', early]
  await run`grub-mkimage ${what} -o ${eltorito} ${[...BIOS_MODULES]}`
  const made: Record<string, string> = {
    'live/vmlinuz': kernel,
    'live/initrd': initrd,
    'live/root.squashfs': squashfs,
    'boot/grub/i386-pc/eltorito.img': eltorito,
  }
  for (const [at, [path, text]] of Object.entries(texts).entries()) {
    const file = join(folder, `text-${at}`)
    await writeFile(file, text)
    made[path] = file
  }
  return made
}

interface Parts {
  readonly efi: string
  readonly files: Readonly<Record<string, string>>
  readonly iso: string
  readonly media: string
}

async function runXorriso({ packages, epoch }: Job, { efi, files, iso, media }: Parts) {
  const date = `${new Date(epoch * 1000).toISOString().replaceAll(/\D/g, '').slice(0, 14)}00`
  const disk = createHash('sha256').update(media).digest('hex').slice(0, 32)
  const boot = ['-no-emul-boot', '-boot-load-size', '4', '-boot-info-table', '--grub2-boot-info']
  const mbr = join(packages, 'usr/lib/grub/i386-pc/boot_hybrid.img')
  const words = [
    ['-as', 'mkisofs', '-quiet', '-o', iso, '-V', 'FLASHER_LIVE'],
    ['-r', '-J', '-joliet-long', '-iso-level', '3', '-graft-points', '-no-pad'],
    [`--modification-date=${date}`, '--set_all_file_dates', date, '--gpt_disk_guid', disk],
    ['-b', 'boot/grub/i386-pc/eltorito.img', '-c', 'boot/boot.cat', ...boot],
    ['--grub2-mbr', mbr, '-partition_offset', '16', '--mbr-force-bootable'],
    ['-iso_mbr_part_type', PARTITION_TYPES.linux.toUpperCase()],
    ['-append_partition', '2', '0xef', efi, '-appended_part_as_gpt'],
    ['-eltorito-alt-boot', '-e', '--interval:appended_partition_2:all::', '-no-emul-boot'],
    Object.entries(files).map(([path, file]) => `${path}=${file}`),
  ]
  await run`xorriso ${words.flat()}`
}

/** Appends the images partition, and writes a partition table that covers both. */
async function addImages({ version, epoch }: Job, iso: string, media: string) {
  await using file = await open(iso, 'r+')
  const { size } = await file.stat()
  const head = await readWhole(iso, 64 * SECTOR_BYTES)
  const hybrid = planHybrid({ id: media, head, imagesSectors: IMAGES_SECTORS })
  // Cuts off xorriso's backup table, which would now lie in the middle.
  await file.truncate(Math.min(size, hybrid.imagesStart * SECTOR_BYTES))
  await file.truncate(hybrid.sectors * SECTOR_BYTES)
  for (const { offset, bytes } of renderImages({ version, epoch })) {
    await file.write(bytes, 0, bytes.length, hybrid.imagesStart * SECTOR_BYTES + offset)
  }
  for (const { sector, bytes } of hybrid.pieces) {
    await file.write(bytes, 0, bytes.length, sector * SECTOR_BYTES)
  }
}

/** A tool that fails throws with its output. */
const run = $({ quiet: true, env: { ...process.env, TZ: 'UTC', LC_ALL: 'C.UTF-8' } })

if (import.meta.main) {
  const { values: given } = parseArgs({
    options: {
      kernel: TEXT,
      initrd: TEXT,
      squashfs: TEXT,
      packages: TEXT,
      asks: TEXT,
      version: TEXT,
      epoch: TEXT,
      out: TEXT,
    },
  })
  const values = requireOptions(given)
  const asks = values.asks === 'panes' ? 'panes' : 'wizard'
  await makeIso({ ...values, asks, out: resolve(values.out), epoch: Number(values.epoch) })
}
