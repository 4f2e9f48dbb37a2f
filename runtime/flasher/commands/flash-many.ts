/** `flasher flash` with several targets: checks all of them, then writes to all of them at once. */
import { Fault } from '../../kit/foundation/fault.ts'
import type { FlashOutcome } from '../../engine/flash/rules/outcome.ts'
import type { Result } from '../../kit/foundation/result.ts'
import type { ManyFlashes } from '../../engine/flash/flash-planner.ts'
import { createManyFlasher, type ManyFlasher } from '../../engine/flash/many/many-flasher.ts'
import { createManyProgress, type ManyProgress } from '../text/many-progress.ts'
import { errorFields, type DocumentFields } from './rules/envelope.ts'
import { EXIT, FAILED, SUCCESS } from './rules/exit-codes.ts'
import { findingsFields, hintAgainst, renderFindings, renderLoss } from './rules/flash-report.ts'
import { progressModeOf, type CommandRequest } from './rules/flash-request.ts'
import { renderDone, resultFields } from './flash-result.ts'
import type { CommandSession } from './session.ts'

type ManyFindings = Parameters<typeof findingsFields>[0]

/** One target: what was found, and how its flash ended. */
interface Target {
  readonly findings: ManyFindings
  outcome: FlashOutcome | null
}

interface ManySession extends CommandSession {
  /** Text for a person: on stdout, unless that is for a program. */
  say(text: string, how?: 'bold'): void
}

export async function flashMany(request: CommandRequest, session: ManySession): Promise<number> {
  const { environment, json, say } = session
  const { signal } = environment
  const { dryRun, provisioning, targets, ...order } = request
  const flasher = createManyFlasher(environment)
  const disks = targets.map((target) => ({ target }))
  await using planned = await flasher.plan(order, disks, signal)
  const all = planned.flashes.map((flash): Target => {
    const findings = { ...flash, dryRun, provisioning }
    if (!(dryRun && json)) say(`${renderFindings(findings)}\n`)
    return { findings, outcome: null }
  })
  const refused = findRefusal(planned.flashes)
  if (refused !== null) return session.fail(refused, { known: manyFields(all, dryRun) })
  if (dryRun) {
    for (const flash of planned.flashes.slice(0, 1)) await flasher.checkContent(flash, signal)
    if (json) session.document(manyFields(all, dryRun))
    else say('Dry run: these flashes would go ahead. Nothing was written.\n')
    return SUCCESS
  }
  const outcomes = await runAll(request, session, { flasher, planned, all })
  if (json) session.document(manyFields(all, dryRun))
  return exitCode(outcomes)
}

interface Ready {
  readonly flasher: ManyFlasher
  readonly planned: Pick<ManyFlashes, 'flashes'>
  readonly all: readonly Target[]
}

async function runAll(
  request: CommandRequest,
  session: ManySession,
  { flasher, planned, all }: Ready,
): Promise<readonly FlashOutcome[]> {
  for (const { findings } of all) session.say(renderLoss(findings), 'bold')
  const progress = openProgress(request, session, planned.flashes[0]?.image.sizeBytes ?? null)
  const outcomes = await flasher.run(planned, {
    signal: session.environment.signal,
    onEvent: (event, { target }) => progress.show(event, target.path),
    onEnd: (end, disk) => report(end, disk, progress, session),
  })
  for (const [index, target] of all.entries()) target.outcome = outcomes[index] ?? null
  return outcomes
}

/** Every reason against any of them; null: all may go ahead. */
function findRefusal(
  flashes: readonly (Pick<ManyFindings, 'imageHint' | 'refusals'> & {
    readonly plan: Result<unknown, readonly string[]>
  })[],
): Fault | null {
  const reasons = flashes.flatMap(({ plan }) => (plan.ok ? [] : plan.refusal))
  if (reasons.length === 0) return null
  const hint = flashes.map(hintAgainst).find((found) => found !== undefined)
  return new Fault('plan-refused', [...new Set(reasons)].join('; '), { hint })
}

const openProgress = (
  request: CommandRequest,
  session: CommandSession,
  storedBytes: number | null,
) =>
  createManyProgress({
    ...session.environment,
    mode: progressModeOf(session.given),
    disks: request.targets,
    style: session.style,
    storedBytes: () => storedBytes,
  })

function report(outcome: FlashOutcome, disk: string, progress: ManyProgress, session: ManySession) {
  if (outcome.kind === 'done') {
    progress.show({ event: 'done' }, disk)
    session.say(renderDone(outcome))
    return
  }
  progress.show({ event: 'failed', note: outcome.reason }, disk)
  session.log.fail(`${disk}: ${outcome.reason}`, outcome.hint ?? undefined)
  session.log.line(`  ${outcome.leaves}`)
}

/** 0 only if all succeeded; else what the first that did not would have ended with. */
function exitCode(outcomes: readonly FlashOutcome[]): number {
  const failed = outcomes.find(({ kind }) => kind !== 'done')
  if (failed === undefined || failed.kind === 'done') return SUCCESS
  return failed.code === 'unexpected' ? FAILED : EXIT[failed.code]
}

function manyFields(all: readonly Target[], dryRun: boolean): DocumentFields {
  const targets = all.map(({ findings, outcome }) => {
    const { dry_run: _, ...fields } = findingsFields(findings)
    if (outcome === null) return fields
    if (outcome.kind === 'done') {
      return { ...fields, ...resultFields(outcome) }
    }
    const { code, reason, hint } = outcome
    return {
      ...fields,
      errors: [reason],
      ok: false,
      ...errorFields(code, reason, hint ?? undefined),
    }
  })
  const errors = targets.flatMap((target) => target['errors'] ?? [])
  return { dry_run: dryRun, targets, errors, ok: errors.length === 0 }
}
