/** The EFI partition of the server appliance: Debian's signed loaders, a version's kernel and initrd; on arm64 also what starts a Raspberry Pi. */
import { copyFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Arch } from '#appliance/appliance.ts'
import { SERVER_BOOT } from '#appliance/server.ts'
import { makePlace } from '#build/app/lay.ts'
import {
  PI_SERVER_CONFIG,
  SIGNED_ARM64_CONFIG_PATH,
  U_BOOT,
  UEFI_LOADERS,
} from '#build/board/firmware.ts'
import { listPiFiles } from '#build/board/pi-files.ts'
import { SIGNED_CONFIG, SIGNED_CONFIG_PATH } from '#build/iso/grub.ts'
import { writeFatVolume } from '#build/volumes/fat.ts'
import { renderGrubEnvironment, renderServerGrub } from './grub.ts'

export interface EfiOptions {
  readonly arch: Arch
  /** Debian's boot packages, unpacked. */
  readonly packages: string
  readonly kernel: string
  readonly initrd: string
  /** For boards, else empty: the tree of packages with the kernel's device trees, and U-Boot. */
  readonly tree: string
  readonly uboot: string
  readonly version: string
  /** Seconds since 1970. */
  readonly epoch: number
}

interface Volume {
  readonly sectors: number
  /** A folder for what lies between. */
  readonly scratch: string
}

/** The volume's serial number; fixed, so that builds are reproducible. */
const SERIAL = 0x464c5356

/** Where firmware and shim look for the signed loaders, and GRUB for its configuration. */
const LOADERS = {
  x86_64: {
    config: SIGNED_CONFIG_PATH,
    files: {
      'EFI/BOOT/BOOTX64.EFI': 'usr/lib/shim/shimx64.efi.signed',
      'EFI/BOOT/grubx64.efi': 'usr/lib/grub/x86_64-efi-signed/gcdx64.efi.signed',
      'EFI/BOOT/mmx64.efi': 'usr/lib/shim/mmx64.efi.signed',
    },
  },
  arm64: { config: SIGNED_ARM64_CONFIG_PATH, files: UEFI_LOADERS },
} as const satisfies Record<Arch, object>

/** Makes the volume in the folder for what lies between, and returns its path. */
export async function makeEfiVolume(
  options: EfiOptions,
  { sectors, scratch }: Volume,
): Promise<string> {
  const { arch, version, epoch } = options
  const root = join(scratch, 'efi')
  for (const [path, from] of Object.entries(await listFiles(options))) {
    await copyFile(from, await makePlace(root, path))
  }
  const texts = {
    [SERVER_BOOT.config]: renderServerGrub(arch),
    [SERVER_BOOT.environment]: renderGrubEnvironment({ good: version }),
    [LOADERS[arch].config]: SIGNED_CONFIG,
    ...(arch === 'arm64' ? { 'config.txt': PI_SERVER_CONFIG } : {}),
  }
  for (const [path, text] of Object.entries(texts))
    await writeFile(await makePlace(root, path), text)
  const image = join(scratch, 'efi.img')
  const volume = { sectors, label: 'FLASHER_EFI', serial: SERIAL, clusterSectors: 1 }
  await writeFatVolume({ ...volume, root, image, epoch })
  return image
}

/** Files by their paths on the volume. */
async function listFiles(options: EfiOptions): Promise<Readonly<Record<string, string>>> {
  const { arch, packages, kernel, initrd, tree, uboot, version } = options
  const loaders = Object.entries(LOADERS[arch].files)
  return {
    ...Object.fromEntries(loaders.map(([path, from]) => [path, join(packages, from)])),
    [`${SERVER_BOOT.folder}/${version}.vmlinuz`]: kernel,
    [`${SERVER_BOOT.folder}/${version}.initrd`]: initrd,
    ...(arch === 'arm64' ? { ...(await listPiFiles({ tree, packages })), [U_BOOT]: uboot } : {}),
  }
}
