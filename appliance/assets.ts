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

/** The disk of the machine server, the same name in every release. */
export const serverImage = (arch: Arch) => `flasher-server-${arch}.img.zst`

/** What an installed server updates itself with: the root for a slot, its kernel and its initrd. */
export const serverUpdate = (arch: Arch, version: string) => {
  const stem = `flasher-server-${arch}-v${version}`
  return { kernel: `${stem}.vmlinuz`, initrd: `${stem}.initrd`, squashfs: `${stem}.squashfs` }
}

/** The Debian package; its version and its names of processors are Debian's. */
export const debFile = (arch: Arch, version: string) =>
  `flasher-lab_${version}_${DEBIAN_ARCHS[arch]}.deb`

/** Container images of the servers, in one archive (OCI). */
export const containersFile = (arch: Arch, version: string) =>
  `flasher-containers-${arch}-v${version}.oci.tar`

/** As Debian names them. */
export const DEBIAN_ARCHS: Readonly<Record<Arch, string>> = { x86_64: 'amd64', arm64: 'arm64' }

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
