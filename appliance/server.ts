/** The machine server as a disk of its own, for a virtual machine, a PC or a board; and names that it and its builder share. */
import type { Appliance } from './appliance.ts'

export const serverAppliance: Appliance = {
  name: 'server',
  says: 'the machine server as a disk of its own',
  shape: 'server',
  archs: ['x86_64'],
}

export const serverRpi: Appliance = {
  name: 'server-rpi',
  says: 'the machine server as a disk of its own, for Raspberry Pi and for UEFI on arm64',
  shape: 'server',
  archs: ['arm64'],
}

/** Names in the partition table. A slot is named after the version in it; one without has `empty`. */
export const SERVER_PARTITIONS = {
  bios: 'flasher-bios',
  efi: 'flasher-efi',
  slot: 'flasher_',
  empty: '_empty',
  state: 'flasher-state',
} as const

/** On the EFI partition: kernels and initrds by version, and what the boot loader keeps. */
export const SERVER_BOOT = {
  folder: 'flasher',
  config: 'boot/grub/grub.cfg',
  environment: 'boot/grub/grubenv',
} as const

/** Kernel options of the appliance. */
export const SERVER_ARGS = {
  /** The version to start: the slot of that name is the root. */
  slot: 'flasher.slot',
  /** The state is made anew. */
  reset: 'flasher.reset',
} as const
