/** `flasher flash`: finds out everything that can be known, then writes. */
import { Fault, renderError } from '../../../core/foundation/fault.ts'
import { planFlash, type FlashEvent, type FlashPlan } from '../../../core/flash/flash.ts'
import { renderDuration } from '../../../core/foundation/rate.ts'
import { renderExactSize } from '../../../core/foundation/size.ts'
import { emphasise } from '../../../terminal/text/log.ts'
import { decideLook } from '../../../terminal/text/terminal-style.ts'
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
import { createFlashParts, type FlashParts } from './flash-parts.ts'
import { asCancel, type Session } from './session.ts'

/** How far a flash has come. */
interface Course {
  /** The document's fields that are known by now. */
  fields: Fields
  storedBytes: number | null
  stage: 'checking' | 'ready' | 'writing' | 'written'
  bytesWritten: number
}

/** One flash: what it says goes through here. */
interface Run extends Session {
  readonly parts: FlashParts
  readonly progress: Progress
  readonly course: Course
  /** Text for a person: on stdout, unless that is for a program. */
  say(text: string, how?: 'bold'): void
}

export async function flash(session: Session): Promise<number> {
  const run = createRun(session)
  const { given, world, progress, course } = run
  try {
    const request = parseFlashRequest(given)
    if (!request.ok) throw new Fault('misuse', request.refusal.message, request.refusal)
    return await carryOut(request.value, run)
  } catch (thrown) {
    const cause = asCancel(thrown, world.signal)
    const note = renderError(cause)
    progress.show({ event: 'failed', note })
    const known = course.fields['ok'] === true ? failedFields(course.fields, note) : course.fields
    const code = run.fail(cause, { known, isTold: progressModeOf(given) === 'text' })
    const state = STATE_IN_WORDS[course.stage]
    if (state !== null) run.log.line(`  ${state(given.values['target'] ?? '')}`)
    return code
  }
}

function createRun(session: Session): Run {
  const { given, world, json, look } = session
  const mode = progressModeOf(given)
  const course: Course = { fields: {}, storedBytes: null, stage: 'checking', bytesWritten: 0 }
  const progress = createProgress(mode, {
    ...world,
    look,
    storedBytes: () => course.storedBytes,
  })
  const out = json || mode === 'ndjson' ? world.stderr : world.stdout
  const outLook = decideLook(world.env, out.isTTY === true)
  return {
    ...session,
    parts: createFlashParts(world),
    progress,
    course,
    say: (text, how) => out.write(how === undefined ? text : emphasise(text, how, outLook)),
  }
}

/** What became of the disk, for a flash that did not end well. */
const STATE_IN_WORDS: Readonly<Record<Course['stage'], ((target: string) => string) | null>> = {
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
  const { world, course, parts } = run
  const { signal } = world
  await using source = await parts.sources.open(request.image, { signal })
  const findings = await findOut(request, source, parts, signal)
  course.fields = findingsFields(findings)
  course.storedBytes = findings.image.sizeBytes
  // A document that says the same is all that a program wants of a dry run.
  if (!(request.dryRun && run.json)) run.say(renderFindings(findings))
  const plan = planOf(findings)
  if (request.dryRun) {
    await parts.checks.checkContent(plan, source, signal)
    if (!run.json) run.say('Dry run: this flash would go ahead. Nothing was written.\n')
    return conclude(run, {})
  }
  if (!world.isRoot) throw new Fault('root-required', 'writing to a disk needs root', SUDO)
  course.stage = 'ready'
  run.say(renderLoss(findings), 'bold')
  const before = world.now()
  for await (const event of parts.writer.execute(plan, source, { signal })) show(event, run)
  const seconds = world.now() - before
  await provision(plan, request, run)
  run.progress.show({ event: 'done' })
  run.say(renderDone(plan, course.bytesWritten, seconds))
  return conclude(run, resultFields(plan, course.bytesWritten, seconds))
}

const SUDO = { hint: 'Run it again as root, for example with sudo.' } as const

function planOf(findings: Findings): FlashPlan {
  const errors = renderErrors(findings)
  const planned = planFlash(findings.image, findings.target, findings.options)
  if (planned.ok && errors.length === 0) return planned.value
  throw new Fault('plan-refused', errors.join('; '), { hint: hintAgainst(findings) })
}

function conclude({ json, course, document }: Run, more: Fields): number {
  if (json) document({ ...course.fields, ...more })
  return SUCCESS
}

function show(event: FlashEvent, { course, progress }: Run) {
  if (event.event === 'writing') {
    course.stage = 'writing'
    if (event.phase === 'write') course.bytesWritten = event.bytes_written
  }
  if (event.event === 'synced') course.stage = 'written'
  progress.show(event)
}

async function provision({ target }: FlashPlan, { provisioning }: FlashRequest, run: Run) {
  if (provisioning.mode === 'none') return
  const { parts, progress, world } = run
  progress.show({ event: 'provisioning', note: provisioning.mode })
  const provisioner = await parts.loadProvisioner()
  await provisioner.apply(provisioning, target.node, { signal: world.signal })
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
