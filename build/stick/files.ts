/** What lies on a stick that is made by copying files: names, texts, and the sizes that FAT32 allows. */
import { IMAGE_ENDINGS } from '#appliance/disk-images.ts'
import { VENTOY_FOLDER } from '#appliance/contract.ts'
import { FILES_MENU, renderEarly, renderMenu, SIGNED_CONFIG_PATH } from '#build/iso/grub.ts'

/** The files of Debian's packages, by their places on the stick: firmware looks for the first, which looks for the others beside it. */
export const STICK_LOADERS: Readonly<Record<string, string>> = {
  'EFI/BOOT/BOOTX64.EFI': 'usr/lib/shim/shimx64.efi.signed',
  'EFI/BOOT/grubx64.efi': 'usr/lib/grub/x86_64-efi-signed/gcdx64.efi.signed',
  'EFI/BOOT/mmx64.efi': 'usr/lib/shim/mmx64.efi.signed',
}

/** FAT32 keeps sizes in 32 bits. */
export const MAX_FAT_FILE_BYTES = 2 ** 32 - 1

/** The list of the stick's files, as `sha256sum -c` reads it. */
export const STICK_SUMS = 'SHA256SUMS'

/** A file that no other medium has. No name on the stick begins with a dot: such files get lost when people copy. */
const renderStickMark = (media: string) => `live/${media}`

interface StickTexts {
  readonly version: string
  /** Identifies the medium to GRUB and to the initrd. */
  readonly media: string
}

/** Renders the small files of the stick, by their places. */
export function renderStickTexts({ version, media }: StickTexts): Readonly<Record<string, string>> {
  const mark = renderStickMark(media)
  return {
    'README.txt': renderReadme(version),
    [SIGNED_CONFIG_PATH]: renderEarly(media, mark),
    'boot/grub/grub.cfg': renderMenu({ version, media, asks: 'wizard', place: FILES_MENU }),
    [mark]: `${media}\n`,
    'live/id': `${media}\n`,
    [`${VENTOY_FOLDER}/README.txt`]: inLines([
      `Copy disk images here: ${IMAGE_ENDINGS.join(', ')}.`,
      'Machines that start from this stick offer them.',
      '',
      'Each must be smaller than 4 GiB, because a FAT32 stick holds no larger file.',
      'Use the .img.zst of a larger image, or a server.',
    ]),
  }
}

const renderReadme = (version: string) =>
  inLines([
    `Flasher ${version}`,
    '',
    'These files start a PC by UEFI, with or without Secure Boot, once they lie on a USB stick',
    'that is formatted with FAT32. An older PC that has a BIOS only cannot start from them:',
    'use the ISO there.',
    '',
    `Copy disk images into the folder ${VENTOY_FOLDER}.`,
  ])

/** Windows line endings, which all systems can read. */
const inLines = (lines: readonly string[]) => [...lines, ''].join('\r\n')

/**
 * Tells why a file cannot lie on the stick; null where it can.
 *
 * @param bytes is its size.
 */
export const refuseSize = (path: string, bytes: number): string | null =>
  bytes <= MAX_FAT_FILE_BYTES
    ? null
    : `${path} has ${(bytes / 2 ** 30).toFixed(1)} GiB: a FAT32 stick holds only files below 4 GiB`
