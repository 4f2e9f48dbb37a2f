/** Asks the server for the first-boot template of a flash by hand, and fetches its content before anything is written. */
import { OfferSchema, parseFirstBoot } from '../../engine/first-boot/rules/document.ts'
import type { FirstBoot } from '../../engine/first-boot/rules/seed.ts'
import { refuse, type Result } from '../../kit/foundation/result.ts'
import { fill } from '../../kit/texts/text.ts'
import { WIZARD_TEXTS } from '../texts/texts.ts'
import type { ServerClient } from '../link/server-client.ts'
import type { Rejection } from '../link/server-exchange.ts'
import type { TemplateOffer } from '../wizard/flow/start.ts'

const TEXTS = WIZARD_TEXTS.driven

/** Finds the template for a flash that a person chose; null: there is none for it. */
export async function findTemplate(client: ServerClient | null): Promise<TemplateOffer | null> {
  const offered = client === null ? null : await client.offerFirstBoot()
  if (client === null || offered === null) return null
  if (!offered.ok) {
    // A server that has no such route, or no template.
    if (offered.refusal.status === 404 || offered.refusal.status === 405) return null
    return {
      kind: 'unavailable',
      reason: fill(TEXTS.noTemplate, { reason: trim(offered.refusal) }),
    }
  }
  const parsed = OfferSchema.safeParse(offered.value)
  if (!parsed.success) {
    return { kind: 'unavailable', reason: fill(TEXTS.noTemplate, { reason: TEXTS.wrongFirstBoot }) }
  }
  const { template: name, token } = parsed.data
  return { kind: 'template', name, fetch: () => fetchChosen(client, token) }
}

const trim = ({ reason }: Rejection) => reason.replace(/\.$/, '')

const fetchChosen = (client: ServerClient, token: string) =>
  fetchExchanging(token, client.fetchFirstBoot, async () => {
    const offered = await client.offerFirstBoot()
    const parsed = OfferSchema.safeParse(offered.ok ? offered.value : null)
    return parsed.success ? parsed.data.token : null
  })

/**
 * A ticket that is too old by now, or whose answer was lost, is exchanged once; `renew`: null where
 * there is no other.
 */
export async function fetchExchanging<Ticket>(
  ticket: Ticket,
  ask: (ticket: Ticket) => Promise<Result<unknown, Rejection>>,
  renew: () => Promise<Ticket | null>,
): Promise<Result<FirstBoot, string>> {
  const first = await ask(ticket)
  const other = first.ok || first.refusal.status !== 401 ? null : await renew()
  return judgeFirstBoot(other === null ? first : await ask(other))
}

/** The configuration in an answer of the server; refused in words. */
function judgeFirstBoot(answer: Result<unknown, Rejection>): Result<FirstBoot, string> {
  if (!answer.ok) return refuse(fill(TEXTS.noFirstBoot, { reason: answer.refusal.reason }))
  const parsed = parseFirstBoot(answer.value)
  return parsed.ok ? parsed : refuse(fill(TEXTS.noFirstBoot, { reason: TEXTS.wrongFirstBoot }))
}
