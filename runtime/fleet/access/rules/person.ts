/** A person who logs in with a name: what their name may be, and what is kept of them. */
import { z } from 'zod'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { ROLES } from '#kit/web/answers/rules/rights.ts'
import { LabelSchema } from '#fleet/machine/rules/label.ts'

export const MAX_PEOPLE = 500

const NAME = /^[a-z0-9][a-z0-9._@+-]{0,63}$/
const RESERVED: ReadonlySet<string> = new Set(['administrator', 'operator', 'system', 'pxe-client'])

export type NameRefusal = 'name-shape' | 'name-reserved'

export function parsePersonName(text: string): Result<string, NameRefusal> {
  const name = text.trim().toLowerCase()
  if (!NAME.test(name)) return refuse('name-shape')
  return RESERVED.has(name) ? refuse('name-reserved') : accept(name)
}

/** An unreadable role becomes none; an unreadable scope contains no machine. */
export const PersonRecordSchema = z.object({
  name: z.string(),
  role: z.enum(ROLES).nullable().catch(null),
  /** A machine is in the scope if it has any of these labels; null: no scope. */
  labels: z.array(z.string()).readonly().nullable().default(null).catch([]),
  created_at: z.string(),
  /** The provider that decides who they are and their role; null: they have a password here. */
  provider: z
    .object({ issuer: z.string(), subject: z.string() })
    .readonly()
    .nullable()
    .default(null),
  /** ISO time of the last login; null: never, or not recorded. */
  seen_at: z.string().nullable().default(null),
  /** ISO time since which they may not log in; null: they may. */
  blocked_at: z.string().nullable().default(null),
})

export const OwnSessionsSchema = z.object({
  /** Valid sessions name this mark; empty: no session is valid. */
  mark: z.string().default(''),
  /** Sessions ended one by one, with their natural end in seconds of the epoch. */
  ended: z.record(z.string(), z.number()).default({}),
})
export type OwnSessions = Readonly<z.infer<typeof OwnSessionsSchema>>

export interface Person extends Readonly<z.infer<typeof PersonRecordSchema>> {
  readonly id: string
}

export type PersonRights = Pick<Person, 'role' | 'labels'>

export type NewPerson = Pick<Person, 'name' | 'role' | 'labels'> & Partial<Pick<Person, 'provider'>>

// The scope of a person: the labels of the machines that they see and change.

/** As JSON: the labels are part of the session, which has at most 768 characters. */
export const MAX_SCOPE_CHARACTERS = 256

export type ScopeRefusal = 'scope-label' | 'scope-long'

/** Trims and deduplicates. A scope without labels contains no machine. */
export function parseScope(given: readonly string[]): Result<readonly string[], ScopeRefusal> {
  const labels = [...new Set(given.map((label) => label.trim()))].toSorted()
  if (JSON.stringify(labels).length > MAX_SCOPE_CHARACTERS) return refuse('scope-long')
  const isFine = labels.every((label) => LabelSchema.safeParse(label).success)
  return isFine ? accept(labels) : refuse('scope-label')
}

// Decides whether the administrator may log in with the password alone, beside people with names.

export type NamelessLogin = 'always' | 'off'

interface OtherWays {
  /** People who administrate and can log in now (own password, or a provider that answers). */
  readonly administrators: number
}

export function allowsNamelessLogin(wanted: NamelessLogin, { administrators }: OtherWays): boolean {
  return wanted === 'always' || administrators === 0
}
