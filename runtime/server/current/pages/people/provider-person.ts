/** What is said of somebody whom a provider lets in: their role, their scope, their tokens. */
import type { Person } from '#fleet/access/rules/person.ts'
import { fill } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'

const t = PAGES.people
const { roles } = PAGES.account

/** Empty: no provider. */
export const hostOf = ({ provider }: Person): string =>
  URL.parse(provider?.issuer ?? '')?.host ?? ''

export const describeRights = (person: Person): string =>
  `${describeRole(person)}${describeScope(person)}`

function describeRole(person: Person): string {
  const { role } = person
  return role === null
    ? fill(t.provider.noRole, { provider: hostOf(person) })
    : fill(t.provider.role, { role: roles[role].title, provider: hostOf(person) })
}

/** Administrators have no scope, whatever their groups say. */
function describeScope({ role, labels }: Person): string {
  if (labels === null || role === null || role === 'administrate') return ''
  const named = labels.length === 0 ? t.provider.noMachine : labels.join(', ')
  return ` ${fill(t.provider.scope, { labels: named })}`
}

/** Tokens work on while nobody is logged in, so they are named. */
export function describeTokens({ role }: Person, tokens: readonly string[]): string {
  const names = tokens.join(', ')
  return fill(role === null ? t.provider.voidTokens : t.provider.tokens, { names })
}
