/** Locks the state directory for one server; the kernel releases the lock when its holder dies. */
import { readFileSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { touchFile } from './ownership.ts'
import { explainSqlite } from './sqlite.ts'

/**
 * SQLite's own file lock on an empty file beside the database; null when another process (or another
 * part of this one) holds it.
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

/** The process that holds it; null when the kernel does not report it. */
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
