/** Decides how backups are named, when the next one is due, and which are kept. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { compareFields, type FieldChanges } from '#fleet/state/rules/event-table.ts'

const BACKUP_CADENCES = ['daily', 'weekly', 'manual'] as const
type BackupCadence = (typeof BACKUP_CADENCES)[number]

export interface BackupSettings {
  readonly enabled: boolean
  readonly cadence: BackupCadence
  readonly retention: number
}

/** `2026-11-21T06-55-53Z`; `-1`, `-2`… is appended if that is taken. */
export function nextBackupId(iso: string, isTaken: (id: string) => boolean): string {
  const stamp = `${iso.slice(0, 19).replaceAll(':', '-')}Z`
  for (let attempt = 0; ; attempt += 1) {
    const id = attempt === 0 ? stamp : `${stamp}-${attempt}`
    if (!isTaken(id)) return id
  }
}

const ID = /^(\d{4}-\d{2}-\d{2})T(\d{2})-(\d{2})-(\d{2})Z(?:-(\d{1,6}))?$/

/** Also keeps everything else out of paths. */
export const isBackupId = (text: string): boolean => ID.test(text)

/** ISO 8601 UTC; null: not an id. */
export function readBackupTime(id: string): string | null {
  const [, day, hours, minutes, seconds] = ID.exec(id) ?? []
  return day === undefined ? null : `${day}T${hours}:${minutes}:${seconds}Z`
}

/** Sorts by age: `…Z-10` comes after `…Z-9`. */
const sortKey = (id: string) => {
  const [, day, hours, minutes, seconds, attempt = ''] = ID.exec(id) ?? []
  return `${day}${hours}${minutes}${seconds}${attempt.padStart(6, '0')}`
}

/** Newest first; omits texts that are no id. */
export const sortBackups = (ids: readonly string[]): readonly string[] =>
  ids.filter(isBackupId).toSorted((a, b) => (sortKey(a) < sortKey(b) ? 1 : -1))

interface OrderedBackup {
  readonly backup_id: string
  /** Null: of the earlier line. */
  readonly manifest: { readonly number: number } | null
}

/** 0: no number. */
export const numberOf = ({ manifest }: OrderedBackup): number => manifest?.number ?? 0

/**
 * Newest first. The number decides, as the clock may have been wrong: a backup is no later than its
 * successors, and none is later than `now` (milliseconds). Without a number only the time is known;
 * a future one says nothing and counts as the oldest.
 */
export function orderBackups<Backup extends OrderedBackup>(
  backups: readonly Backup[],
  now: number,
): readonly Backup[] {
  const byName = backups.toSorted((a, b) => (sortKey(a.backup_id) < sortKey(b.backup_id) ? 1 : -1))
  let latest = now
  const counted = byName
    .filter((backup) => numberOf(backup) > 0)
    .toSorted((a, b) => numberOf(b) - numberOf(a))
    .map((backup) => {
      latest = Math.min(latest, timeOf(backup))
      return { backup, at: latest }
    })
  const others = byName
    .filter((backup) => numberOf(backup) === 0)
    .map((backup) => ({ backup, at: timeOf(backup) > now ? -Infinity : timeOf(backup) }))
  // Sorting is stable: at the same time, counted ones come first, in their order.
  const ordered = [...counted, ...others].toSorted((a, b) => (a.at === b.at ? 0 : b.at - a.at))
  return ordered.map(({ backup }) => backup)
}

/** Milliseconds; 0: not a time. */
function timeOf({ backup_id }: OrderedBackup): number {
  const iso = readBackupTime(backup_id)
  try {
    return iso === null ? 0 : Temporal.Instant.from(iso).epochMilliseconds
  } catch {
    return 0
  }
}

/** `made` stays, and the newest, `keep` in all. */
export const planBackupPruning = (
  newestFirst: readonly string[],
  keep: number,
  made: string | null,
): readonly string[] => {
  const others = newestFirst.filter((id) => id !== made)
  const slots = Math.max(1, Math.trunc(keep)) - (others.length < newestFirst.length ? 1 : 0)
  return others.slice(slots)
}

const DAY_MS = 86_400_000
const PERIOD_MS = { daily: DAY_MS, weekly: 7 * DAY_MS, manual: null } as const satisfies Record<
  BackupCadence,
  number | null
>

/** The wait after a failed scheduled backup. */
const RETRY_MS = 3_600_000

interface BackupHistory {
  /** Wall clock of the last scheduled success, in milliseconds; null: none. */
  readonly succeededAt: number | null
  /** Milliseconds since then by the steady clock; null: another process made it. */
  readonly sinceSuccess: number | null
  /** Milliseconds since this process began its last scheduled one. */
  readonly sinceTry: number | null
}

/** The clock may be set back this far without an extra backup. */
const AHEAD_MS = 3_600_000

/**
 * A missed backup is due at once. This process's own backups are timed by a steady clock, too, so
 * that a clock set back delays nothing.
 */
export function isBackupDue(
  { enabled, cadence }: BackupSettings,
  { succeededAt, sinceSuccess, sinceTry }: BackupHistory,
  now: number,
): boolean {
  const period = PERIOD_MS[cadence]
  if (!enabled || period === null) return false
  if (sinceTry !== null && sinceTry < RETRY_MS) return false
  if (succeededAt === null || now - succeededAt >= period) return true
  // A future time comes from a wrong clock and says nothing.
  return sinceSuccess === null ? succeededAt > now + AHEAD_MS : sinceSuccess >= period
}

const PieceSchema = z.object({
  name: z.string().regex(/^[a-z][a-z0-9.-]{0,63}$/),
  bytes: z
    .int()
    .min(0)
    .max(2 ** 31),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
})
const FileSchema = PieceSchema.extend({
  bytes: z.int().min(0),
  pieces: z.array(PieceSchema).max(1_000_000),
})
const ManifestSchema = z.object({
  version: z.literal(1),
  backup_id: z.string().refine(isBackupId),
  created_at: z.string().max(40),
  release: z.string().max(64),
  line: z.string().max(64),
  trigger: z.string().max(64),
  machines: z.int().min(0),
  /** Grows with each backup of the storage, whatever the clock says. */
  number: z.int().min(1),
  files: z.array(FileSchema).max(16),
})

export type BackupFile = z.infer<typeof FileSchema>
export type BackupManifest = z.infer<typeof ManifestSchema>

export function parseManifest(text: string, id: string): Result<BackupManifest, 'no-manifest'> {
  const parsed = ManifestSchema.safeParse(parseJson(text))
  return parsed.success && parsed.data.backup_id === id
    ? accept(parsed.data)
    : refuse('no-manifest')
}

export const renderManifest = (manifest: BackupManifest): string =>
  `${JSON.stringify(manifest, null, 2)}\n`

// What a restore changes: which machines come back, go, or become what they were, and which settings.

export interface MachineDifference {
  readonly mac: string
  /** After the restore if known then; null: only its address is known. */
  readonly name: string | null
  /** `returns`: only the backup knows it; `goes`: the backup does not know it; `changes`: both do. */
  readonly kind: 'returns' | 'goes' | 'changes'
  /** An operator's assignments, now and after; empty unless `changes`. */
  readonly changes: FieldChanges
}

export interface MachineWords<Machine extends MachineBase> {
  nameOf(machine: Machine): string | null
  describe(machine: Machine): Readonly<Record<string, unknown>>
}

const ORDER = { returns: 1, goes: 0, changes: 2 } as const

/** Machines that go come first, then returning, then changed ones, each by address. */
export function compareFleets<Machine extends MachineBase>(
  present: Iterable<Machine>,
  restored: Iterable<Machine>,
  { nameOf, describe }: MachineWords<Machine>,
): readonly MachineDifference[] {
  const rest = new Map([...present].map((machine) => [String(machine.mac), machine]))
  const found: MachineDifference[] = []
  for (const machine of restored) {
    const { mac } = machine
    const name = nameOf(machine)
    const before = rest.get(mac)
    rest.delete(mac)
    if (before === undefined) {
      found.push({ mac, name, kind: 'returns', changes: {} })
      continue
    }
    const changes = compareFields(describe(before), describe(machine))
    if (Object.keys(changes).length > 0) found.push({ mac, name, kind: 'changes', changes })
  }
  for (const machine of rest.values()) {
    found.push({ mac: machine.mac, name: nameOf(machine), kind: 'goes', changes: {} })
  }
  return found.toSorted((a, b) => ORDER[a.kind] - ORDER[b.kind] || (a.mac < b.mac ? -1 : 1))
}

export function listChangedNames(
  present: ReadonlyMap<string, string>,
  restored: ReadonlyMap<string, string>,
): readonly string[] {
  const names = new Set([...present.keys(), ...restored.keys()])
  return [...names].filter((name) => present.get(name) !== restored.get(name)).toSorted()
}
