/** Fetches the first-boot configuration of a flash, a plan's or a person's, before anything is written. */
import { OfferSchema, parseFirstBoot } from '#engine/first-boot/rules/document.ts'
import type { FirstBoot } from '#engine/first-boot/rules/seed.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { RetryTime, ServerClient } from '#flasher/link/server-client.ts'
import type { Rejection } from '#flasher/link/server-exchange.ts'
import { parsePlan, type FirstBootTicket } from './rules/plan.ts'
import type { TemplateOffer } from './rules/flash-choice.ts'

const UNREADABLE = 'it cannot be read'

/** Null: the machine has none. */
export async function findTemplate(client: ServerClient | null): Promise<TemplateOffer | null> {
  const offered = client === null ? null : await client.offerFirstBoot()
  if (client === null || offered === null) return null
  if (!offered.ok) {
    // A server without that route or template.
    if (offered.refusal.status === 404 || offered.refusal.status === 405) return null
    return {
      kind: 'unavailable',
      reason: `No first-boot template: ${trim(offered.refusal)}.`,
    }
  }
  const parsed = OfferSchema.safeParse(offered.value)
  if (!parsed.success) {
    return { kind: 'unavailable', reason: `No first-boot template: ${UNREADABLE}.` }
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

interface PlanLink {
  readonly client: ServerClient
  readonly retryTime: () => RetryTime
}

/** Null: the plan names none; refused in words. */
export async function fetchFirstBoot(
  ticket: FirstBootTicket | null,
  link: PlanLink,
): Promise<Result<FirstBoot | null, string>> {
  if (ticket === null) return accept(null)
  return await fetchExchanging(
    ticket,
    (one) => askWith(one, link),
    () => renewTicket(link),
  )
}

/** Asks only servers that may have given the plan, as they get the boot token. */
async function askWith(
  { url, token }: FirstBootTicket,
  { client, retryTime }: PlanLink,
): Promise<Result<unknown, Rejection>> {
  const origin = URL.parse(url)?.origin
  const isHere = client.servers.some((server) => URL.parse(server)?.origin === origin)
  if (isHere) return await client.fetchFirstBoot(token, retryTime())
  return refuse({
    reason: 'its first-boot configuration has no address on this server, or no token',
    status: null,
    isPassing: false,
    waitMs: null,
  })
}

/** A token is good for one answer: a new plan brings another. */
async function renewTicket({ client, retryTime }: PlanLink): Promise<FirstBootTicket | null> {
  const got = await client.fetchPlan(retryTime())
  const plan = got.ok ? parsePlan(got.value) : null
  return plan?.ok === true && plan.value.mode === 'flash' ? plan.value.firstBoot : null
}

/**
 * Exchanges once a ticket that is too old, or whose answer was lost. `renew` null: there is no
 * other.
 */
async function fetchExchanging<Ticket>(
  ticket: Ticket,
  ask: (ticket: Ticket) => Promise<Result<unknown, Rejection>>,
  renew: () => Promise<Ticket | null>,
): Promise<Result<FirstBoot, string>> {
  const first = await ask(ticket)
  const other = first.ok || first.refusal.status !== 401 ? null : await renew()
  return judgeFirstBoot(other === null ? first : await ask(other))
}

function judgeFirstBoot(answer: Result<unknown, Rejection>): Result<FirstBoot, string> {
  const parsed = answer.ok ? parseFirstBoot(answer.value) : null
  if (parsed?.ok === true) return parsed
  const reason = answer.ok ? UNREADABLE : answer.refusal.reason
  return refuse(`The server did not provide the first-boot configuration: ${reason}.`)
}
