/** Ends runs that have no final post of their own: by `done`, by `status`, or by a new boot. */
import type { Eventual } from '../../kit/foundation/eventual.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import type { Run } from '../../engine/inventory/rules/run.ts'
import type { RunEnd } from '../../fleet/run/rules/run-transition.ts'
import type { RunUpdate } from '../../fleet/run/run-posts.ts'
import type { Site } from './site.ts'
import type { Contact } from './transition.ts'
import { countRun, renderLost } from './run-events.ts'

/** Also of a client that reports nothing but its end. Null: nothing is known of a run. */
export async function endRun(
  { line, machines, runs, metrics }: Site,
  mac: Mac,
  { result, reason, run }: Pick<RunEnd, 'result' | 'reason'> & { readonly run: Run | null },
  contact: Contact,
): Promise<Pick<RunUpdate, 'run' | 'hasEnded'> | null> {
  const machine = machines.peek(mac)
  if (machine === null) return null
  const { origin, ...which } = line.describeRun(machine, contact, run?.order ?? null)
  const ended = await runs.end(origin, { result, reason, run: run?.id ?? null, ...which })
  if (ended === null) metrics.count('flasher_flash_total', { result, format: 'other' })
  else if (ended.hasEnded) countRun(metrics, ended.run)
  return ended
}

/** Who asks for a script is not flashing: a run that was not heard of for a while is over. */
export const leaveStalled = (site: Site, mac: Mac, contact: Contact): Eventual<void> =>
  site.runs.findRunning(mac)?.stalled === true ? giveUp(site, mac, contact) : undefined

async function giveUp(
  { runs, feed, metrics, noteAll }: Site,
  mac: Mac,
  { ip }: Contact,
): Promise<void> {
  const lost = await runs.giveUp(mac, 'It stopped responding, then booted again.')
  if (lost === null) return
  feed.announce({ topic: 'machine', mac })
  countRun(metrics, lost)
  await noteAll([renderLost(lost)], { subject_id: mac, actor: 'pxe-client', ip })
}
