/** A row of /ui/people for somebody whom a provider lets in: what it says of them, their tokens, and how to keep them out. */
import type { Person } from '../../../../fleet/access/rules/person.ts'
import { tag } from '../../../../kit/web/ui/elements.ts'
import { postButton } from '../../../../kit/web/ui/fields.ts'
import { address, fillHtml, html, type Content, type Html } from '../../../../kit/web/ui/html.ts'
import { renderTime } from '../../../../kit/web/ui/times.ts'
import { fill } from '../../../../kit/texts/text.ts'
import { questionButton } from '../../../pages/question.ts'
import { PAGES } from '../../../texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'

const t = PAGES.people
const { roles } = PAGES.account

/** Renders it; `path` is the address of the person, `tokens` are the names of theirs. */
export function renderProviderPerson(
  context: CurrentContext,
  person: Person,
  { path, tokens }: { readonly path: string; readonly tokens: readonly string[] },
): Html {
  const { name, blocked_at, created_at, seen_at } = person
  const clock = context.clock()
  const isBlocked = blocked_at !== null
  const times = {
    seen: renderTime(seen_at, clock, t.provider.never),
    added: renderTime(created_at, clock),
  }
  return html`<li>
    <span class="grow"
      ><strong><bdi>${name}</bdi></strong> ${isBlocked ? tag(t.provider.blocked) : null}<br />
      <span>${describeRole(person)}${describeScope(person)}</span>
      <span class="small dim"
        >${fillHtml(t.provider.times, times)},
        <a href="${address('/ui/events', { person: name })}">${t.events}</a></span
      >
      ${describeTokens(person, tokens)}</span
    >
    ${postButton({ action: `${path}/${isBlocked ? 'unblock' : 'block'}`, label: isBlocked ? t.provider.unblock : t.provider.block })}
    ${questionButton({ action: `${path}/remove`, label: t.remove.button, tone: 'danger' })}
  </li>`
}

function describeRole({ role, provider }: Person): string {
  const host = URL.parse(provider?.issuer ?? '')?.host ?? ''
  return role === null
    ? fill(t.provider.noRole, { provider: host })
    : fill(t.provider.role, { role: roles[role].title, provider: host })
}

/** Whoever administrates has no scope, whatever their groups say. */
function describeScope({ role, labels }: Person): string {
  if (labels === null || role === null || role === 'administrate') return ''
  const named = labels.length === 0 ? t.provider.noMachine : labels.join(', ')
  return ` ${fill(t.provider.scope, { labels: named })}`
}

/** Tokens go on while nobody is logged in, so they are named. */
function describeTokens({ role }: Person, tokens: readonly string[]): Content {
  if (tokens.length === 0) return null
  const names = tokens.join(', ')
  const text = role === null ? t.provider.voidTokens : t.provider.tokens
  return html`<br /><span class="small dim">${fill(text, { names })}</span>`
}
