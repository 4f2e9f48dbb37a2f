/** Fetches the first-boot configuration of a plan, or of a flash by hand, before anything is written. */
import { OfferSchema, parseFirstBoot } from '../../../../core/first-boot/document.ts'
import type { FirstBoot } from '../../../../core/first-boot/seed.ts'
import { accept, refuse, type Result } from '../../../../core/foundation/result.ts'
import { fill } from '../../../../core/texts/text.ts'
import { WIZARD_TEXTS } from '../../../../core/texts/wizard/texts.ts'
import type { ServerClient } from '../../../../services/net/server-client.ts'
import type { Rejection } from '../../../../services/net/server-exchange.ts'
import type { RemoteMachine } from './remote-machine.ts'
import { parseRemotePlan, type FirstBootTicket } from './remote-plan.ts'
import type { TemplateOffer } from '../flow/start.ts'

const TEXTS = WIZARD_TEXTS.driven

/** Null where the plan names none; refused in words. */
export async function fetchFirstBoot(
  ticket: FirstBootTicket | null,
  machine: RemoteMachine,
): Promise<Result<FirstBoot | null, string>> {
  if (ticket === null) return accept(null)
  const first = await ask(ticket, machine)
  if (first.ok || first.refusal.status !== 401) return judge(first)
  // The token is good for one answer, and that may have been lost: a new plan brings another.
  const plan = await renewTicket(machine)
  return plan === null ? judge(first) : judge(await ask(plan, machine))
}

/** Only the server that gave the plan is asked: it gets the boot token as well. */
async function ask(
  { url, token }: FirstBootTicket,
  { client, retryTime }: RemoteMachine,
): Promise<Result<unknown, Rejection>> {
  const isHere = URL.parse(url)?.origin === URL.parse(client.base)?.origin
  if (isHere) return await client.fetchFirstBoot(token, retryTime())
  const { wrongTicket: reason } = WIZARD_TEXTS.plan
  return refuse({ reason, status: null, isPassing: false, waitMs: null })
}

async function renewTicket({ client, retryTime }: RemoteMachine): Promise<FirstBootTicket | null> {
  const got = await client.fetchPlan(retryTime())
  const plan = got.ok ? parseRemotePlan(got.value) : null
  return plan?.ok === true && plan.value.mode === 'flash' ? plan.value.firstBoot : null
}

/** For a flash that a person chose; null: there is no template for it. */
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

/** A token that is too old by now, or whose answer was lost, is exchanged once. */
async function fetchChosen(
  client: ServerClient,
  token: string,
): Promise<Result<FirstBoot, string>> {
  const first = await client.fetchFirstBoot(token)
  if (first.ok || first.refusal.status !== 401) return judge(first)
  const offered = await client.offerFirstBoot()
  const parsed = OfferSchema.safeParse(offered.ok ? offered.value : null)
  return judge(parsed.success ? await client.fetchFirstBoot(parsed.data.token) : first)
}

function judge(answer: Result<unknown, Rejection>): Result<FirstBoot, string> {
  if (!answer.ok) return refuse(fill(TEXTS.noFirstBoot, { reason: answer.refusal.reason }))
  const parsed = parseFirstBoot(answer.value)
  return parsed.ok ? parsed : refuse(fill(TEXTS.noFirstBoot, { reason: TEXTS.wrongFirstBoot }))
}
