/** The servers that share a database: who still counts, who is waited for, and where their settings differ. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { standingOf, type NetbootFact, type NetbootRow } from './shared-netboot.ts'

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
