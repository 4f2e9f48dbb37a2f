/** Current line: the boot modes, and the rules by which a network boot follows from them: a row for each says what pages show. */
import type { MachineState } from '#fleet/machine/rules/states.ts'

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
  /** Its position among the cards of a page: first those that most machines need. */
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
    card: 3,
    title: 'Flash always',
    text: 'Erases and flashes at every network boot.',
  },
  'ipxe-exit': {
    does: 'boot-disk',
    repeats: true,
    card: 2,
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

/** What a rule says of a machine, on pages and in its script; `is` and `next` are sentences. */
interface RuleTexts {
  readonly reason: string
  /** Instead of the state's word, where `ready` says too little. */
  readonly word?: string
  readonly is: string
  readonly next: string
  /** What the next network boot does, in a row of the list; absent: `is`. */
  readonly will?: string
}

interface RuleRow extends RuleTexts {
  readonly starts: 'disk' | 'live' | 'other'
  /** Whether the guard against endless boots counts it; a person is there, or an order counts its own. */
  readonly counted: boolean
  /** Whether a disk is written with nobody there: where there is a limit, one after the other. */
  readonly flashes: boolean
  /** The state of the machine where nothing else is known of it. */
  readonly state: MachineState
}

const disk = (state: MachineState, texts: RuleTexts): RuleRow => ({
  ...texts,
  starts: 'disk',
  counted: true,
  flashes: false,
  state,
})
const liveSystem = (state: MachineState, texts: RuleTexts): RuleRow => ({
  ...disk(state, texts),
  starts: 'live',
})
const flash = (texts: RuleTexts): RuleRow => ({ ...liveSystem('armed', texts), flashes: true })
const attended = (state: MachineState, texts: RuleTexts): RuleRow => ({
  ...liveSystem(state, texts),
  counted: false,
})

const UNTIL_ARMED = 'Arm it to flash it. Until then it boots its own disk.'

export const RULES = {
  'ipxe-exit': disk('ready', {
    reason: 'It is set to boot its own disk.',
    word: 'boots its disk',
    is: 'Boots its own disk.',
    next: 'Select Flash once to flash it.',
    will: 'Boot its disk',
  }),
  wizard: attended('ready', {
    reason: 'It is set to open the wizard.',
    word: 'opens the wizard',
    is: 'Opens the wizard.',
    next: 'A person at the machine chooses image and disk.',
    will: 'Open the wizard',
  }),
  'disks-wanted': liveSystem('ready', {
    reason: 'Its disks have not been listed yet.',
    word: 'lists its disks',
    is: 'Disks not listed yet.',
    next: 'Its next network boot lists them, then it boots its own disk.',
    will: 'List its disks, then boot its disk',
  }),
  'disks-stale': liveSystem('ready', {
    reason: 'Its inventory is out of date.',
    word: 'lists its disks',
    is: 'The list of its disks is out of date.',
    next: 'Its next network boot lists them again, then it boots its own disk.',
    will: 'List its disks, then boot its disk',
  }),
  'disks-known': disk('ready', {
    reason: 'Its disks are known.',
    word: 'disks listed',
    is: 'Disks listed.',
    next: 'Select Flash once to flash it.',
    will: 'Boot its disk',
  }),
  flash: flash({
    reason: 'It is flashed, as an image and a disk are selected.',
    is: 'Ready to be flashed.',
    next: 'Its next network boot flashes it.',
  }),
  'flash-retry': flash({
    reason: 'It is flashed again, as its last flash never reported its end.',
    is: 'Started to flash and has not reported the end.',
    next: 'Its next network boot flashes it again.',
  }),
  flashed: disk('done', {
    reason: 'It was flashed once, as configured.',
    is: 'Flashed.',
    next: 'It boots its own disk.',
    will: 'Boot its disk',
  }),
  'disk-allowed': disk('ready', {
    reason: 'An operator chose to boot its disk, although a flash never reported its end.',
    word: 'boots its disk',
    is: 'Boots its own disk, as an operator chose after an unfinished flash.',
    next: 'Arm it to flash it again.',
  }),
  disarmed: disk('needs-you', {
    reason: 'Disarmed, as an older state of the server was restored. Arm it again to flash it.',
    is: 'Not armed: an older state of the server was restored.',
    next: UNTIL_ARMED,
  }),
  withdrawn: disk('ready', {
    reason: 'An operator disarmed it. Arm it again to flash it.',
    is: 'Disarmed.',
    next: UNTIL_ARMED,
  }),
  expired: disk('ready', {
    reason: 'Its order to flash has expired. Arm it again to flash it.',
    is: 'Its order to flash has expired.',
    next: UNTIL_ARMED,
  }),
  paused: disk('paused', {
    reason: 'Its batch is paused. It is flashed after you resume the batch.',
    is: 'Paused with its batch.',
    next: 'Until you resume, this machine boots from its own disk.',
  }),
  'held-back': attended('needs-you', {
    reason:
      'A flash never reported its end, and the machine was disarmed since. The disk may be half written.',
    is: 'A flash never reported its end, and the machine was disarmed since. The disk may be half written.',
    next: 'Its next network boot opens the wizard. Flash it again, or boot the disk anyway if you know that it is intact.',
  }),
  'disk-after-flash': disk('done', {
    reason: 'It was just flashed. It boots its disk once before the next flash.',
    is: 'Flashed.',
    next: 'Its next network boot starts its disk; the one after that flashes it again.',
    will: 'Boot its disk once, then flash again',
  }),
  'loop-to-disk': disk('needs-you', {
    reason: 'It started the live system too often without finishing; nothing was written.',
    is: 'Started the live system too often without finishing; nothing was written.',
    next: 'It boots its own disk.',
  }),
  'loop-to-person': liveSystem('needs-you', {
    reason: 'Its flash was started too often without finishing. The disk may be half written.',
    is: 'Its flash never finished; the disk may be half written.',
    next: 'Its next network boot opens the wizard.',
  }),
  'no-live-system': disk('needs-you', {
    reason: 'The server has no live system for this machine.',
    is: 'The server has no live system for this machine.',
    next: 'Fetch one under Network boot. Until then it boots its own disk.',
  }),
  'half-written': disk('needs-you', {
    reason:
      'A flash never reported its end, so the disk may be half written, and there is no live system to flash it again.',
    is: 'Waiting for a live system. A flash never reported its end, so the disk may be half written.',
    next: 'Fetch one under Network boot, or boot the disk anyway if you know that it is intact.',
  }),
  queued: {
    ...flash({
      reason: 'It waits for its turn: as many machines as allowed are being flashed.',
      is: 'Ready to be flashed.',
      next: 'Its next network boot waits for its turn, then flashes it.',
    }),
    starts: 'disk',
  },
  capture: attended('capture', {
    reason: 'A capture of one of its disks was ordered.',
    is: 'A capture is ordered.',
    next: 'Its next network boot makes the image and uploads it.',
  }),
  once: {
    ...attended('once', {
      reason: 'It was ordered to boot something else once.',
      is: 'Boots something else once.',
      next: 'After that it does what it is configured to do.',
    }),
    starts: 'other',
  },
  locked: disk('needs-you', {
    reason: 'Locked, so it is not flashed.',
    is: 'Locked, but set to be flashed.',
    next: 'Unlock it, or change what it does on network boot. Until then it boots its own disk.',
  }),
  'no-image': disk('needs-you', {
    reason: 'No image is assigned.',
    is: 'No image assigned.',
    next: 'Select one. Until then it boots its own disk.',
  }),
  'unknown-image': disk('needs-you', {
    reason: 'The assigned image is not in the catalog.',
    is: 'Its image is not in the catalog.',
    next: 'Select another, or download it in the cache. Until then it boots its own disk.',
  }),
  'not-an-image': disk('needs-you', {
    reason: 'The assigned file is not a disk image.',
    is: 'Its image is not a disk image.',
    next: 'Select another. Until then it boots its own disk.',
  }),
  'no-target': disk('needs-you', {
    reason: 'No target disk selected.',
    is: 'No target disk selected.',
    next: 'Select one. Until then it boots its own disk.',
  }),
} as const satisfies Readonly<Record<string, RuleRow>>
export type BootRule = keyof typeof RULES
