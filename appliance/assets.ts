/** The file names of a release ("Release artifacts"): the one place that spells them. */
import type { Arch } from './appliance.ts'

/** Begins the names of a trio, of its checksums and of its lists: `flasher-netboot-pc-x86_64-v1.2.0`. */
export const netbootStem = (arch: Arch, version: string) => `flasher-netboot-pc-${arch}-v${version}`

export const netbootTrio = (arch: Arch, version: string) => {
  const stem = netbootStem(arch, version)
  return { kernel: `${stem}.vmlinuz`, initrd: `${stem}.initrd`, squashfs: `${stem}.squashfs` }
}

/** Earlier line: the trio and its checksums, the same names in every release. */
const LIVE_STEM = 'flasher-live-x86_64'
export const LIVE_TRIO = {
  vmlinuz: `${LIVE_STEM}.vmlinuz`,
  initrd: `${LIVE_STEM}.initrd`,
  squashfs: `${LIVE_STEM}.squashfs`,
} as const
export const LIVE_SUMS = `${LIVE_STEM}.sha256`

export const usbIso = (arch: Arch, version: string) => `flasher-usbboot-pc-${arch}-v${version}.iso`

export const ipxeFile = (arch: Arch, version: string) => `flasher-ipxe-${arch}-v${version}.efi`

/** Begins the names of Debian's signed boot loaders and of the lists beside them: `flasher-secureboot-x86_64-v1.2.0`. */
export const secureBootStem = (arch: Arch, version: string) =>
  `flasher-secureboot-${arch}-v${version}`

export const secureBootFiles = (arch: Arch, version: string) => {
  const stem = secureBootStem(arch, version)
  return { shim: `${stem}.shim.efi`, grub: `${stem}.grub.efi`, config: `${stem}.grub.cfg` }
}

/** The names that these files must have for firmware, shim and GRUB, by TFTP as by HTTP: each names the next. */
export const SHIM_FILES = {
  x86_64: 'shimx64.efi',
  arm64: 'shimaa64.efi',
} as const satisfies Record<Arch, string>
export const GRUB_FILES = {
  x86_64: 'grubx64.efi',
  arm64: 'grubaa64.efi',
} as const satisfies Record<Arch, string>
export const GRUB_CONFIG = 'grub/grub.cfg'

/** Checksums beside a file, or over the files that share a stem, as `sha256sum -c` reads them. */
export const checksumsOf = (name: string) => `${name}.sha256`

/** The bill of materials (CycloneDX) of the files that share a stem. */
export const billOf = (stem: string) => `${stem}.cdx.json`

/** The packages in the files that share a stem. */
export const packageListOf = (stem: string) => `${stem}.packages.txt`

/** Checksums of all files of a release. */
export const ALL_SUMS = 'SHA256SUMS'

/** The version of a release and its files, at an address that stays. */
export const RELEASE_MANIFEST = 'release.toml'
