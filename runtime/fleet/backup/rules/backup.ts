/** Decides how backups are named, when the next one is due, and which are kept. */

const BACKUP_CADENCES = ['daily', 'weekly', 'manual'] as const
type BackupCadence = (typeof BACKUP_CADENCES)[number]

export interface BackupSettings {
  readonly enabled: boolean
  readonly cadence: BackupCadence
  /** How many are kept. */
  readonly retention: number
}

/** `2026-11-21T06-55-53Z`, with `-1`, `-2`… where that one is taken. */
export function nextBackupId(iso: string, isTaken: (id: string) => boolean): string {
  const stamp = `${iso.slice(0, 19).replaceAll(':', '-')}Z`
  for (let attempt = 0; ; attempt += 1) {
    const id = attempt === 0 ? stamp : `${stamp}-${attempt}`
    if (!isTaken(id)) return id
  }
}

const ID = /^(\d{4}-\d{2}-\d{2})T(\d{2})-(\d{2})-(\d{2})Z(?:-(\d{1,6}))?$/

/** Tells whether a text is the id of a backup, which also keeps everything else out of paths. */
export const isBackupId = (text: string): boolean => ID.test(text)

/** Returns when the backup of this id was begun (ISO 8601 UTC); null when it is no id. */
export function readBackupTime(id: string): string | null {
  const [, day, hours, minutes, seconds] = ID.exec(id) ?? []
  return day === undefined ? null : `${day}T${hours}:${minutes}:${seconds}Z`
}

/** For sorting by age: `…Z-10` comes after `…Z-9`. */
const sortKey = (id: string) => {
  const [, day, hours, minutes, seconds, attempt = ''] = ID.exec(id) ?? []
  return `${day}${hours}${minutes}${seconds}${attempt.padStart(6, '0')}`
}

/** Newest first; what is no id is left out. */
export const sortBackups = (ids: readonly string[]): readonly string[] =>
  ids.filter(isBackupId).toSorted((a, b) => (sortKey(a) < sortKey(b) ? 1 : -1))

/** What the order of backups depends on. */
interface OrderedBackup {
  readonly backup_id: string
  /** Its number grows with each backup of a storage; one of an earlier release has none. */
  readonly manifest: { readonly number?: number | undefined } | null
}

/** 0: nobody counted it. */
export const numberOf = ({ manifest }: OrderedBackup): number => manifest?.number ?? 0

/**
 * Newest first. The number decides, for the clock may have been wrong: a backup was made no later than
 * those that follow it, and none was made later than now. Of those without a number only the time is
 * known; one that lies ahead says nothing and counts as the oldest. `now` in milliseconds.
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
  // Sorting is stable: of the same time the counted ones come first, in their order.
  const ordered = [...counted, ...others].toSorted((a, b) => (a.at === b.at ? 0 : b.at - a.at))
  return ordered.map(({ backup }) => backup)
}

/** The time of a backup in milliseconds; 0 where its name is no time. */
function timeOf({ backup_id }: OrderedBackup): number {
  const iso = readBackupTime(backup_id)
  try {
    return iso === null ? 0 : Temporal.Instant.from(iso).epochMilliseconds
  } catch {
    return 0
  }
}

/** Those to remove so that `keep` stay: `made`, which was made just now, and the newest. */
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

/** How long after a scheduled backup that failed the next one is tried. */
const RETRY_MS = 3_600_000

interface BackupHistory {
  /** When the last scheduled one succeeded, by the wall clock; milliseconds, null when there was none. */
  readonly succeededAt: number | null
  /** How long ago that was, where this process made it; null where another one did. */
  readonly sinceSuccess: number | null
  /** How long ago this process began the last scheduled one. */
  readonly sinceTry: number | null
}

/** A clock may be set back by so much without a backup too many. */
const AHEAD_MS = 3_600_000

/**
 * Whether a scheduled backup is due now. One that was missed is due at once. What this process did is
 * told by a clock that nobody sets, too: one that is set back delays nothing.
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
  // A time that lies ahead is of a wrong clock, and says nothing.
  return sinceSuccess === null ? succeededAt > now + AHEAD_MS : sinceSuccess >= period
}
