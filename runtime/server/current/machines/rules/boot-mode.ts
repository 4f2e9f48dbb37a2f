/** Current line: the boot modes, and the rules by which a network boot follows from them: a row for each. */

/** The order is that in which the API lists them. */
export const BOOT_MODES = [
  'ipxe-exit',
  'flasher-flash-always',
  'flasher-flash-once',
  'flasher-tui',
  'flasher-inventory',
] as const
export type BootMode = (typeof BOOT_MODES)[number]

interface ModeRow {
  /** `boot.ts` decides which rule that leads to, `plan.ts` what the live system does. */
  readonly does: 'boot-disk' | 'flash' | 'list-disks' | 'open-wizard'
  /** Whether each network boot does it anew; else the machine boots its disk once it is done. */
  readonly repeats: boolean
  /** Its position among the cards of a page: those that flash, those that leave the disk alone, the wizard. */
  readonly card: number
  readonly title: string
  readonly text: string
}
export type ModePurpose = ModeRow['does']

export const MODES: Readonly<Record<BootMode, ModeRow>> = {
  'flasher-flash-once': {
    does: 'flash',
    repeats: false,
    card: 1,
    title: 'Flash once',
    text: 'Erases the disk and flashes the image at the next network boot, then boots the disk.',
  },
  'flasher-flash-always': {
    does: 'flash',
    repeats: true,
    card: 2,
    title: 'Flash always',
    text: 'Erases and flashes at every network boot.',
  },
  'ipxe-exit': {
    does: 'boot-disk',
    repeats: true,
    card: 3,
    title: 'Boot its disk',
    text: 'The server leaves the machine alone.',
  },
  'flasher-inventory': {
    does: 'list-disks',
    repeats: false,
    card: 4,
    title: 'Inventory only',
    text: 'Lists disks and hardware, then boots the disk.',
  },
  'flasher-tui': {
    does: 'open-wizard',
    repeats: true,
    card: 5,
    title: 'Open the wizard',
    text: 'A person at the machine chooses image and disk.',
  },
}

export const DEFAULT_MODE = 'ipxe-exit' satisfies BootMode
/** The mode of a machine that was discovered, or was taken over from the earlier line. */
export const DISCOVERED_MODE = 'flasher-inventory' satisfies BootMode
/** The mode that pages recommend to whoever wants a machine flashed. */
export const USUAL_FLASH_MODE = 'flasher-flash-once' satisfies BootMode

export const isFlashMode = (mode: BootMode): boolean => MODES[mode].does === 'flash'

export const flashesOnce = (mode: BootMode): boolean => isFlashMode(mode) && !MODES[mode].repeats
export const flashesAlways = (mode: BootMode): boolean => isFlashMode(mode) && MODES[mode].repeats

interface RuleRow {
  readonly reason: string
  readonly starts: 'disk' | 'live'
  /** Whether the guard against endless boots counts it; a person is there, or an order counts its own. */
  readonly counted: boolean
  /** Whether a disk is written with nobody there: where there is a limit, one after the other. */
  readonly flashes: boolean
  /** The state of the machine where nothing else is known of it. */
  readonly state: 'ready' | 'armed' | 'paused' | 'capture' | 'done' | 'needs-you'
}

const disk = (state: RuleRow['state'], reason: string): RuleRow => ({
  reason,
  starts: 'disk',
  counted: true,
  flashes: false,
  state,
})
const liveSystem = (state: RuleRow['state'], reason: string): RuleRow => ({
  ...disk(state, reason),
  starts: 'live',
})
const flash = (reason: string): RuleRow => ({ ...liveSystem('armed', reason), flashes: true })
const attended = (state: RuleRow['state'], reason: string): RuleRow => ({
  ...liveSystem(state, reason),
  counted: false,
})

export const RULES = {
  'ipxe-exit': disk('ready', 'Its mode is to boot its own disk.'),
  wizard: attended('ready', 'Its mode is to open the wizard for the person in front of it.'),
  'disks-wanted': liveSystem('ready', 'Its disks have not been listed yet.'),
  'disks-stale': liveSystem('ready', 'The list of its disks is older than inventory_refresh.'),
  'disks-known': disk('ready', 'Its disks are known.'),
  flash: flash('An image and a disk are selected: it is flashed.'),
  'flash-retry': flash('Its last flash never reported that it was done: it is flashed again.'),
  flashed: disk('done', 'It was flashed once, as configured.'),
  'disk-allowed': disk(
    'ready',
    'An operator chose to boot its disk, although a flash never reported its end.',
  ),
  disarmed: disk(
    'needs-you',
    'An older state of the server was restored, which arms no machine: it is flashed once an operator arms it again.',
  ),
  withdrawn: disk(
    'ready',
    'An operator disarmed it: it is flashed once an operator arms it again.',
  ),
  expired: disk(
    'ready',
    'It was armed for longer than armed_hours: it is flashed once an operator arms it again.',
  ),
  paused: disk('paused', 'Its batch is paused: it is flashed after you resume it.'),
  'held-back': attended(
    'needs-you',
    'A flash of it began and never reported its end, and its order was taken away since: the disk may be half written.',
  ),
  'disk-after-flash': disk('done', 'It was just flashed, and boot_disk_once_after_flash is on.'),
  'loop-to-disk': disk(
    'needs-you',
    'It started the live system too often without finishing; nothing was written.',
  ),
  'loop-to-person': liveSystem(
    'needs-you',
    'Its flash was started too often without finishing: the disk may be half written.',
  ),
  'no-live-system': disk('needs-you', 'The server has no live system for this machine.'),
  'half-written': disk(
    'needs-you',
    'The end of a flash was never reported: the disk may be half written; no live system can flash it again.',
  ),
  queued: disk('armed', 'max_flashes machines are being flashed already: it waits for its turn.'),
  capture: attended('capture', 'A capture of one of its disks was ordered.'),
  locked: disk('needs-you', 'Locked, so it is not flashed.'),
  'no-image': disk('needs-you', 'No image is assigned.'),
  'unknown-image': disk('needs-you', 'The assigned image is not in the catalog.'),
  'not-an-image': disk('needs-you', 'The assigned file is not a disk image.'),
  'no-target': disk('needs-you', 'No target disk selected.'),
} as const satisfies Readonly<Record<string, RuleRow>>
export type BootRule = keyof typeof RULES
