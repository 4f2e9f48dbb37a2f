/** `flasher flash`: checks everything that can be known, then writes. */
import { Fault, renderError } from '../../kit/foundation/fault.ts'
import { createFlasher } from '../../engine/flash/flasher.ts'
import { emphasise } from '../../kit/terminal/text/log.ts'
import { decideTerminalStyle } from '../../kit/terminal/text/terminal-style.ts'
import { createProgress, type ProgressVoice } from '../text/progress.ts'
import type { DocumentFields } from './rules/envelope.ts'
import { SUCCESS } from './rules/exit-codes.ts'
import { findingsFields, hintAgainst, renderFindings, renderLoss } from './rules/flash-report.ts'
import { parseFlashRequest, progressModeOf, type CommandRequest } from './rules/flash-request.ts'
import { renderDone, resultFields } from './flash-result.ts'
import { asCancel, type CommandSession } from './session.ts'

/** One flash: what it says goes through here. */
interface FlashSession extends CommandSession {
  readonly progress: ProgressVoice
  readonly known: FlashFacts
  /** Text for a person: on stdout, unless that is for a program. */
  say(text: string, how?: 'bold'): void
}

/** What is known by now. */
interface FlashFacts {
  /** The document's fields. */
  fields: DocumentFields
  storedBytes: number | null
}

export async function flash(session: CommandSession): Promise<number> {
  const run = createRun(session)
  try {
    const request = parseFlashRequest(run.given)
    if (!request.ok) throw new Fault('misuse', request.refusal.message, request.refusal)
    if (request.value.targets.length === 1) return await carryOut(request.value, run)
    const { flashMany } = await import('./flash-many.ts')
    return await flashMany(request.value, run)
  } catch (thrown) {
    return fail(asCancel(thrown, run.environment.signal), run)
  }
}

function createRun(session: CommandSession): FlashSession {
  const { given, environment, json, style } = session
  const mode = progressModeOf(given)
  const known: FlashFacts = { fields: {}, storedBytes: null }
  const storedBytes = () => known.storedBytes
  const out = json || mode === 'ndjson' ? environment.stderr : environment.stdout
  const outLook = decideTerminalStyle(environment.env, out.isTTY === true)
  return {
    ...session,
    progress: createProgress(mode, { ...environment, style, storedBytes }),
    known,
    say: (text, how) => out.write(how === undefined ? text : emphasise(text, how, outLook)),
  }
}

function fail(
  cause: unknown,
  { given, progress, known: { fields }, ...run }: FlashSession,
): number {
  const note = renderError(cause)
  progress.show({ event: 'failed', note })
  const known = fields['ok'] === true ? { ...fields, errors: [note], ok: false } : fields
  return run.fail(cause, { known, isPrinted: progressModeOf(given) === 'text' })
}

async function carryOut(request: CommandRequest, run: FlashSession): Promise<number> {
  const { environment, known, progress } = run
  const { signal } = environment
  const flasher = createFlasher(environment)
  await using planned = await flasher.plan(request, signal)
  const { dryRun, provisioning } = request
  const findings = { ...planned, dryRun, provisioning }
  known.fields = findingsFields(findings)
  known.storedBytes = findings.image.sizeBytes
  // A document that says the same is all that a program wants of a dry run.
  if (!(dryRun && run.json)) run.say(renderFindings(findings))
  if (!planned.plan.ok) {
    throw new Fault('plan-refused', planned.plan.refusal.join('; '), { hint: hintAgainst(planned) })
  }
  if (dryRun) {
    await flasher.checkContent(planned, signal)
    if (!run.json) run.say('Dry run: this flash would go ahead. Nothing was written.\n')
    return conclude(run, {})
  }
  const outcome = await flasher.run(planned, {
    signal,
    onEvent(event, plan) {
      environment.onEvent?.(event, plan)
      if (event.event === 'started') run.say(renderLoss(findings), 'bold')
      progress.show(event)
    },
  })
  if (outcome.kind !== 'done') {
    const code = fail(outcome.cause, run)
    run.log.line(`  ${outcome.leaves}`)
    return code
  }
  progress.show({ event: 'done' })
  run.say(renderDone(outcome))
  return conclude(run, resultFields(outcome))
}

function conclude({ json, known, document }: FlashSession, more: DocumentFields): number {
  if (json) document({ ...known.fields, ...more })
  return SUCCESS
}
