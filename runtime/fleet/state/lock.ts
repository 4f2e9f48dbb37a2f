/** Locks the state directory for one server, and says who holds a file; the kernel releases the lock when its holder dies. */
import { readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { touchFile } from './ownership.ts'
import { explainSqlite } from './sqlite.ts'

/**
 * SQLite's own file lock on an empty file beside the database; null when another process (or
 * another part of this one) holds it. Throws a Fault where the file cannot be opened.
 */
export function lockState(path: string): Disposable | null {
  touchFile(path)
  const lock = new DatabaseSync(path)
  try {
    lock.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (thrown) {
    lock.close()
    if (thrown instanceof Error && 'errcode' in thrown && thrown.errcode === 5) return null
    throw explainSqlite(thrown, path)
  }
  return lock
}

/** Null when the kernel does not report it. */
export function findHolder(path: string): number | null {
  try {
    const { ino } = statSync(path)
    const lines = readFileSync('/proc/locks', 'utf8').split('\n')
    const line = lines.find((text) => text.includes(' WRITE ') && text.includes(`:${ino} `))
    const pid = Number(line?.trim().split(/\s+/)[4])
    return Number.isInteger(pid) && pid > 0 ? pid : null
  } catch {
    // Only the message gets poorer.
    return null
  }
}

/**
 * Other processes that have a file open: `1234 (sqlite3)`. Those of other users show only to root, so
 * that an empty list proves nothing.
 */
export function listFileUsers(path: string): readonly string[] {
  const real = attempt(() => realpathSync(path), path)
  const pids = attempt(() => readdirSync('/proc'), []).filter((name) => /^\d+$/.test(name))
  return pids
    .filter((pid) => Number(pid) !== process.pid && hasOpen(pid, real))
    .map((pid) => {
      const name = attempt(() => readFileSync(`/proc/${pid}/comm`, 'utf8').trim(), '')
      return name === '' ? pid : `${pid} (${name})`
    })
}

const hasOpen = (pid: string, path: string): boolean =>
  attempt(() => readdirSync(`/proc/${pid}/fd`), []).some(
    (fd) => attempt(() => readlinkSync(`/proc/${pid}/fd/${fd}`), '') === path,
  )

/** Processes end while we look, and some are not ours to look at. */
function attempt<Value>(look: () => Value, otherwise: Value): Value {
  try {
    return look()
  } catch {
    return otherwise
  }
}
