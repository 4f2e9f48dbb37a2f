/** GRUB's configuration on the server appliance: it starts the version that has proved itself, or one on trial. */
import type { Arch } from '#appliance/appliance.ts'
import { SERVER_ARGS, SERVER_BOOT } from '#appliance/server.ts'
import { LIVE_QUIRKS } from '#appliance/live-boot.ts'

/** How the boot loader and the kernel come to their consoles. */
interface ConsolePlan {
  readonly terminal: readonly string[]
  readonly args: readonly string[]
}

const CONSOLES: Readonly<Record<Arch, ConsolePlan>> = {
  x86_64: {
    terminal: [
      'if serial --unit=0 --speed=115200; then',
      '  terminal_input console serial',
      '  terminal_output console serial',
      'fi',
    ],
    args: ['console=tty0', 'console=ttyS0,115200'],
  },
  // The firmware's console includes the serial line, and firmware tells the kernel which one that is (ACPI's SPCR,
  // `stdout-path` of a device tree): boards differ, and the kernel would take a wrong name for a right one.
  arm64: { terminal: [], args: [] },
}

/** Seconds. */
const MENU_SECONDS = 3
const ENVIRONMENT_BYTES = 1024

/** The modules of GRUB for BIOS; the signed one has its own. */
export const SERVER_BIOS_MODULES = [
  'biosdisk',
  'configfile',
  'echo',
  'fat',
  'linux',
  'loadenv',
  'normal',
  'part_gpt',
  'reboot',
  'serial',
  'terminal',
  'test',
] as const

/** Where GRUB for BIOS finds its configuration: on the second partition of the disk that it was started from. */
export const BIOS_PREFIX = '(,gpt2)/boot/grub'

/** The kernel options of all versions; `panic` has a version that hangs tried again. */
const ARGS = [...LIVE_QUIRKS.map(([name, value]) => `${name}=${value}`), 'panic=30', 'ro']

/**
 * Renders the same file for all versions: an update does not touch it. `next` is a version on
 * trial: after three starts without a confirmation the one before it starts again, and `failed`
 * says so. (`chosen` is GRUB's own.)
 */
export function renderServerGrub(arch: Arch): string {
  const { terminal, args } = CONSOLES[arch]
  const entry = (title: string, version: string, ...more: readonly string[]) =>
    renderEntry(title, version, [...ARGS, ...args, ...more])
  return [
    ...terminal,
    'load_env',
    'set slot=$good',
    'set other=$previous',
    'if [ -n "$next" ]; then',
    '  set other=$good',
    '  if [ "$tries" = 3 ]; then set tries=2; set slot=$next',
    '  elif [ "$tries" = 2 ]; then set tries=1; set slot=$next',
    '  elif [ "$tries" = 1 ]; then set tries=0; set slot=$next',
    '  else set failed=$next; set next=; set other=; fi',
    '  save_env next tries failed',
    'fi',
    `set timeout=${MENU_SECONDS}`,
    'set default=0',
    'set menu_color_normal=light-gray/black',
    'set menu_color_highlight=black/light-gray',
    ...entry('Flasher server $slot', '$slot'),
    'if [ -n "$other" ]; then',
    ...entry('Flasher server $other, the version before', '$other'),
    'fi',
    ...entry('Flasher server $slot, a shell for repairs', '$slot', 'systemd.unit=rescue.target'),
    ...entry('Flasher server $slot, reset: ALL STATE IS LOST', '$slot', `${SERVER_ARGS.reset}=1`),
    '',
  ].join('\n')
}

function renderEntry(title: string, version: string, args: readonly string[]): readonly string[] {
  const files = `/${SERVER_BOOT.folder}/${version}`
  return [
    `menuentry "${title}" {`,
    `  linux ${files}.vmlinuz ${SERVER_ARGS.slot}=${version} ${args.join(' ')}`,
    `  initrd ${files}.initrd`,
    '}',
  ]
}

/** Renders what GRUB reads and writes in place: lines, filled up to a fixed size. */
export function renderGrubEnvironment(values: Readonly<Record<string, string>>): string {
  const lines = Object.entries(values).map(([name, value]) => `${name}=${value}\n`)
  return ['# GRUB Environment Block\n', ...lines].join('').padEnd(ENVIRONMENT_BYTES, '#')
}
