/** Current line: the machine record and what changes it ("Machine", "MachineUpsert", "Transitions"). */
import type { Mac } from '../../../core/mac.ts'
import type { InventoryDisk, MachineBase } from '../../../core/machine.ts'

export const BOOT_MODES = [
  'ipxe-exit',
  'flasher-flash-always',
  'flasher-flash-once',
  'flasher-tui',
  'flasher-inventory',
] as const
export type BootMode = (typeof BOOT_MODES)[number]

/** The machine's way through one flash or inventory; never on the wire. A new intent starts a new one. */
export interface Cycle {
  readonly started_at: string
  /** Live boots that were offered in this cycle and did not finish. */
  readonly offers: number
  /** Whether a flash plan was handed out: from then on the disk may be half written. */
  readonly planned: boolean
  /** When done arrived or, in inventory mode, the disks. */
  readonly finished_at: string | null
}

export interface Machine extends MachineBase {
  readonly bty_image_ref: string | null
  readonly labels: readonly string[]
  readonly boot_mode: BootMode
  readonly sanboot_drive: string | null
  readonly known_disks: readonly InventoryDisk[] | null
  readonly known_disks_at: string | null
  readonly target_disk_serial: string | null
  /** Internal from here on. */
  readonly saw_flasher_boot: boolean
  readonly cycle: Cycle
  /** A locked machine refuses every flash mode. */
  readonly locked: boolean
  /** Which UART the live system speaks on. */
  readonly serial_console: 'ttyS0' | 'ttyS1'
  /** Architecture as the last iPXE contact told it (`buildarch`), null until then. */
  readonly arch: string | null
}

/** The fields of "Machine" in the order in which they are answered. */
export const WIRE_FIELDS = [
  'mac',
  'bty_image_ref',
  'labels',
  'discovered_at',
  'last_seen_at',
  'last_seen_ip',
  'boot_mode',
  'sanboot_drive',
  'last_flashed_at',
  'known_disks',
  'known_disks_at',
  'target_disk_serial',
  'created_at',
  'updated_at',
] as const satisfies readonly (keyof Machine)[]

/** A machine that is new to the server. */
export function createMachine(mac: Mac, bootMode: BootMode, now: string): Machine {
  return {
    mac,
    bty_image_ref: null,
    labels: [],
    discovered_at: null,
    last_seen_at: null,
    last_seen_ip: null,
    boot_mode: bootMode,
    sanboot_drive: null,
    last_flashed_at: null,
    known_disks: null,
    known_disks_at: null,
    target_disk_serial: null,
    created_at: now,
    updated_at: now,
    saw_flasher_boot: false,
    cycle: createCycle(now),
    locked: false,
    serial_console: 'ttyS0',
    arch: null,
  }
}

export const createCycle = (now: string): Cycle => ({
  started_at: now,
  offers: 0,
  planned: false,
  finished_at: null,
})
