/** Names that the machine server as a separate disk and its builder share. */

/** Names in the partition table. A slot is named after the version in it; one without has `empty`. */
export const SERVER_PARTITIONS = {
  bios: 'flasher-bios',
  efi: 'flasher-efi',
  slot: 'flasher_',
  empty: '_empty',
  state: 'flasher-state',
} as const

/** What the EFI partition holds: kernels and initrds by version, and the files of the boot loader. */
export const SERVER_BOOT = {
  folder: 'flasher',
  config: 'boot/grub/grub.cfg',
  environment: 'boot/grub/grubenv',
} as const

/** Kernel options of the appliance. */
export const SERVER_ARGS = {
  /** The version to start: the slot of that name is the root. */
  slot: 'flasher.slot',
  /** Has the state made anew. */
  reset: 'flasher.reset',
} as const
