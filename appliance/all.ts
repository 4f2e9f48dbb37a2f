/** All products, a row for each: what `pnpm build:images` builds by itself, and what it builds when it is named. */
import type { Appliance } from './appliance.ts'

export const APPLIANCES: readonly Appliance[] = [
  {
    name: 'netboot-pc',
    says: 'kernel, initrd and root for PCs that boot from the network',
    shape: 'netboot',
    archs: ['x86_64'],
  },
  {
    name: 'ipxe-efi',
    says: 'iPXE for UEFI that asks the machine server what to boot',
    shape: 'ipxe',
    archs: ['x86_64', 'arm64'],
  },
  {
    name: 'secureboot-efi',
    says: "Debian's signed shim and GRUB, and the configuration by which they ask the machine server",
    shape: 'secureboot',
    archs: ['x86_64', 'arm64'],
  },
  {
    name: 'usb-pc',
    says: 'the live system on a stick or disc for PCs, with a partition for images',
    shape: 'usb',
    archs: ['x86_64'],
  },
]

/** `pnpm build:images server deb containers`; a release has them, too. */
export const NAMED_APPLIANCES: readonly Appliance[] = [
  {
    name: 'server',
    says: 'the machine server as a separate disk',
    shape: 'server',
    archs: ['x86_64'],
  },
  {
    name: 'deb',
    says: 'all programs with their units, as Debian packages',
    shape: 'deb',
    archs: ['x86_64'],
  },
  {
    name: 'deb-arm64',
    says: 'the programs as a Debian package for arm64',
    shape: 'deb',
    archs: ['arm64'],
  },
  {
    name: 'containers',
    says: 'the servers as container images',
    shape: 'containers',
    archs: ['x86_64'],
  },
  {
    name: 'earlier-live',
    says: 'earlier line: kernel, initrd and root for PCs that boot from the network',
    shape: 'live',
    archs: ['x86_64'],
  },
  {
    name: 'earlier-usb',
    says: 'earlier line: the live system on a stick, with the terminal UI',
    shape: 'live-usb',
    archs: ['x86_64'],
  },
  {
    name: 'netboot-arm64',
    says: 'kernel, initrd and root for arm64 machines that boot from the network',
    shape: 'netboot',
    archs: ['arm64'],
  },
  {
    name: 'usb-rpi',
    says: 'the live system on a stick or card for Raspberry Pi and for UEFI on arm64',
    shape: 'board',
    archs: ['arm64'],
  },
  {
    name: 'usb-files',
    says: 'the live system as files to copy to a FAT32 stick, for PCs with UEFI',
    shape: 'files',
    archs: ['x86_64'],
  },
  {
    name: 'server-rpi',
    says: 'the machine server as a separate disk, for Raspberry Pi and for UEFI on arm64',
    shape: 'server',
    archs: ['arm64'],
  },
]
