/** Counts changes to machines in the database, and repeats the count in a file beside it (docs/decisions/0032). */
import { randomUUID } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import {
  decideStateDoubt,
  followCounts,
  parseChangeCount,
  renderChangeCount,
  type ChangeCount,
  type StateDoubt,
} from './rules/change-count.ts'
import { ifMissing } from '#kit/foundation/system-error.ts'
import { replaceFile } from '#kit/host/atomic-file.ts'
import { createLaggedWrites } from '#kit/host/lagged-writes.ts'

interface CountSql {
  get(text: string): Readonly<Record<string, unknown>> | null
  run(text: string, ...values: readonly (string | number)[]): number
}

/** The file may lag this much: a restored copy is older than that. */
const LAG_MS = 1000
/** Not `state.db-…`: a pattern that copies the database must not take the count along. */
const FILE = 'changes.json'

interface CounterDependencies {
  /** The open database; another one may take its place. */
  current(): CountSql
  /** Gives a file that root has made to the server's user. */
  adopt(file: string): void
  /** A visitor beside the server counts, and leaves the file to the server. */
  readonly isOwner: boolean
}

export async function openChangeCounter(
  opened: CountSql & { readonly path: string },
  { current, adopt, isOwner }: CounterDependencies,
) {
  const file = join(dirname(opened.path), FILE)
  const text = await readFile(file, 'utf8').catch(ifMissing(null))
  let beside = text === null ? null : parseChangeCount(text)
  const doubt = isOwner ? decideDoubt(readCount(opened), text, beside) : null
  let isChanged = false

  const lagged = createLaggedWrites<'count', object>(LAG_MS, async () => {
    const present = readCount(current())
    if (!isOwner || present === null || isSame(present, beside)) return
    await replaceFile(file, renderChangeCount(present))
    adopt(file)
    beside = present
  })

  /** A new object each time: notes during a write wait for the next one. */
  const countLater = () => lagged.note('count', {})

  /**
   * The file comes first, with 0: otherwise a start cut off in between would be doubted. Best
   * effort: without it the next start arms nothing, and says so.
   */
  function begin(): void {
    const begun = { id: randomUUID(), count: 0 }
    try {
      writeFileSync(file, renderChangeCount(begun), { flush: true })
      adopt(file)
      beside = begun
    } catch {
      beside = null
    }
  }

  /** The database counts as the newest from here on, also by a visitor's first change. */
  function trust(sql: CountSql): void {
    if (beside === null) begin()
    const { id, count } = followCounts(readCount(sql), beside, randomUUID)
    sql.run('DELETE FROM change_count')
    sql.run('INSERT INTO change_count (id, count) VALUES (?, ?)', id, count)
    countLater()
  }

  return {
    /** Why orders may have been carried out since; null: they were not. */
    doubt,
    trust,
    count(): void {
      isChanged = true
    },
    /** The last statement of a transaction that changed records. */
    finish(sql: CountSql): void {
      if (!isChanged) return
      isChanged = false
      if (sql.run('UPDATE change_count SET count = count + 1') === 0) trust(sql)
      countLater()
    },
    /** Best effort: a file that lags only hides copies of the last moments. */
    flush: (): Promise<void> => lagged.flush().catch(() => undefined),
  }
}

/** An unreadable file counts as missing, which arms nothing. */
const decideDoubt = (
  inside: ChangeCount | null,
  text: string | null,
  beside: ChangeCount | null,
): StateDoubt | null =>
  text !== null && beside === null ? 'missing' : decideStateDoubt(inside, beside)

function readCount(sql: CountSql): ChangeCount | null {
  const row = sql.get('SELECT id, count FROM change_count')
  return row === null ? null : parseChangeCount(JSON.stringify(row))
}

const isSame = (a: ChangeCount, b: ChangeCount | null): boolean =>
  b !== null && a.id === b.id && a.count === b.count

export const renderDoubt = (path: string, doubt: StateDoubt): string => {
  const [name, file] = [basename(path), FILE]
  switch (doubt) {
    case 'missing':
      return `${name} is a copy, or ${file} beside it was removed or damaged`
    case 'foreign':
      return `${name} belongs to another state directory than ${file} beside it`
    case 'older':
      return `${name} is older than ${file} beside it says`
  }
}
