/** What the pages of one receiver share: its address, where a form leads, and why it was refused. */
import { getRouterParam } from 'h3'
import type { EditRefusal } from '../../../../fleet/notify/receiver-edits.ts'
import { MAX_RECEIVERS, MAX_RULES, type Receiver } from '../../../../fleet/notify/rules/receiver.ts'
import type { Answer } from '../../../../kit/web/answers/answers.ts'
import { refuse as refuseRequest } from '../../../../kit/web/answers/faults.ts'
import { banner } from '../../../../kit/web/ui/elements.ts'
import { address, html, type Content, type Html } from '../../../../kit/web/ui/html.ts'
import { fill } from '../../../../kit/texts/text.ts'
import { PAGES } from '../../../texts/texts.ts'
import type { CurrentContext } from '../view/page-context.ts'

const t = PAGES.notifications

export const NOTIFICATIONS_PATH = '/ui/notifications'

export const pathOfReceiver = (id: string): string => `${NOTIFICATIONS_PATH}/${id}`

/** Throws a 404 where there is none. */
export function findReceiver({ services, event }: CurrentContext): Receiver {
  const receiver = services.notify.receivers.find(getRouterParam(event, 'id') ?? '')
  if (receiver === null) throw refuseRequest(404, t.errors.unknown)
  return receiver
}

/** The way to a page of a receiver; null: to its own. */
export const trailTo = (receiver: Receiver | null): Html =>
  html`<a href="${NOTIFICATIONS_PATH}">${t.title}</a>${
      receiver === null
        ? null
        : html` / <a href="${pathOfReceiver(receiver.id)}">${receiver.name}</a>`
    }`

export const goDone = (
  context: CurrentContext,
  { id, name }: Receiver,
  done: keyof typeof t.done,
): Answer =>
  context.goTo(
    done === 'removed'
      ? address(NOTIFICATIONS_PATH, { done, name })
      : address(pathOfReceiver(id), { done }),
  )

/** `name`: what the receiver is called; null: it is gone, and the address says what it was. */
export function renderDone({ query }: CurrentContext, name: string | null): Content {
  const text = Object.entries(t.done).find(([key]) => key === query.get('done'))?.[1]
  const named = name ?? query.get('name')
  return text === undefined || named === null ? null : banner('done', fill(text, { name: named }))
}

export function describeRefusal(refusal: EditRefusal): string {
  switch (refusal) {
    case 'secret-shape':
      return t.errors.fields
    case 'too-many':
      return fill(t.errors[refusal], { count: MAX_RECEIVERS })
    case 'too-many-rules':
      return fill(t.errors[refusal], { count: MAX_RULES })
    case 'name-taken':
    case 'secret-missing':
    case 'unknown':
      return t.errors[refusal]
  }
}
