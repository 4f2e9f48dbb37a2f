/** Who leads, and who is there: when a server takes the lease over, and what is known of each member. */
import { z } from 'zod'
import type { ClusterMembership } from '#fleet/state/rules/change-count.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { type NetbootFact, type NetbootRow, standingOf } from './shared-netboot.ts'

export interface LeaseReading {
  /** Random for each leader, and after each lost connection. */
  readonly term: string
  /** Grows with each renewal and each group. */
  readonly beat: number
  /** Empty: it stopped in order, and nobody leads. */
  readonly holder: string
}

/** From the readings so far; null: none, or no answer since. */
export interface LeaseWatch {
  readonly term: string
  readonly beat: number
  /** Of the last reading: milliseconds of a steady clock. */
  readonly lastAt: number
  /** Since the first reading of this beat; of a long gap only a part counts. */
  readonly silentMs: number
}

type TakeReason = 'handed-over' | 'session-ended' | 'silent'

interface LeaseDecision {
  /** Null: it may not be taken. */
  readonly take: TakeReason | null
  readonly watch: LeaseWatch
}

/**
 * `holdsLeaderLock`: the leader's advisory lock is ours, so its session has ended. Taking over is safe
 * then: the fence in each group keeps out a leader that believes otherwise.
 */
export function decideTakeover(
  before: LeaseWatch | null,
  { term, beat, holder }: LeaseReading,
  at: number,
  holdsLeaderLock: boolean,
  { leaseMs, gapMs }: Pick<ClusterTimes, 'leaseMs' | 'gapMs'> = TIMES,
): LeaseDecision {
  const isSame = before !== null && before.term === term && before.beat === beat
  const silentMs = isSame ? before.silentMs + Math.min(at - before.lastAt, gapMs) : 0
  const watch = { term, beat, lastAt: at, silentMs }
  if (holder === '') return { take: 'handed-over', watch }
  if (holdsLeaderLock) return { take: 'session-ended', watch }
  return { take: silentMs >= leaseMs ? 'silent' : null, watch }
}

/** Null: it is not taken. */
export function renderTake({ take, watch }: LeaseDecision): string | null {
  switch (take) {
    case null:
      return null
    case 'handed-over':
      return 'no server led'
    case 'session-ended':
      return 'the session of the server that led has ended'
    case 'silent':
      return `the server that led has not renewed it for ${(watch.silentMs / 1000).toFixed(1)} s`
  }
}

/** The last group that a server knows to be stored. */
export interface Position {
  readonly seq: number
  readonly change: string
}

/** A group whose answer was lost, and the lease's word once it is ours again. */
interface Doubt {
  readonly known: Position
  /** The id that the group was sent with; null: none was under way. */
  readonly sent: string | null
  readonly found: Position
}

/**
 * `older`: acknowledged changes are missing; `foreign`: another server changed something. Either
 * way this server's memory must not be used any more.
 */
export function decideDoubt({
  known,
  sent,
  found,
}: Doubt): 'stored' | 'not-stored' | 'older' | 'foreign' {
  if (found.seq < known.seq) return 'older'
  if (found.seq === known.seq) return found.change === known.change ? 'not-stored' : 'foreign'
  return found.seq === known.seq + 1 && found.change === sent ? 'stored' : 'foreign'
}

// What a server must read before it may lead: nothing, some rows, everything, or nothing because it is another database.

export interface LogEnds {
  readonly cluster: string
  readonly newest: Position
  /** The oldest kept change. */
  readonly oldest: number
  /** The id of the change with the server's number; null: none. */
  readonly atSeq: string | null
}

type CatchUp = 'nothing' | 'changes' | 'everything' | 'other-database' | 'older-database'

/** `membership` null: it has followed no database yet. */
export function decideCatchUp(membership: ClusterMembership | null, ends: LogEnds): CatchUp {
  if (membership === null) return 'everything'
  if (membership.cluster !== ends.cluster) return 'other-database'
  if (membership.seq < 0) return 'everything'
  if (ends.newest.seq < membership.seq) return 'older-database'
  if (ends.atSeq === null) return membership.seq < ends.oldest ? 'everything' : 'older-database'
  // A database that went back and then on has other changes under the same numbers.
  if (ends.atSeq !== membership.change) return 'older-database'
  return ends.newest.seq === membership.seq ? 'nothing' : 'changes'
}

// How long servers that share a database wait for each other and for it; only tests give shorter times.

export const TIMES = {
  /** A leader silent for so long is taken for gone. */
  leaseMs: 5000,
  /**
   * Readings further apart count as this far: this process or the database may have been stopped,
   * and a leader held up by the same must have its time to renew.
   */
  gapMs: 2000,
  /**
   * So long after asking for the lease successfully, a leader answers from memory. Nobody else
   * leads by then: the database ends a silent session after 3 s at the earliest.
   */
  sureMs: 2500,
  /** A request fails after so long; clients give up after 15 s. */
  holdMs: 12_000,
  /** The database gives up on a group's statement. */
  statementMs: 3000,
  /** For a silent database. */
  answerMs: 6000,
} as const

export type ClusterTimes = Readonly<Record<keyof typeof TIMES, number>>

/** FLASHER_TEST_TIMES as JSON; undefined: not set. Longer times are a Fault. */
export function parseTimes(text: string | undefined): ClusterTimes {
  if (text === undefined) return TIMES
  const given = parseJson(text)
  if (given === null || typeof given !== 'object') throw refuse('it is not a JSON object')
  const times: Record<string, number> = { ...TIMES }
  for (const [name, value] of Object.entries<unknown>({ ...given })) {
    const most = times[name]
    if (most === undefined) throw refuse(`there is no ${name}`)
    if (typeof value !== 'number' || !(value >= 100 && value <= most))
      throw refuse(`${name} must be 100 to ${most}`)
    times[name] = value
  }
  return { ...TIMES, ...times }
}

const refuse = (why: string) =>
  new Fault('input-invalid', `FLASHER_TEST_TIMES is for tests alone: ${why}`)

export interface MemberFacts {
  /** As on the settings page, by dotted name; without those that pages saved. */
  readonly settings: Readonly<Record<string, string>>
  readonly backups: string
  readonly netboot: NetbootFact
}

export interface MemberRow {
  readonly id: string
  readonly name: string
  readonly url: string
  readonly release: string
  /** Its newest change; null: none yet. */
  readonly seq: number | null
  /** By the database's clock. */
  readonly silentSeconds: number
  readonly facts: MemberFacts
}

/** Nobody waits for a server after this silence. */
const GONE_SECONDS = 600

/** Servers report every second; one this silent is probably gone. */
const SILENT_SECONDS = 10

export const isSilent = ({ silentSeconds }: Pick<MemberRow, 'silentSeconds'>): boolean =>
  silentSeconds >= SILENT_SECONDS

/** A copy of our state folder may be running: its row is fresh, with another name or address. */
export const mayBeCopy = (
  row: Pick<MemberRow, 'name' | 'url' | 'silentSeconds'>,
  own: Pick<MemberRow, 'name' | 'url'>,
): boolean => !isSilent(row) && (row.name !== own.name || row.url !== own.url)

/** Null: it has no change. */
export const countBehind = ({ seq }: Pick<MemberRow, 'seq'>, newest: number): number | null =>
  seq === null ? null : Math.max(0, newest - seq)

const isGone = ({ silentSeconds }: Pick<MemberRow, 'silentSeconds'>): boolean =>
  silentSeconds >= GONE_SECONDS

/** `led`: the last leader's release. A server of that release waits for nobody. */
export function listWaitedFor(
  members: readonly Pick<MemberRow, 'id' | 'name' | 'release' | 'silentSeconds'>[],
  own: { readonly id: string; readonly release: string },
  led: string,
): readonly string[] {
  if (led === '' || led === own.release) return []
  return members
    .filter((each) => each.id !== own.id && each.release !== own.release && !isGone(each))
    .map(({ name, release }) => `${name} (${release})`)
}

interface SettingDifference {
  readonly name: string
  readonly values: readonly { readonly server: string; readonly value: string }[]
}

export function listDifferences(members: readonly MemberRow[]): readonly SettingDifference[] {
  const present = members.filter((each) => !isGone(each))
  const [first, ...others] = present
  if (first === undefined) return []
  return Object.keys(first.facts.settings).flatMap((name) => {
    // If one omits it, a page has saved it, which counts for all.
    if (!others.every(({ facts }) => Object.hasOwn(facts.settings, name))) return []
    const values = present.map((each) => ({
      server: each.name,
      value: each.facts.settings[name] ?? '',
    }))
    return new Set(values.map(({ value }) => value)).size > 1 ? [{ name, values }] : []
  })
}

export const renderDifference = ({ name, values }: SettingDifference): string =>
  `${name}: ${values.map(({ server, value }) => `${value || 'not set'} (${server})`).join(', ')}`

/** `newest`: the newest change; `netboot`: null without a row. */
export function renderMember(
  member: MemberRow,
  newest: number,
  netboot: NetbootRow | null,
): string {
  const { name, url, release, silentSeconds, facts } = member
  const seen = isSilent(member) ? `silent for ${silentSeconds} s` : 'here'
  const behind = describeBehind(member, newest)
  const backups = facts.backups === '' ? '' : `; its backups: ${facts.backups}`
  const live = netboot === null ? '' : `; ${describeNetboot(facts.netboot, netboot)}`
  return `${name}${url === '' ? '' : ` (${url})`}, release ${release}, ${seen}, ${behind}${live}${backups}`
}

const describeNetboot = (fact: NetbootFact, row: NetbootRow): string =>
  ({
    whole: 'has the netboot files',
    copying: 'copies the netboot files',
    troubled: `lacks netboot files: ${fact.trouble}`,
  })[standingOf(fact, row)]

const describeBehind = (member: MemberRow, newest: number): string => {
  const behind = countBehind(member, newest)
  if (behind === null) return 'has no change yet'
  return behind === 0 ? 'has every change' : `is ${behind} changes behind`
}

const NO_FACTS: MemberFacts = { settings: {}, backups: '', netboot: { version: '', trouble: '' } }
const FactsSchema = z.object({
  settings: z.record(z.string(), z.string()),
  backups: z.string(),
  netboot: z.object({ version: z.string(), trouble: z.string() }).default(NO_FACTS.netboot),
})

/** Another release may write them differently. */
export const parseFacts = (text: string): MemberFacts =>
  FactsSchema.safeParse(parseJson(text)).data ?? NO_FACTS

// What becomes of a file that every server has and a row of the database has as well.

export const SharedFileNameSchema = z.enum(['session-secret', 'admin-password', 'power', 'notify'])
export type SharedFileName = z.infer<typeof SharedFileNameSchema>

export interface SharedFileNote {
  readonly version: string
  /** SHA-256 of the content, hexadecimal. */
  readonly digest: string
}

interface SharedFileState {
  readonly name: SharedFileName
  /** Null: they were never the same. */
  readonly noted: SharedFileNote | null
  /** The file's digest; null: no file. */
  readonly local: string | null
  /** The row's version; null: no row. */
  readonly stored: string | null
}

/** `take`: the row replaces the file; `bring`: the reverse; `renew`: a new one is made. */
type SharedFileDecision = 'nothing' | 'take' | 'bring' | 'renew'

/**
 * A joining server takes what the others have. A file changed here is meant, unless the row
 * changed, too. A missing key of sessions is made anew, which ends all sessions: people delete it
 * for that.
 */
export function decideSharedFile(state: SharedFileState): SharedFileDecision {
  const { noted, local, stored } = state
  if (local === null) return decideMissing(state)
  if (stored === null) return 'bring'
  if (noted === null) return 'take'
  if (noted.version !== stored) return 'take'
  return noted.digest === local ? 'nothing' : 'bring'
}

function decideMissing({ name, noted, stored }: SharedFileState): SharedFileDecision {
  const isFirst = stored !== null && noted === null
  if (name === 'session-secret' && !isFirst) return 'renew'
  return stored === null ? 'nothing' : 'take'
}
