/** The EFI partition of the server appliance: Debian's signed loaders, a version's kernel and initrd. */
import { copyFile, mkdir, open, readdir, stat, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { $ } from 'zx/core'
import { SERVER_BOOT } from '../../appliance/server.ts'
import { SECTOR_BYTES } from '../gpt/table.ts'
import { SIGNED_CONFIG, SIGNED_CONFIG_PATH } from '../iso/grub.ts'
import { renderGrubEnvironment, SERVER_GRUB_CONFIG } from './grub.ts'
import { EFI_SECTORS } from './layout.ts'

interface EfiOptions {
  /** Debian's boot packages, unpacked. */
  readonly packages: string
  readonly kernel: string
  readonly initrd: string
  readonly version: string
  /** Seconds since 1970. */
  readonly epoch: number
  /** A folder for what lies between. */
  readonly scratch: string
}

/** The volume's serial number; fixed, so that builds are reproducible. */
const SERIAL = '464c5356'

/** Returns the path of the volume. */
export async function makeEfiVolume(options: EfiOptions): Promise<string> {
  const { packages, kernel, initrd, version, epoch, scratch } = options
  const root = join(scratch, 'efi')
  const place = async (path: string) => {
    await mkdir(dirname(join(root, path)), { recursive: true })
    return join(root, path)
  }
  const files = {
    'EFI/BOOT/BOOTX64.EFI': join(packages, 'usr/lib/shim/shimx64.efi.signed'),
    'EFI/BOOT/grubx64.efi': join(packages, 'usr/lib/grub/x86_64-efi-signed/gcdx64.efi.signed'),
    'EFI/BOOT/mmx64.efi': join(packages, 'usr/lib/shim/mmx64.efi.signed'),
    [`${SERVER_BOOT.folder}/${version}.vmlinuz`]: kernel,
    [`${SERVER_BOOT.folder}/${version}.initrd`]: initrd,
  }
  for (const [path, from] of Object.entries(files)) await copyFile(from, await place(path))
  const texts = {
    [SERVER_BOOT.config]: SERVER_GRUB_CONFIG,
    [SERVER_BOOT.environment]: renderGrubEnvironment({ good: version }),
    [SIGNED_CONFIG_PATH]: SIGNED_CONFIG,
  }
  for (const [path, text] of Object.entries(texts)) await writeFile(await place(path), text)
  return await writeVolume(root, join(scratch, 'efi.img'), epoch)
}

/** By mtools: no file system is mounted. */
async function writeVolume(root: string, image: string, epoch: number): Promise<string> {
  const env = { ...process.env, TZ: 'UTC', LC_ALL: 'C.UTF-8', MTOOLS_SKIP_CHECK: '1' }
  const run = $({ quiet: true, env: { ...env, SOURCE_DATE_EPOCH: String(epoch) } })
  // Sorted by name: what a folder lists first depends on the host's file system.
  const paths = (await readdir(root, { recursive: true })).toSorted()
  for (const path of paths) await utimes(join(root, path), epoch, epoch)
  await using file = await open(image, 'w')
  await file.truncate(EFI_SECTORS * SECTOR_BYTES)
  const size = ['-F', '-c', '1', '-T', String(EFI_SECTORS), '-h', '64', '-s', '32']
  await run`mformat -i ${image} -v FLASHER_EFI -N ${SERIAL} ${size} ::`
  for (const path of paths) {
    const from = join(root, path)
    if ((await stat(from)).isDirectory()) await run`mmd -i ${image} ${`::${path}`}`
    else await run`mcopy -Q -m -i ${image} ${from} ${`::${path}`}`
  }
  return image
}
