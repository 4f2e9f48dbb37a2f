/** What a build unpacks from Debian packages: mkosi, boot loaders, iPXE. */
import type { Arch } from '../../appliance/appliance.ts'
import { packagesStep } from './packages.ts'
import type { Step } from './step.ts'

export const MKOSI: Step = packagesStep({
  name: 'mkosi',
  says: 'mkosi, which builds root trees',
  suite: 'forky',
  arch: 'amd64',
  packages: ['mkosi'],
})

/** Shim and GRUB as signed by Debian for Secure Boot, and GRUB for BIOS. */
export const BOOT_PACKAGES: Step = packagesStep({
  name: 'boot-packages',
  says: 'boot loaders for sticks and discs',
  suite: 'trixie',
  arch: 'amd64',
  packages: [
    'grub-common',
    'grub-efi-amd64-signed',
    'grub-pc-bin',
    'shim-helpers-amd64-signed',
    'shim-signed',
  ],
})

/** The same loaders for arm64, for the network alone. */
export const BOOT_PACKAGES_ARM: Step = packagesStep({
  name: 'arm64-packages',
  says: 'signed boot loaders for arm64',
  suite: 'trixie',
  arch: 'arm64',
  packages: ['grub-efi-arm64-signed', 'shim-signed'],
})

/** The step with the signed loaders of each architecture. */
export const SIGNED: Readonly<Record<Arch, string>> = {
  x86_64: BOOT_PACKAGES.name,
  arm64: BOOT_PACKAGES_ARM.name,
}

/** One package holds the binaries of all architectures. */
export const IPXE_PACKAGES: Step = packagesStep({
  name: 'ipxe-packages',
  says: 'iPXE from Debian',
  suite: 'forky',
  arch: 'amd64',
  packages: ['ipxe'],
})

export const IPXE_BINARIES: Readonly<Record<Arch, string>> = {
  x86_64: 'ipxe-amd64.efi',
  arm64: 'ipxe-arm64.efi',
}
