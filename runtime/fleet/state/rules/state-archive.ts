/** Names archived databases, and decides which of them are kept ("Database upgrade"). */

const renderStamp = (iso: string) => `${iso.slice(0, 19).replace(/[-:]/g, '')}Z`

/** `state.db.<from>.<UTC>.bak`; `attempt` above 0 if that is taken. */
export function renderArchiveName(file: string, from: string, iso: string, attempt = 0): string {
  const safe = from.replace(/[^A-Za-z0-9._+-]/g, '_').slice(0, 64) || 'unknown'
  return `${file}.${safe}.${renderStamp(iso)}.${attempt === 0 ? '' : `${attempt}.`}bak`
}

const TAIL = /\.(\d{8}T\d{6}Z)\.(?:(\d+)\.)?bak$/

interface Kept {
  readonly keep: number
  /** Just made: it stays, whatever the clock says. */
  readonly made: string | null
  /** ISO time. A later archive is of a wrong clock, and counts as the oldest. */
  readonly now: string
}

export function planArchivePruning(
  names: readonly string[],
  file: string,
  { keep, made, now }: Kept,
): readonly string[] {
  const present = renderStamp(now)
  const keyOf = (name: string, stamp: string, attempt: string) => {
    const rank = name === made ? '2' : stamp > present ? '0' : '1'
    return `${rank}.${stamp}.${attempt.padStart(6, '0')}`
  }
  const archives = names.flatMap((name) => {
    const tail = name.startsWith(`${file}.`) ? TAIL.exec(name) : null
    return tail === null ? [] : [{ name, at: keyOf(name, tail[1] ?? '', tail[2] ?? '0') }]
  })
  const newestFirst = archives.toSorted((a, b) => (a.at < b.at ? 1 : -1))
  return newestFirst.slice(Math.max(0, keep)).map(({ name }) => name)
}
