/** What firmware finds on the first partition of an image for boards: that of a Raspberry Pi, and UEFI. */
import { KERNEL_ARGS } from '#appliance/contract.ts'
import { LIVE_QUIRKS } from '#appliance/live-boot.ts'

/** Both kinds of firmware start the same kernel, which is not compressed: GRUB verifies the file as it is. */
export const BOARD_FILES = { kernel: 'vmlinuz', initrd: 'initrd' } as const

/** Raspberry Pi 4, 400 and CM4 load these from the partition; a 5 has them in its EEPROM. */
export const PI_FIRMWARE = ['start4.elf', 'fixup4.dat'] as const

/** Device trees of the kernel: bcm2711 is the processor of the 4, bcm2712 that of the 5. */
export const isBoardTree = (name: string): boolean => /^bcm271[12]-.*\.dtb$/.test(name)

/** Debian's signed loaders, by the path where UEFI and shim look for them. */
export const UEFI_LOADERS = {
  'EFI/BOOT/BOOTAA64.EFI': 'usr/lib/shim/shimaa64.efi.signed',
  'EFI/BOOT/grubaa64.efi': 'usr/lib/grub/arm64-efi-signed/gcdaa64.efi.signed',
  'EFI/BOOT/mmaa64.efi': 'usr/lib/shim/mmaa64.efi.signed',
} as const

/** The signed GRUB looks here on the partition it was started from. */
export const SIGNED_ARM64_CONFIG_PATH = 'boot/grub/arm64-efi/grub.cfg'

/** Offers UEFI on a Raspberry Pi 4 and 5, and starts the loader that UEFI machines start. */
export const U_BOOT = 'u-boot.bin'

/** The settings of a Raspberry Pi (raspberrypi.com, "config.txt"): the live system, without a boot loader. */
export const PI_CONFIG: string = renderPiConfig([
  `kernel=${BOARD_FILES.kernel}`,
  `initramfs ${BOARD_FILES.initrd} followkernel`,
])

/** The server appliance, whose boot loader chooses the version. */
export const PI_SERVER_CONFIG: string = renderPiConfig([`kernel=${U_BOOT}`])

/** @param starts the lines that name what is started. */
function renderPiConfig(starts: readonly string[]): string {
  return [
    '# Read by the firmware of Raspberry Pi 4 and 5.',
    'arm_64bit=1',
    'enable_uart=1',
    "# The device trees are those of the kernel, under the kernel's names.",
    'upstream_kernel=1',
    ...starts,
    'disable_splash=1',
    '',
    '[pi5]',
    '# The firmware would look for a kernel of its maker.',
    'os_check=0',
    '# A 5 with the D0 processor (2 GB, 16 GB, and others since 2025) requires this line:',
    '#device_tree=bcm2712-d-rpi-5-b.dtb',
    '',
  ].join('\n')
}

/** The screen, and the serial lines on the pins: of a 4, and on the debug connector of a 5. */
const CONSOLES = ['console=tty0', 'console=ttyS1,115200', 'console=ttyAMA10,115200']

/** Renders the kernel's options as one line: what follows a line break would be ignored. */
export function renderPiCommandLine(media: string): string {
  const quirks = LIVE_QUIRKS.map(([name, value]) => `${name}=${value}`)
  return `${[...CONSOLES, `${KERNEL_ARGS.media}=${media}`, 'gpt', ...quirks].join(' ')}\n`
}
