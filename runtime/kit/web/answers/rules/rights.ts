/** What roles and tokens may do: the one place that decides whether somebody passes. */
/** The rights of a token; `admin` includes the others. */
export const SCOPES = ['read', 'machines', 'flash', 'power', 'admin'] as const
export type Scope = (typeof SCOPES)[number]

export const ROLES = ['look', 'operate', 'administrate'] as const
export type Role = (typeof ROLES)[number]

const GRANTED: Readonly<Record<Role, readonly Scope[]>> = {
  look: ['read'],
  operate: ['read', 'machines', 'flash', 'power'],
  administrate: SCOPES,
}

/** Null, a person without a role: nothing. */
export const scopesOf = (role: Role | null): readonly Scope[] =>
  role === null ? [] : GRANTED[role]

export const permits = (scopes: readonly Scope[], wanted: Scope): boolean =>
  scopes.includes(wanted) || scopes.includes('admin')

/** Lists what a token may do that belongs to somebody: nothing that they may not do themselves. */
export const narrowScopes = (scopes: readonly Scope[], owned: readonly Scope[]): readonly Scope[] =>
  SCOPES.filter((scope) => permits(scopes, scope) && permits(owned, scope))

/** A page or a form: a scope, or that somebody is logged in, whatever their role. */
export type PageScope = Scope | 'own'

export type Rights =
  | { readonly kind: 'nobody' }
  /** The administrator, who logs in without a name. */
  | { readonly kind: 'administrator' }
  | { readonly kind: 'token'; readonly scopes: readonly Scope[] }
  | { readonly kind: 'person'; readonly name: string; readonly role: Role | null }

type GateRefusal =
  | { readonly why: 'login' }
  /** In words, and what helps. */
  | { readonly why: 'forbidden'; readonly detail: string; readonly hint: string | null }

/** Null: the caller passes. Every route that is not open asks here. */
export function decideGate(rights: Rights, wanted: PageScope): GateRefusal | null {
  switch (rights.kind) {
    case 'nobody':
      return { why: 'login' }
    case 'administrator':
      return null
    case 'token':
      return wanted !== 'own' && permits(rights.scopes, wanted)
        ? null
        : forbid(`the token lacks the scope ${wanted}`)
    case 'person':
      return wanted === 'own' || permits(scopesOf(rights.role), wanted)
        ? null
        : forbidPerson(rights, wanted)
  }
}

const forbid = (detail: string, hint: string | null = null): GateRefusal => ({
  why: 'forbidden',
  detail,
  hint,
})

function forbidPerson(
  { name, role }: Extract<Rights, { readonly kind: 'person' }>,
  wanted: Scope,
): GateRefusal {
  if (role === null) return forbid(`${name} has no role on this server`, ASK_FOR_ROLE)
  const needed = ROLES.find((each) => permits(scopesOf(each), wanted)) ?? 'administrate'
  return forbid(`you need the role ${TITLES[needed]} to do this`, ASK_FOR_MORE)
}

const TITLES = { look: 'Viewer', operate: 'Operator', administrate: 'Administrator' } as const
const ASK_FOR_MORE = 'Ask an administrator of this server.'
const ASK_FOR_ROLE = 'Ask an administrator of this server for one, then log in again.'

// Which machines a person sees: those with one of the labels of their scope, or all of them.

/** The labels of which a machine has one, spelled alike; null: all machines are seen, labelled or not. */
export type Reach = readonly string[] | null

/** What a person has, as their row, their session or their token says. */
interface Scoped {
  readonly role: Role | null
  /** Null: they have none. */
  readonly labels: Reach
}

/** Whoever administrates has no scope. */
export const reachOf = ({ role, labels }: Scoped): Reach =>
  role === 'administrate' ? null : labels

export const canSee = (reach: Reach, labels: readonly string[]): boolean =>
  reach === null || reach.some((label) => labels.includes(label))

/** Whatever labels the machines have. */
export const isSameReach = (one: Reach, other: Reach): boolean =>
  one === null || other === null
    ? one === other
    : one.length === other.length && one.every((label) => other.includes(label))

export interface Bounds {
  /** Null: all machines. */
  readonly reach: Reach
  /** Whether they may change the labels that are scopes of people. */
  readonly administrates: boolean
}

export type RouteReach =
  /** It is about one machine, which is not there for who does not see it. */
  | 'machine'
  /** It answers with several machines, or acts on several: on those that are seen. */
  | 'list'
  /** It says nothing of machines. */
  | 'shared'
  /** It is about all machines at once, so that nobody with a scope passes. */
  | 'fleet'

/** Whatever their role; what they see there is another matter. */
export const passesReach = (reach: Reach, wanted: RouteReach): boolean =>
  reach === null || wanted !== 'fleet'
