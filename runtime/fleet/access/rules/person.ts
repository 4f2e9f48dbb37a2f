/** A person who logs in with a name: what their name may be, and what is kept of them. */
import { z } from 'zod'
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'
import { ROLES } from '../../../kit/web/answers/rules/rights.ts'

export const MAX_PEOPLE = 500

const NAME = /^[a-z0-9][a-z0-9._@+-]{0,63}$/
/** What events call somebody else. */
const RESERVED: ReadonlySet<string> = new Set(['administrator', 'operator', 'system', 'pxe-client'])

export type NameRefusal = 'name-shape' | 'name-reserved'

/** Parses the name of a person; capitals are the same name. */
export function parsePersonName(text: string): Result<string, NameRefusal> {
  const name = text.trim().toLowerCase()
  if (!NAME.test(name)) return refuse('name-shape')
  return RESERVED.has(name) ? refuse('name-reserved') : accept(name)
}

/** What is kept of a person; what cannot be read of the role is none, and of the scope lets them see nothing. */
export const PersonRecordSchema = z.object({
  name: z.string(),
  role: z.enum(ROLES).nullable().catch(null),
  /** The labels of their scope, any of which a machine has that they see; null: they have none. */
  labels: z.array(z.string()).readonly().nullable().default(null).catch([]),
  /** ISO time. */
  created_at: z.string(),
  /** Who says who they are and which role they have; null: they have a password here. */
  provider: z
    .object({ issuer: z.string(), subject: z.string() })
    .readonly()
    .nullable()
    .default(null),
  /** When they last logged in, an ISO time; null: never, or with a password before that was noted. */
  seen_at: z.string().nullable().default(null),
  /** Since when they may not log in, an ISO time; null: they may. */
  blocked_at: z.string().nullable().default(null),
})

/** What is kept of the sessions of somebody, in the row that is theirs. */
export const OwnSessionsSchema = z.object({
  /** What a session names that holds; empty: none does. */
  mark: z.string().default(''),
  /** Those that were ended one by one, with when they would end by themselves, in seconds of the epoch. */
  ended: z.record(z.string(), z.number()).default({}),
})
export type OwnSessions = Readonly<z.infer<typeof OwnSessionsSchema>>

export interface Person extends Readonly<z.infer<typeof PersonRecordSchema>> {
  /** Stays theirs, whoever has the name later. */
  readonly id: string
}

/** What a person may do, and with which machines. */
export type PersonRights = Pick<Person, 'role' | 'labels'>

/** A person as they are added. */
export type NewPerson = Pick<Person, 'name' | 'role' | 'labels'> & Partial<Pick<Person, 'provider'>>
