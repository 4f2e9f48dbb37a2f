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

/** Also keeps everything out of paths that is not an id. */
export const isBackupId = (text: string): boolean => ID.test(text)

/** ISO time of its beginning; null when it is no id. */
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

/** Those to remove so that the newest `keep` stay. */
export const planBackupPruning = (ids: readonly string[], keep: number): readonly string[] =>
  sortBackups(ids).slice(Math.max(1, Math.trunc(keep)))

const DAY_MS = 86_400_000
const PERIOD_MS = { daily: DAY_MS, weekly: 7 * DAY_MS, manual: null } as const satisfies Record<
  BackupCadence,
  number | null
>

/** How long after a scheduled backup that failed the next one is tried. */
const RETRY_MS = 3_600_000

interface BackupHistory {
  /** The last scheduled one that succeeded; milliseconds, null when there was none. */
  readonly succeededAt: number | null
  /** The last scheduled one that was begun by this process. */
  readonly triedAt: number | null
}

/** Whether a scheduled backup is due now. One that was missed is due at once. */
export function isBackupDue(
  { enabled, cadence }: BackupSettings,
  { succeededAt, triedAt }: BackupHistory,
  now: number,
): boolean {
  const period = PERIOD_MS[cadence]
  if (!enabled || period === null) return false
  if (triedAt !== null && triedAt <= now && now - triedAt < RETRY_MS) return false
  // A time in the future is a clock that was set back: it must not stop backups for years.
  return succeededAt === null || succeededAt > now + DAY_MS || now - succeededAt >= period
}
