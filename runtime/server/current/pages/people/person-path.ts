/** What the pages of people share: their addresses, where a form leads, and why it was refused. */
import { getRouterParam } from 'h3'
import type { Accounts, PersonRefusal } from '#fleet/access/accounts.ts'
import { MAX_SCOPE_CHARACTERS } from '#fleet/access/rules/label-scope.ts'
import { MAX_PEOPLE, type Person } from '#fleet/access/rules/person.ts'
import type { Result } from '#kit/foundation/result.ts'
import { MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH } from '#kit/web/access/rules/new-password.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { refuse as refuseRequest } from '#kit/web/answers/faults.ts'
import { banner } from '#kit/web/ui/elements.ts'
import { address, type Content } from '#kit/web/ui/html.ts'
import { fill } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'

const t = PAGES.people

export const PEOPLE_PATH = '/ui/people'

export const pathOfPerson = (id: string): string => `${PEOPLE_PATH}/${id}`

export const idOf = ({ event }: CurrentContext): string => getRouterParam(event, 'id') ?? ''

export const findPerson = (context: CurrentContext): Person | null =>
  context.site.people?.store.find(idOf(context)) ?? null

export function accountsOf({ site }: CurrentContext): Accounts {
  if (site.accounts === null) throw refuseRequest(404, t.errors.unknown)
  return site.accounts
}

type Done = keyof typeof t.done

export const goDone = (context: CurrentContext, what: Done, { name }: Person): Answer =>
  context.goTo(address(PEOPLE_PATH, { done: what, name }))

/** To the list, or back to the person with the refusal. */
export function answerChange(
  context: CurrentContext,
  what: Done,
  changed: Result<Person, PersonRefusal>,
): Answer {
  if (changed.ok) return goDone(context, what, changed.value)
  return goBack(context, describeRefusal(changed.refusal))
}

export const goBack = (context: CurrentContext, error: string): Answer =>
  context.goBack(findPerson(context) === null ? PEOPLE_PATH : pathOfPerson(idOf(context)), {
    error,
  })

export function renderDone({ query }: CurrentContext): Content {
  const [done, name] = [query.get('done'), query.get('name')]
  const text = Object.entries(t.done).find(([key]) => key === done)?.[1]
  return text === undefined || name === null ? null : banner('done', fill(text, { name }))
}

const COUNTS: Partial<Readonly<Record<PersonRefusal, number>>> = {
  'too-many': MAX_PEOPLE,
  'scope-long': MAX_SCOPE_CHARACTERS,
  'too-short': MIN_PASSWORD_LENGTH,
  'too-long': MAX_PASSWORD_LENGTH,
}

export const describeRefusal = (refusal: PersonRefusal): string =>
  fill(t.errors[refusal], { count: COUNTS[refusal] ?? 0 })
