/** The EFI partition of the server appliance: Debian's signed loaders, a version's kernel and initrd. */
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { SERVER_BOOT } from '../../appliance/server.ts'
import { SIGNED_CONFIG, SIGNED_CONFIG_PATH } from '../iso/grub.ts'
import { writeFatVolume } from '../volumes/fat.ts'
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
const SERIAL = 0x464c5356

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
  const image = join(scratch, 'efi.img')
  const volume = { sectors: EFI_SECTORS, label: 'FLASHER_EFI', serial: SERIAL, clusterSectors: 1 }
  await writeFatVolume({ ...volume, root, image, epoch })
  return image
}
