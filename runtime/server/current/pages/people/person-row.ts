/** The row of a person in the table of people, and what it says of them. */
import type { Person } from '#fleet/access/rules/person.ts'
import { badge, tag } from '#kit/web/ui/elements.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { fill } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { pathOfPerson } from './person-path.ts'
import { hostOf } from './provider-person.ts'

const t = PAGES.people
const { roles } = PAGES.account

export function renderPersonRow(context: CurrentContext, person: Person, tokens: number): Html {
  const { id, name, role, provider } = person
  const { columns } = t
  return html`<tr>
    <th scope="row"><bdi>${name}</bdi></th>
    <td data-label="${t.role}">${role === null ? t.noRole : roles[role].title}</td>
    <td data-label="${t.scope}">${renderLabels(person)}</td>
    <td data-label="${columns.by}">${provider === null ? columns.password : hostOf(person)}</td>
    <td class="nowrap" data-label="${columns.seen}">${renderLastLogin(context, person)}</td>
    <td class="number" data-label="${columns.tokens}">${tokens}</td>
    <td data-label="${columns.state}">${renderState(person)}</td>
    <td>
      <a class="button" href="${pathOfPerson(id)}" aria-label="${fill(columns.changeOf, { name })}"
        >${columns.change}</a
      >
    </td>
  </tr>`
}

/** Administrators have no scope, whatever is stored. */
function renderLabels({ role, labels }: Person): Content {
  if (role === 'administrate' || labels === null) return t.everything
  return labels.length === 0 ? t.provider.noMachine : labels.map((label) => html`${tag(label)} `)
}

export const renderState = ({ role, blocked_at }: Person): Html =>
  blocked_at !== null
    ? badge('failed', t.provider.blocked)
    : role === null
      ? badge('needs-you', t.noRole)
      : badge('done', t.active)

/** Logins with a password have been recorded only since a later release. */
export const renderLastLogin = (context: CurrentContext, { seen_at, provider }: Person): Content =>
  renderTime(seen_at, context.clock(), provider === null ? t.noLogin : t.provider.never)
