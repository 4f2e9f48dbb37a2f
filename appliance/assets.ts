/** The file names of a release ("Release artifacts"): the one place that spells them. */
import type { Arch } from './appliance.ts'

/** Begins the names of a trio, of its checksums and of its lists: `flasher-netboot-pc-x86_64-v1.2.0`. */
export const netbootStem = (arch: Arch, version: string) => `flasher-netboot-pc-${arch}-v${version}`

export const netbootTrio = (arch: Arch, version: string) => {
  const stem = netbootStem(arch, version)
  return { kernel: `${stem}.vmlinuz`, initrd: `${stem}.initrd`, squashfs: `${stem}.squashfs` }
}

/** Earlier line: the trio and its checksums, the same names in every release. */
export const LIVE_STEM = 'flasher-live-x86_64'
export const LIVE_TRIO = {
  vmlinuz: `${LIVE_STEM}.vmlinuz`,
  initrd: `${LIVE_STEM}.initrd`,
  squashfs: `${LIVE_STEM}.squashfs`,
} as const
export const LIVE_SUMS = `${LIVE_STEM}.sha256`

/** Earlier line: the live system on a stick. */
export const LIVE_USB = 'flasher-usb-x86_64.img.zst'

export const usbIso = (arch: Arch, version: string) => `flasher-usbboot-pc-${arch}-v${version}.iso`

/** The stick as files to copy: an archive, and the page that copies them; the same names in every release. */
export const STICK_FILES = { archive: 'flasher.zip', page: 'flasher-stick.html' } as const
/** Begins the names of the lists beside them. */
export const STICK_STEM = 'flasher-stick'

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

/** What an installed server updates itself with: the root for a slot, its kernel and its initrd. */
export const serverUpdate = (arch: Arch, version: string) => {
  const stem = `flasher-server-${arch}-v${version}`
  return { kernel: `${stem}.vmlinuz`, initrd: `${stem}.initrd`, squashfs: `${stem}.squashfs` }
}

/** The Debian package of the programs; its version and its names of processors are Debian's. */
export const debFile = (arch: Arch, version: string) =>
  `flasher_${version}_${DEBIAN_ARCHS[arch]}.deb`

/** The packages that are the same for every processor: the server's, and the one of the former name. */
export const commonDebFiles = (version: string) => [
  `flasher-server_${version}_all.deb`,
  `flasher-lab_${version}_all.deb`,
]

/** The apt repository of a release as one archive. */
export const aptArchive = (version: string) => `flasher-apt-v${version}.tar`

/** Container images of the servers, in one archive (OCI). */
export const containersFile = (arch: Arch, version: string) =>
  `flasher-containers-${arch}-v${version}.oci.tar`

/** Debian's names of the processors. */
export const DEBIAN_ARCHS: Readonly<Record<Arch, string>> = { x86_64: 'amd64', arm64: 'arm64' }
/** The single-board computers that have images of their own: Raspberry Pi 4 and 5. */
const BOARD = 'rpi-arm64'

export const boardImage = (version: string) => `flasher-usbboot-${BOARD}-v${version}.img.gz`

/** The disk of the machine server, of both lines; the same names in every release. */
export const serverImage = (arch: Arch) =>
  `flasher-server-${arch === 'arm64' ? BOARD : arch}.img.zst`

/** The documentation as a PDF. */
export const documentsFile = (version: string) => `flasher-docs-v${version}.pdf`

/** The sources of a release, in a folder named like the archive. */
export const sourceStem = (version: string) => `flasher_lab-${version}`
export const sourceArchive = (version: string) => `${sourceStem(version)}.tar.gz`

/** What npm installs; earlier line. */
export const npmTarball = (version: string) => `flasher-lab-${version}.tgz`

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

/** What Raspberry Pi Imager reads of a release, as a custom repository. */
export const IMAGER_LIST = 'imager.json'

/** What other package managers read of a release to install it. */
export const RECIPES = { arch: 'PKGBUILD', homebrew: 'flasher.rb', nix: 'flasher.nix' } as const

/** The SSH signature of a file, for this purpose only (`ssh-keygen -Y sign -n …`). */
export const signatureOf = (name: string) => `${name}.sig`
export const SIGNATURE_NAMESPACE = 'flasher-release'

/** What a file name loses for the names of its lists: `flasher-usbboot-pc-x86_64-v1.2.0` of an ISO. */
export const stemOf = (name: string) =>
  name.replace(/\.(deb|efi|iso|pdf|tgz|tar\.gz|img\.gz|img\.zst|oci\.tar)$/, '')
