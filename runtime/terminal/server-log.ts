/** What a server says while it runs: one safe line each, with its time, or its rank for the journal. */
import { printable } from '../core/printable.ts'
import type { Environment } from '../services/shell.ts'
import type { Output } from './look.ts'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export type ServerLog = Readonly<Record<LogLevel, (message: string) => void>>

export interface ServerLogParts {
  readonly stderr: Output
  readonly env: Environment
  /** What is said at least; read for each line. */
  level(): LogLevel
  now(): Date
}

/** As systemd's journal and syslog count: smaller is worse. */
const RANK: Readonly<Record<LogLevel, number>> = { debug: 7, info: 6, warn: 4, error: 3 }

export function createServerLog({ stderr, env, level, now }: ServerLogParts): ServerLog {
  // The journal knows the time itself, and reads the rank.
  const isJournal = (env['JOURNAL_STREAM'] ?? '') !== ''
  const say = (rank: LogLevel, message: string) => {
    if (RANK[rank] > RANK[level()]) return
    const start = isJournal ? `<${RANK[rank]}>` : `${now().toISOString()} ${rank.padEnd(5)} `
    stderr.write(`${start}${printable(message)}\n`)
  }
  return {
    debug: (message) => say('debug', message),
    info: (message) => say('info', message),
    warn: (message) => say('warn', message),
    error: (message) => say('error', message),
  }
}
