/** Builds the disk of the server appliance: `server-disk.ts --kernel FILE --initrd FILE --squashfs FILE --packages DIR --version V --epoch S --level N --out FILE`. */
import { mkdtemp, open, readFile, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { $ } from 'zx/core'
import { SECTOR_BYTES } from '../gpt/table.ts'
import { planBios } from '../server/bios.ts'
import { makeEfiVolume } from '../server/efi.ts'
import { BIOS_PREFIX, SERVER_BIOS_MODULES } from '../server/grub.ts'
import { planServerDisk, SLOT_SECTORS } from '../server/layout.ts'
import { copyInto } from '../volumes/copy.ts'

interface Job {
  readonly kernel: string
  readonly initrd: string
  readonly squashfs: string
  /** The files of Debian's boot packages, below one root. */
  readonly packages: string
  readonly version: string
  /** Seconds since 1970. */
  readonly epoch: number
  /** Of zstd. */
  readonly level: number
  readonly out: string
}

async function makeDisk(job: Job): Promise<void> {
  const { version, out, squashfs, level } = job
  const scratch = await mkdtemp(`${out}.`)
  try {
    const layout = planServerDisk(version)
    const { size } = await stat(squashfs)
    if (size > SLOT_SECTORS * SECTOR_BYTES)
      throw new Error(`the root has ${size} bytes, more than a slot`)
    const efi = await makeEfiVolume({ ...job, scratch })
    const { first, core } = await makeBios(job, scratch, layout)
    const image = join(scratch, 'disk')
    await using disk = await open(image, 'w')
    await disk.truncate(layout.sectors * SECTOR_BYTES)
    for (const { sector, bytes } of [
      { sector: 0, bytes: first },
      ...layout.pieces,
      { sector: layout.bios, bytes: core },
    ]) {
      await disk.write(bytes, 0, bytes.length, sector * SECTOR_BYTES)
    }
    await copyInto(disk, efi, layout.efi)
    await copyInto(disk, squashfs, layout.slot)
    // The number of threads is fixed: it decides bytes.
    await $({ quiet: true })`zstd -q -T2 -${String(level)} -o ${out} ${image}`
  } finally {
    await rm(scratch, { recursive: true })
  }
}

async function makeBios(
  { packages }: Job,
  scratch: string,
  { bios, efi }: { readonly bios: number; readonly efi: number },
) {
  const modules = join(packages, 'usr/lib/grub/i386-pc')
  const core = join(scratch, 'core.img')
  const what = ['-O', 'i386-pc', '-d', modules, '-p', BIOS_PREFIX, '-o', core]
  await $({ quiet: true })`grub-mkimage ${what} ${[...SERVER_BIOS_MODULES]}`
  return planBios({
    boot: await readFile(join(modules, 'boot.img')),
    core: await readFile(core),
    sector: bios,
    sectors: efi - bios,
  })
}

if (import.meta.main) {
  const text = { type: 'string', default: '' } as const
  const { values } = parseArgs({
    options: {
      kernel: text,
      initrd: text,
      squashfs: text,
      packages: text,
      version: text,
      epoch: text,
      level: text,
      out: text,
    },
  })
  const { epoch, level, out } = values
  await makeDisk({ ...values, epoch: Number(epoch), level: Number(level), out: resolve(out) })
}
