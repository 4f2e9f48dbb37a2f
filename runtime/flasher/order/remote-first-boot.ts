/** Fetches the first-boot configuration of a plan, before anything is written. */
import type { FirstBoot } from '../../engine/first-boot/rules/seed.ts'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import { WIZARD_TEXTS } from '../texts/texts.ts'
import type { Rejection } from '../link/server-exchange.ts'
import type { RemoteMachine } from './remote-machine.ts'
import { parseRemotePlan, type FirstBootTicket } from './remote-plan.ts'
import { fetchExchanging } from './template-offer.ts'

/** Null where the plan names none; refused in words. */
export async function fetchFirstBoot(
  ticket: FirstBootTicket | null,
  machine: RemoteMachine,
): Promise<Result<FirstBoot | null, string>> {
  if (ticket === null) return accept(null)
  return await fetchExchanging(
    ticket,
    (one) => ask(one, machine),
    () => renewTicket(machine),
  )
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

/** A token is good for one answer: a new plan brings another. */
async function renewTicket({ client, retryTime }: RemoteMachine): Promise<FirstBootTicket | null> {
  const got = await client.fetchPlan(retryTime())
  const plan = got.ok ? parseRemotePlan(got.value) : null
  return plan?.ok === true && plan.value.mode === 'flash' ? plan.value.firstBoot : null
}
