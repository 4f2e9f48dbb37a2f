/** GRUB's configuration on our media, for BIOS and UEFI; `build/programs/iso.ts` says what else is inside an ISO. */
import { KERNEL_ARGS } from '#appliance/contract.ts'
import { LIVE_QUIRKS } from '#appliance/live-boot.ts'

/** What differs between media. */
interface MenuPlace {
  /** Where kernel and initrd lie; empty: at the top. */
  readonly folder: string
  readonly consoles: readonly string[]
  /** Arguments of the kernel on this medium alone. */
  readonly args: readonly string[]
  /** How GRUB itself uses a serial line, where the firmware's console does not include it. */
  readonly terminal: readonly string[]
}

/** A machine without a serial port keeps its screen. */
const ISO_MENU: MenuPlace = {
  folder: '/live',
  consoles: ['console=tty0', 'console=ttyS0,115200'],
  args: [],
  terminal: [
    'if serial --unit=0 --speed=115200; then',
    '  terminal_input console serial',
    '  terminal_output console serial',
    'fi',
  ],
}

/** A stick whose files were copied one by one. */
export const FILES_MENU: MenuPlace = { ...ISO_MENU, args: [`${KERNEL_ARGS.verify}=1`] }

/** UEFI on arm64. */
export const BOARD_MENU: MenuPlace = {
  folder: '',
  consoles: ['console=tty0', 'console=ttyAMA0'],
  args: [],
  terminal: [],
}

/** Seconds: enough to press a key, not long enough to wait for. */
const MENU_SECONDS = 3

/** How the live system asks a person: by the wizard, or by the two panes of the earlier line. */
export type Asks = 'wizard' | 'panes'

const ASKING: Readonly<Record<Asks, readonly string[]>> = {
  wizard: [],
  panes: [`${KERNEL_ARGS.mode}=interactive`],
}

interface MenuPlan {
  readonly version: string
  /** Identifies the medium to the initrd. */
  readonly media: string
  readonly asks: Asks
  /** Default: the ISO's. */
  readonly place?: MenuPlace
}

interface Entry {
  readonly title: string
  readonly args: readonly string[]
}

const ENTRIES: readonly Entry[] = [
  { title: 'Flasher', args: [] },
  { title: 'Flasher, copied to memory (you can then remove the stick)', args: ['flasher.toram=1'] },
  {
    title: 'Flasher, troubleshooting (plain graphics, all messages, shell)',
    args: ['nomodeset', 'loglevel=7', 'systemd.show_status=1', 'flasher.onfail=shell'],
  },
]

/** Renders GRUB's menu for a medium. */
export function renderMenu({ version, media, asks, place = ISO_MENU }: MenuPlan): string {
  const { folder, consoles, args: own, terminal } = place
  const quirks = LIVE_QUIRKS.map(([name, value]) => `${name}=${value}`)
  // gpt: use the backup table when a power cut during growth has damaged the first one.
  const common = [
    `${KERNEL_ARGS.media}=${media}`,
    ...own,
    ...ASKING[asks],
    'gpt',
    ...quirks,
    ...consoles,
  ]
  return [
    ...terminal,
    `set timeout=${MENU_SECONDS}`,
    'set default=0',
    'set menu_color_normal=light-gray/black',
    'set menu_color_highlight=black/light-gray',
    '',
    ...ENTRIES.flatMap(({ title, args }, at) => [
      `menuentry "${at === 0 ? `${title} ${version}` : title}" {`,
      `  linux ${folder}/vmlinuz ${[...common, ...args].join(' ')}`,
      `  initrd ${folder}/initrd`,
      '}',
    ]),
    '',
  ].join('\n')
}

/**
 * Returns the path of a file that no other medium has; Debian's media have a /.disk/info as well.
 */
export const renderMark = (media: string): string => `.disk/flasher-${media}`

/**
 * Renders what GRUB runs first, for BIOS and on the EFI partition: it finds the medium that it was
 * started from, by a file.
 */
export const renderEarly = (media: string, mark: string = renderMark(media)): string =>
  [
    `search --file --set=root /${mark}`,
    'set prefix=($root)/boot/grub',
    'configfile $prefix/grub.cfg',
    '',
  ].join('\n')

/**
 * Debian's signed GRUB looks here on the partition it was started from (on a stick the EFI partition), and
 * searches for a medium with /.disk/info only when that has no /boot/grub. A disc starts it from the ISO itself.
 */
export const SIGNED_CONFIG_PATH = 'boot/grub/x86_64-efi/grub.cfg'
export const SIGNED_CONFIG = 'source /boot/grub/grub.cfg\n'

/** The modules of GRUB for BIOS; the signed one has its own. */
export const BIOS_MODULES = [
  'biosdisk',
  'iso9660',
  'part_msdos',
  'part_gpt',
  'linux',
  'normal',
  'configfile',
  'search',
  'search_fs_file',
  'echo',
  'serial',
  'terminal',
  'test',
] as const
