/** Locks the state directory for one server, and says who holds a file; the kernel releases the lock when its holder dies. */
import { readdirSync, readFileSync, readlinkSync, realpathSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { touchFile } from './ownership.ts'
import { explainSqlite } from './sqlite.ts'

/**
 * SQLite's own lock on an empty file beside the database; null: held by another process, or another
 * part of this one. Throws a Fault if the file cannot be opened.
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

/** Null: the kernel does not say. */
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

/** `1234 (sqlite3)`. Other users' processes show only to root: an empty list proves nothing. */
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

/** Processes end meanwhile, and some may not be looked at. */
function attempt<Value>(look: () => Value, otherwise: Value): Value {
  try {
    return look()
  } catch {
    return otherwise
  }
}
