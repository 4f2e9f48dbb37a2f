/** The journal of recorded events: what happened, to what, by whom ("Recorded system events"). */
import {
  type RecordedEvent,
  canFlood,
  FLOOD_WINDOW_MS,
  isOver,
  nextWindow,
  type FloodWindow,
} from './rules/event-table.ts'
import { printable } from '#kit/foundation/printable.ts'
import type { Database } from './database.ts'
import type { Changes } from '#kit/host/changes.ts'
import {
  aboutSeen,
  insertEvent,
  listEvents,
  UNACKNOWLEDGED,
  type EventCondition,
  type NewEvent,
  condition,
  flag,
  renderWhere,
} from './event-rows.ts'
import { HOUR_MS, pruneRows, type Retention } from './pruning.ts'
import { readNumber } from './sqlite.ts'

/** `token:<name>@<person>`: a person's token. */
type Actor = 'operator' | 'system' | 'pxe-client' | `token:${string}` | `person:${string}`

export interface Requester {
  readonly actor: Actor
  /** Null: not over a network. */
  readonly ip: string | null
}

export const SYSTEM: Requester = { actor: 'system', ip: null }

const SUBJECT_KINDS = [
  'machine',
  'batch',
  'catalog',
  'netboot',
  'settings',
  'auth',
  'backup',
  'system',
] as const

interface Named {
  readonly subject_kind: (typeof SUBJECT_KINDS)[number]
  readonly actor: Actor
}
export type JournalEntry = Omit<NewEvent, 'ts' | keyof Named> & Named
export type JournalEvent = Omit<RecordedEvent, keyof Named> & Named

export interface EventFilter extends EventCondition {
  /** 1 to 500. */
  readonly limit: number
}

export type Journal = ReturnType<typeof createJournal>

interface JournalOptions {
  readonly changes?: Changes
  retention?(): Retention
  now?(): Date
}

const KEPT: Retention = { count: 100_000, days: 180 }
const TABLE = { table: 'events', number: 'id', time: 'ts' }
/** Besides each hour. */
const PRUNE_EVERY = 1000

/** Prunes old events by `retention`, every hour and after many new ones. */
export function createJournal(database: Database, options: JournalOptions = {}) {
  const now = options.now ?? (() => new Date())
  const floods = createFloods<JournalEntry>(() => now().getTime(), recordCounted)
  let recorded = 0
  let pruning: Promise<number> | null = null

  async function store(notes: readonly JournalEntry[]) {
    if (notes.length === 0) return
    const ts = now().toISOString()
    await database.write((sql) => {
      for (const note of notes) insertEvent(sql, { ...limit(note), ts })
    })
    options.changes?.announce({ topic: 'event' })
    recorded += notes.length
    if (recorded < PRUNE_EVERY) return
    recorded = 0
    // Best effort: tried again each hour.
    prune().catch(() => undefined)
  }

  function recordCounted(counted: readonly CountedEvent<JournalEntry>[]) {
    // Best effort: the first events of the flood are recorded.
    store(counted.map(summarize)).catch(() => undefined)
  }

  /** Parallel calls share one run. */
  function prune(): Promise<number> {
    const kept = { ...KEPT, ...options.retention?.() }
    pruning ??= pruneRows(database, TABLE, kept, now().getTime()).finally(() => {
      pruning = null
    })
    return pruning
  }
  database.repeat(HOUR_MS, prune)
  database.beforeClosing(() => store(floods.drain().map(summarize)))

  const isNoted = (note: JournalEntry) => {
    const { kind, actor, subject_id, source_ip } = note
    return !canFlood(kind, actor) || floods.admit(kind, subject_id ?? source_ip ?? '', note)
  }

  /** All in one write. Null: a flood, only counted. */
  function recordOrCount(notes: readonly JournalEntry[]): Promise<void> | null {
    const noted = notes.filter(isNoted)
    return noted.length === 0 ? null : store(noted)
  }

  return {
    recordOrCount,
    /** On disk before it resolves, except floods, which may only be counted. */
    async record(note: JournalEntry): Promise<void> {
      await recordOrCount([note])
    },
    list: async (filter: EventFilter): Promise<readonly JournalEvent[]> =>
      listEvents(database.sql, filter, Math.min(Math.max(1, Math.trunc(filter.limit)), 500)).map(
        readNames,
      ),
    ...createAlarms(database, options.changes),
    prune,
  }
}

const createAlarms = (database: Database, changes: Changes | undefined) => ({
  /** Unacknowledged failures, suspicions and losses; `among`: as in the filter. */
  async countAlarms(among?: readonly string[]): Promise<number> {
    const { text, values } = renderWhere([...flag(UNACKNOWLEDGED, true), ...aboutSeen(among)])
    return readNumber(database.sql.get(`SELECT count(*) AS n FROM events ${text}`, ...values), 'n')
  },
  /** Returns how many exist, already changed ones included; `among`: as in the filter. */
  async acknowledge(
    ids: readonly number[],
    acknowledged: boolean,
    among?: readonly string[],
  ): Promise<number> {
    const value = acknowledged ? 1 : 0
    const changed = await database.write((sql) =>
      ids.reduce((sum, id) => {
        const { text, values } = renderWhere([...condition('id = ?', id), ...aboutSeen(among)])
        return sum + sql.run(`UPDATE events SET acknowledged = ? ${text}`, value, ...values)
      }, 0),
    )
    if (changed > 0) changes?.announce({ topic: 'event' })
    return changed
  },
})

const MAX_SUMMARY = 500

/** A last limit, and escapes texts such as serials, which are stored as they are. */
const limit = (note: JournalEntry): JournalEntry => ({
  ...note,
  summary: printable(note.summary).slice(0, MAX_SUMMARY),
})

const summarize = ({ note, count }: CountedEvent<JournalEntry>): JournalEntry => ({
  ...note,
  summary: `${note.summary.slice(0, MAX_SUMMARY - 40)} (and ${count} more like it)`,
  details: { ...note.details, repeated: count },
})

/** Only the journal writes this table. */
const readNames = (row: RecordedEvent): JournalEvent => ({
  ...row,
  subject_kind: SUBJECT_KINDS.find((kind) => kind === row.subject_kind) ?? 'system',
  actor: readActor(row.actor),
})

function readActor(actor: string): Actor {
  if (actor === 'operator' || actor === 'pxe-client') return actor
  if (actor.startsWith('person:')) return `person:${actor.slice(7)}`
  return actor.startsWith('token:') ? `token:${actor.slice(6)}` : 'system'
}

/** Events about these machines, and about none. */
export const createSeenJournal = (
  journal: Journal,
  listSeen: () => readonly string[],
): Journal => ({
  ...journal,
  // A batch has a line only if all its machines are seen, so no line stands for others here.
  list: (filter) => journal.list({ ...filter, folded: undefined, among: listSeen() }),
  countAlarms: () => journal.countAlarms(listSeen()),
  acknowledge: (ids, acknowledged) => journal.acknowledge(ids, acknowledged, listSeen()),
})

// Counts events that arrive too fast, and records their number at the end of each window.

interface CountedEvent<Note> {
  readonly note: Note
  readonly count: number
}

/** Beyond it, further subjects of a kind count as one. */
const MAX_KEYS = 4096

function createFloods<Note>(
  now: () => number,
  onCounted: (counted: readonly CountedEvent<Note>[]) => void,
) {
  /** By kind, then subject: a joint key would be made and hashed for each event. */
  const kinds = new Map<string, Map<string, { window: FloodWindow; note: Note }>>()
  let size = 0
  let timer: NodeJS.Timeout | null = null

  function take(which: (window: FloodWindow) => boolean): readonly CountedEvent<Note>[] {
    const counted: CountedEvent<Note>[] = []
    for (const subjects of kinds.values()) {
      for (const [subject, { window, note }] of subjects) {
        if (!which(window)) continue
        subjects.delete(subject)
        size -= 1
        if (window.counted > 0) counted.push({ note, count: window.counted })
      }
    }
    return counted
  }

  function sweep() {
    timer = null
    const at = now()
    const counted = take((window) => isOver(window, at))
    if (counted.length > 0) onCounted(counted)
    arm()
  }
  function arm() {
    if (size > 0) timer ??= setTimeout(sweep, FLOOD_WINDOW_MS).unref()
  }

  return {
    /** False: it was counted instead. */
    admit(kind: string, subject: string, note: Note): boolean {
      const subjects = kinds.getOrInsertComputed(kind, () => new Map())
      const key = subjects.has(subject) || size < MAX_KEYS ? subject : '*'
      const before = subjects.get(key)
      const at = now()
      if (before === undefined) size += 1
      else if (before.window.counted > 0 && isOver(before.window, at)) {
        onCounted([{ note: before.note, count: before.window.counted }])
      }
      const { note: admitted, window } = nextWindow(before?.window ?? null, at)
      subjects.set(key, { window, note })
      arm()
      return admitted
    },
    drain(): readonly CountedEvent<Note>[] {
      if (timer !== null) clearTimeout(timer)
      timer = null
      return take(() => true)
    },
  }
}
