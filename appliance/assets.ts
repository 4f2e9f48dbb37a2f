/** The file names of a release ("Release artifacts"); what stands beside an asset has its name and an ending. */
import type { Arch } from './appliance.ts'

/** `flasher-netboot-pc-x86_64-v1.2.0`: the trio, its checksums and lists begin with it. */
export const netbootStem = (arch: Arch, version: string) => `flasher-netboot-pc-${arch}-v${version}`

export const netbootTrio = (arch: Arch, version: string) => {
  const stem = netbootStem(arch, version)
  return { kernel: `${stem}.vmlinuz`, initrd: `${stem}.initrd`, squashfs: `${stem}.squashfs` }
}

export const usbIso = (arch: Arch, version: string) => `flasher-usbboot-pc-${arch}-v${version}.iso`

export const ipxeFile = (arch: Arch, version: string) => `flasher-ipxe-${arch}-v${version}.efi`

/** Over all files of a release. */
export const ALL_SUMS = 'SHA256SUMS'
