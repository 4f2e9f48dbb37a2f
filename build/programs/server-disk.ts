/** Builds the disk of the server appliance: `server-disk.ts --arch A --kernel FILE --initrd FILE --squashfs FILE --packages DIR [--tree DIR --uboot FILE] --version V --epoch S --level N --out FILE`. */
import { mkdtemp, open, readFile, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { TEXT, requireOptions } from '#build/steps/program-options.ts'
import { $ } from 'zx/core'
import { ARCHS } from '#appliance/appliance.ts'
import { renderProtective, SECTOR_BYTES, type TablePiece } from '#build/gpt/table.ts'
import { planBios } from '#build/server/bios.ts'
import { makeEfiVolume, type EfiOptions } from '#build/server/efi.ts'
import { BIOS_PREFIX, SERVER_BIOS_MODULES } from '#build/server/grub.ts'
import { planServerDisk, SLOT_SECTORS, type ServerLayout } from '#build/server/layout.ts'
import { copyInto } from '#build/volumes/copy.ts'

interface Job extends EfiOptions {
  readonly squashfs: string
  /** The level of zstd. */
  readonly level: number
  readonly out: string
}

async function makeDisk(job: Job): Promise<void> {
  const { arch, version, out, squashfs, level } = job
  const scratch = await mkdtemp(`${out}.`)
  try {
    const layout = planServerDisk(version, arch)
    const { size } = await stat(squashfs)
    if (size > SLOT_SECTORS * SECTOR_BYTES)
      throw new Error(`the root has ${size} bytes, more than a slot`)
    const efi = await makeEfiVolume(job, { sectors: layout.efi.sectors, scratch })
    const start = await makeStart(job, scratch, layout)
    const image = join(scratch, 'disk')
    await using disk = await open(image, 'w')
    await disk.truncate(layout.sectors * SECTOR_BYTES)
    for (const { sector, bytes } of [...start, ...layout.pieces]) {
      await disk.write(bytes, 0, bytes.length, sector * SECTOR_BYTES)
    }
    await copyInto(disk, efi, layout.efi.first)
    await copyInto(disk, squashfs, layout.slot.first)
    // The number of threads is fixed: it decides bytes.
    await $({ quiet: true })`zstd -q -T2 -${String(level)} -o ${out} ${image}`
  } finally {
    await rm(scratch, { recursive: true })
  }
}

/** The first sector, and GRUB for BIOS where the disk has a place for it. */
async function makeStart(
  { packages }: Job,
  scratch: string,
  { bios }: ServerLayout,
): Promise<readonly TablePiece[]> {
  if (bios === null) return [{ sector: 0, bytes: renderProtective() }]
  const modules = join(packages, 'usr/lib/grub/i386-pc')
  const core = join(scratch, 'core.img')
  const what = ['-O', 'i386-pc', '-d', modules, '-p', BIOS_PREFIX, '-o', core]
  await $({ quiet: true })`grub-mkimage ${what} ${[...SERVER_BIOS_MODULES]}`
  const planned = planBios({
    boot: await readFile(join(modules, 'boot.img')),
    core: await readFile(core),
    sector: bios.first,
    sectors: bios.sectors,
  })
  return [
    { sector: 0, bytes: planned.first },
    { sector: bios.first, bytes: planned.core },
  ]
}

if (import.meta.main) {
  const { values: given } = parseArgs({
    options: {
      arch: TEXT,
      kernel: TEXT,
      initrd: TEXT,
      squashfs: TEXT,
      packages: TEXT,
      tree: TEXT,
      uboot: TEXT,
      version: TEXT,
      epoch: TEXT,
      level: TEXT,
      out: TEXT,
    },
  })
  const values = requireOptions(given, ['tree', 'uboot'])
  const { epoch, level, out } = values
  const arch = ARCHS.find((one) => one === values.arch)
  if (arch === undefined) throw new Error(`--arch must be one of ${ARCHS.join(' ')}`)
  await makeDisk({ ...values, arch, epoch: Number(epoch), level: Number(level), out: resolve(out) })
}
