/** Sessions that were logged out before they expired: a list on disk, pruned when it grows long. */
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { z } from 'zod'
import { renderError } from '../../foundation/fault.ts'
import { parseJson } from '../../foundation/json-reader.ts'
import { SESSION_SECONDS } from '../../foundation/session-cookie.ts'
import { replaceFile } from '../../host/atomic-file.ts'
import { inTurnOf } from '../../host/file-turns.ts'
import { identify } from './secret.ts'

export type SignedOut = Awaited<ReturnType<typeof createSignedOut>>

interface SignedOutDependencies {
  /** `<state_dir>/signed-out.json`. */
  readonly path: string
  now(): Date
  readonly log: { warn(message: string): void }
  /** Awaited after each end of a session, for whoever else must know of it. */
  share?(): Promise<void>
  /** This is called with the words of the log each time that the file is found damaged. */
  onDamage?(message: string): void
}

/** Nobody has as many sessions that log out in a week; past this number the oldest go first. */
const MAX = 10_000
/** So many stay whatever the clock says: it may be wrong, and a session must not come back. */
const KEPT = 1000
/** Begins the entry of all sessions that were issued up to a time, in seconds: somebody ended them. */
const ALL = '*:'
/** The same, where the list was lost: nobody knows which of them had been logged out. */
const LOST = '!:'
/**
 * Begins the entry of all sessions of one person that were issued up to a time, and how often they were
 * ended: `@<id>:<second>:<count>`.
 */
const OF_PERSON = '@'
interface PersonEnd {
  /** Whatever was issued to the person up to this second has ended. */
  readonly second: number
  /** How often their sessions were ended: the clock may have been wrong at one of those times. */
  readonly count: number
}

const NEVER: PersonEnd = { second: -Infinity, count: 0 }

/**
 * Opens the list. Server and cache share the key of sessions, and so this file: each takes up what
 * the other wrote, at the next question. A look at the file's times is microseconds; the signature
 * costs more. Where there was no sound list, there is one when it resolves.
 */
export async function createSignedOut(parts: SignedOutDependencies) {
  const list = createList(parts)
  list.takeUp()
  await list.stored()
  return {
    has(id: string): boolean {
      list.takeUp()
      return list.ends.has(id)
    },
    /** Seconds of the epoch: every session that was issued up to then has ended. -Infinity: none has. */
    endedUpTo(): number {
      list.takeUp()
      return list.last()
    },
    /** The last end of all sessions of one person. */
    endOf(person: string): PersonEnd {
      list.takeUp()
      return list.people.get(person) ?? NEVER
    },
    /** How often all sessions were ended: one that began before the last time has ended. */
    countEndings(): number {
      list.takeUp()
      return [...list.ends.keys()].filter((id) => id.startsWith(ALL)).length
    },
    /** Counts at once; on disk when it resolves. `until`: when the session would end by itself. */
    async add(id: string, until: Date): Promise<void> {
      list.ends.set(id, until.getTime())
      await list.store()
      await parts.share?.()
    },
    /** All of one person, up to this second and to those that began after the last end of theirs. */
    async addPerson(id: string): Promise<void> {
      list.takeUp()
      const present = Math.floor(parts.now().getTime() / 1000)
      const { second, count } = list.people.get(id) ?? NEVER
      list.endPerson(id, { second: Math.max(present, second + 1), count: count + 1 })
      await list.store()
      await parts.share?.()
    },
    /** All that were issued up to that second, in seconds of the epoch. */
    async addAll(issuedUpTo: number): Promise<void> {
      list.endUpTo(ALL, issuedUpTo)
      await list.store()
      await parts.share?.()
    },
  }
}

/** What is known of the file, and its way there. */
function createList({ path, now, log, onDamage }: SignedOutDependencies) {
  /** When each would end by itself, in milliseconds. */
  const ends = new Map<string, number>()
  /** The last end of each person, by id. */
  const people = new Map<string, PersonEnd>()
  /** Whatever was issued up to this second has ended. */
  let last = -Infinity
  /** Undefined: at the start. */
  let seen: string | null | undefined
  let writing: Promise<void> = Promise.resolve()

  function takeUp() {
    const present = identify(path)
    if (present === seen) return
    const isFirst = seen === undefined
    seen = present
    const found = present === null ? null : read(path)
    for (const [id, end] of found ?? []) {
      ends.set(id, end)
      last = Math.max(last, boundOf(id))
      rememberPerson(people, id)
    }
    if (found !== null) return
    if (present !== null) report()
    // While it runs, it knows what the file said; a start without the file knows nothing.
    if (isFirst) endUpTo(LOST, Math.floor(now().getTime() / 1000))
    void store()
  }

  function report() {
    const message = `${basename(path)} is damaged and is written anew: sessions end that may have been logged out before. Log in again.`
    log.warn(message)
    onDamage?.(message)
  }

  function endUpTo(kind: typeof ALL | typeof LOST, second: number) {
    last = Math.max(last, second)
    ends.set(`${kind}${second}`, second * 1000)
  }

  function endPerson(id: string, { second, count }: PersonEnd) {
    const entry = `${OF_PERSON}${id}:${second}:${count}`
    // An older entry of theirs says nothing any more.
    for (const each of ends.keys()) if (each.startsWith(`${OF_PERSON}${id}:`)) ends.delete(each)
    ends.set(entry, (second + SESSION_SECONDS) * 1000)
    rememberPerson(people, entry)
  }

  async function write() {
    takeUp()
    const at = now().getTime()
    for (const [id, end] of ends) {
      if (boundOf(id) > -Infinity || id.startsWith(OF_PERSON)) continue
      if (ends.size > MAX || (ends.size > KEPT && end <= at)) ends.delete(id)
    }
    await replaceFile(path, `${JSON.stringify(Object.fromEntries(ends))}\n`, 0o600)
  }

  /** Who logs out is logged out, whatever becomes of the file. */
  function store(): Promise<void> {
    writing = writing
      .then(() => inTurnOf(path, write))
      .catch((thrown: unknown) => {
        log.warn(`a logged-out session is forgotten at the next start: ${renderError(thrown)}`)
      })
    return writing
  }

  const stored = () => writing
  return { ends, people, takeUp, store, endUpTo, endPerson, last: () => last, stored }
}

const PERSON_ENTRY = /^@(.+):(\d+):(\d+)$/

function rememberPerson(people: Map<string, PersonEnd>, entry: string): void {
  const [, id = '', second = '', count = ''] = PERSON_ENTRY.exec(entry) ?? []
  if (id === '') return
  const known = people.get(id) ?? NEVER
  people.set(id, {
    second: Math.max(known.second, Number(second)),
    count: Math.max(known.count, Number(count)),
  })
}

/** The last second that an entry of many sessions is about; -Infinity: it is one session's. */
const boundOf = (id: string): number =>
  id.startsWith(ALL) || id.startsWith(LOST) ? Number(id.slice(ALL.length)) || 0 : -Infinity

/** Null: it is no such list, cannot be read, or is gone. */
function read(path: string): readonly (readonly [string, number])[] | null {
  try {
    const found = z.record(z.string(), z.number()).safeParse(parseJson(readFileSync(path, 'utf8')))
    return found.success ? Object.entries(found.data).slice(-MAX) : null
  } catch {
    return null
  }
}
