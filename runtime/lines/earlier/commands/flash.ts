/** `flasher flash`: finds out everything that can be known, then writes. */
import { Fault, renderError } from '../../../core/foundation/fault.ts'
import { planFlash, type FlashEvent, type FlashPlan } from '../../../core/flash/flash.ts'
import { renderDuration } from '../../../core/foundation/rate.ts'
import { renderExactSize } from '../../../core/foundation/size.ts'
import { emphasise } from '../../../terminal/text/log.ts'
import { decideTerminalStyle } from '../../../terminal/text/terminal-style.ts'
import { createProgress, type Progress } from '../../../terminal/text/progress.ts'
import type { Fields } from '../rules/envelope.ts'
import { SUCCESS } from '../rules/exit-codes.ts'
import {
  findingsFields,
  hintAgainst,
  renderErrors,
  renderFindings,
  renderLoss,
  type Findings,
} from '../rules/flash-report.ts'
import { parseFlashRequest, progressModeOf, type FlashRequest } from '../rules/flash-request.ts'
import { findOut } from './flash-findings.ts'
import { createFlashServices, type FlashDependencies } from './flash-parts.ts'
import { asCancel, type Session } from './session.ts'

/** How far a flash has come. */
interface FlashState {
  /** The document's fields that are known by now. */
  fields: Fields
  storedBytes: number | null
  stage: 'checking' | 'ready' | 'writing' | 'written'
  bytesWritten: number
}

/** One flash: what it says goes through here. */
interface Run extends Session {
  readonly parts: FlashDependencies
  readonly progress: Progress
  readonly flashState: FlashState
  /** Text for a person: on stdout, unless that is for a program. */
  say(text: string, how?: 'bold'): void
}

export async function flash(session: Session): Promise<number> {
  const run = createRun(session)
  const { given, environment, progress, flashState } = run
  try {
    const request = parseFlashRequest(given)
    if (!request.ok) throw new Fault('misuse', request.refusal.message, request.refusal)
    return await carryOut(request.value, run)
  } catch (thrown) {
    const cause = asCancel(thrown, environment.signal)
    const note = renderError(cause)
    progress.show({ event: 'failed', note })
    const known =
      flashState.fields['ok'] === true ? failedFields(flashState.fields, note) : flashState.fields
    const code = run.fail(cause, { known, isTold: progressModeOf(given) === 'text' })
    const state = STATE_TEXTS[flashState.stage]
    if (state !== null) run.log.line(`  ${state(given.values['target'] ?? '')}`)
    return code
  }
}

function createRun(session: Session): Run {
  const { given, environment, json, look } = session
  const mode = progressModeOf(given)
  const flashState: FlashState = {
    fields: {},
    storedBytes: null,
    stage: 'checking',
    bytesWritten: 0,
  }
  const progress = createProgress(mode, {
    ...environment,
    look,
    storedBytes: () => flashState.storedBytes,
  })
  const out = json || mode === 'ndjson' ? environment.stderr : environment.stdout
  const outLook = decideTerminalStyle(environment.env, out.isTTY === true)
  return {
    ...session,
    parts: createFlashServices(environment),
    progress,
    flashState,
    say: (text, how) => out.write(how === undefined ? text : emphasise(text, how, outLook)),
  }
}

/** What became of the disk, for a flash that did not end well. */
const STATE_TEXTS: Readonly<Record<FlashState['stage'], ((target: string) => string) | null>> = {
  checking: null,
  ready: () => 'Nothing was written.',
  writing: (target) =>
    `${target} was left without a partition table, so that it cannot boot: flash it again.`,
  written: (target) => `The image is on ${target}; the step after the write is what failed.`,
}

const failedFields = (fields: Fields, message: string): Fields => ({
  ...fields,
  errors: [message],
  ok: false,
})

async function carryOut(request: FlashRequest, run: Run): Promise<number> {
  const { environment, flashState, parts } = run
  const { signal } = environment
  await using source = await parts.sources.open(request.image, { signal })
  const findings = await findOut(request, source, parts, signal)
  flashState.fields = findingsFields(findings)
  flashState.storedBytes = findings.image.sizeBytes
  // A document that says the same is all that a program wants of a dry run.
  if (!(request.dryRun && run.json)) run.say(renderFindings(findings))
  const plan = planOf(findings)
  if (request.dryRun) {
    await parts.checks.checkContent(plan, source, signal)
    if (!run.json) run.say('Dry run: this flash would go ahead. Nothing was written.\n')
    return conclude(run, {})
  }
  if (!environment.isRoot) throw new Fault('root-required', 'writing to a disk needs root', SUDO)
  flashState.stage = 'ready'
  run.say(renderLoss(findings), 'bold')
  const before = environment.now()
  for await (const event of parts.writer.execute(plan, source, { signal })) show(event, run)
  const seconds = environment.now() - before
  await provision(plan, request, run)
  run.progress.show({ event: 'done' })
  run.say(renderDone(plan, flashState.bytesWritten, seconds))
  return conclude(run, resultFields(plan, flashState.bytesWritten, seconds))
}

const SUDO = { hint: 'Run it again as root, for example with sudo.' } as const

function planOf(findings: Findings): FlashPlan {
  const errors = renderErrors(findings)
  const planned = planFlash(findings.image, findings.target, findings.options)
  if (planned.ok && errors.length === 0) return planned.value
  throw new Fault('plan-refused', errors.join('; '), { hint: hintAgainst(findings) })
}

function conclude({ json, flashState, document }: Run, more: Fields): number {
  if (json) document({ ...flashState.fields, ...more })
  return SUCCESS
}

function show(event: FlashEvent, { flashState, progress }: Run) {
  if (event.event === 'writing') {
    flashState.stage = 'writing'
    if (event.phase === 'write') flashState.bytesWritten = event.bytes_written
  }
  if (event.event === 'synced') flashState.stage = 'written'
  progress.show(event)
}

async function provision({ target }: FlashPlan, { provisioning }: FlashRequest, run: Run) {
  if (provisioning.mode === 'none') return
  const { parts, progress, environment } = run
  progress.show({ event: 'provisioning', note: provisioning.mode })
  const provisioner = await parts.loadProvisioner()
  await provisioner.apply(provisioning, target.node, { signal: environment.signal })
}

function renderDone({ target, verify }: FlashPlan, bytes: number, seconds: number): string {
  const readBack = verify === 'none' ? 'not read back' : 'read back and found equal'
  return `Done. Wrote ${renderExactSize(bytes)} to ${target.path} in ${renderDuration(seconds)}, ${readBack}.\n`
}

const resultFields = ({ verify, sha256 }: FlashPlan, bytes: number, seconds: number): Fields => ({
  result: {
    bytes_written: bytes,
    seconds: Math.round(seconds * 1000) / 1000,
    verified: verify !== 'none',
    sha256,
  },
})
