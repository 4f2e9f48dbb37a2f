/** Parses the firmware's boot entries from efibootmgr, and plans the one that boots a flashed disk once. */
import {
  EFI_SYSTEM,
  hasDosSignature,
  parseGptPartitions,
  parseTable,
  readDosEntries,
} from './partition-tables.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

/** Entries of this name are ours, to be removed again. */
export const BOOT_LABEL = 'flasher flashed'

/** What the firmware starts on a disk without an entry, by Node's name of the processor. */
const LOADERS: ReadonlyMap<string, string> = new Map([
  ['x64', '\\EFI\\BOOT\\BOOTX64.EFI'],
  ['arm64', '\\EFI\\BOOT\\BOOTAA64.EFI'],
])

/** Null: the processor has none. */
export const loaderFor = (arch: string): string | null => LOADERS.get(arch) ?? null

export interface BootEntries {
  readonly ours: readonly string[]
  readonly next: string | null
  /** As printed; null: the firmware has none. */
  readonly order: string | null
}

const MAX_LINES = 2000

export function parseBootEntries(text: string): BootEntries {
  const lines = text.split('\n', MAX_LINES)
  const ours = lines.flatMap((line) => {
    const [, number, label = ''] = /^Boot([0-9A-F]{4})[* ] ?(.*)$/i.exec(line) ?? []
    // From version 18 on a tab and the device path follow.
    return number !== undefined && label.split('\t', 1)[0]?.trim() === BOOT_LABEL ? [number] : []
  })
  const valueOf = (name: string) =>
    lines
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2)
      .trim() ?? null
  return { ours, next: valueOf('BootNext'), order: valueOf('BootOrder') }
}

const MBR_EFI_SYSTEM = 0xef

/** From 1. `head`: the first bytes with the table, as udev may not have seen the disk yet. */
export function findSystemPartition(
  head: Buffer,
  sectorBytes: number,
): Result<number, 'no-table' | 'no-system-partition'> {
  const table = parseTable(head, sectorBytes)
  if (table === null && !hasDosSignature(head)) return refuse('no-table')
  const found =
    table === null
      ? readDosEntries(head).find(({ type }) => type === MBR_EFI_SYSTEM)
      : parseGptPartitions(table).find(({ type }) => type === EFI_SYSTEM)
  return found === undefined ? refuse('no-system-partition') : accept(found.number)
}

/** `FLASHER_REGISTER_UEFI_BOOT`; unset means no. */
export const isBootWanted = (setting: string | undefined): boolean =>
  /^(1|true|yes|on)$/i.test(setting?.trim() ?? '')
