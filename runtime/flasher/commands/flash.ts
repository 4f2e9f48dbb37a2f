/** `flasher flash`: checks everything that can be known, then writes; a server's order is carried out by the same. */
import { Writable } from 'node:stream'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import type { FlashEvent, FlashPlan } from '#engine/flash/rules/flash-plan.ts'
import { describeFailure, type FlashOutcome } from '#engine/flash/rules/run-report.ts'
import { createFlasher } from '#engine/flash/flasher.ts'
import { emphasise } from '#kit/terminal/text/log.ts'
import { encodeFor, decideTerminalStyle } from '#kit/terminal/text/terminal-style.ts'
import { createProgress, createManyProgress, type ManyProgress } from '#flasher/text/progress.ts'
import { type DocumentFields, SUCCESS, errorFields, EXIT, FAILED } from './rules/exit-codes.ts'
import {
  findingsFields,
  hintAgainst,
  renderDone,
  renderFindings,
  renderLoss,
  resultFields,
  type FlashDocument,
  type ReportedFindings,
} from './rules/report.ts'
import { parseFlashRequest, type CommandRequest } from './rules/requests.ts'
import {
  asCancel,
  type CommandOutput,
  type CommandEnvironment,
  type CommandSession,
} from './session.ts'

interface FlashSession extends CommandOutput {
  readonly environment: Pick<
    CommandEnvironment,
    'env' | 'stdout' | 'stderr' | 'isRoot' | 'signal' | 'now'
  > &
    Partial<Pick<CommandEnvironment, 'stdin'>>
  onEvent?(event: FlashEvent, plan: FlashPlan): void
}

interface FlashRun extends FlashSession {
  /** On stdout, unless that holds a document. */
  say(text: string, how?: 'bold'): void
  /** For an image name that stands for several. Rejects with `thrown` where nobody can be asked. */
  chooseImage(thrown: unknown): Promise<string>
}

/** `ends`: one for each disk; none after a dry run. */
interface FlashEnd {
  readonly code: number
  readonly ends: readonly FlashOutcome[]
}

/** Reports errors and never throws. */
export async function flash(session: CommandSession): Promise<number> {
  const choose = (thrown: unknown) => chooseImage(thrown, session)
  const run = { ...createRun(session), chooseImage: choose }
  const request = parseFlashRequest(session.given)
  if (request.ok) return (await carryOut(request.value, run)).code
  const { message, hint } = request.refusal
  return createOneReport(run).fail(new Fault('misuse', message, { hint }))
}

/** Never throws. */
export const flashOrder = (request: CommandRequest, session: FlashSession): Promise<FlashEnd> =>
  carryOut(request, createRun(session))

async function chooseNothing(thrown: unknown): Promise<never> {
  throw thrown
}

function createRun(session: FlashSession): FlashRun {
  const { environment, json, progress } = session
  const out = json || progress === 'ndjson' ? environment.stderr : environment.stdout
  const outStyle = decideTerminalStyle(environment.env, out.isTTY === true)
  const say: FlashRun['say'] = (text, how) =>
    out.write(how === undefined ? text : emphasise(text, how, outStyle))
  return { ...session, say, chooseImage: chooseNothing }
}

async function carryOut(request: CommandRequest, run: FlashRun): Promise<FlashEnd> {
  const one = createOneReport(run)
  try {
    const { signal } = run.environment
    const { dryRun, provisioning, targets } = request
    const report = targets.length === 1 ? one : createManyReport(run)
    const flasher = createFlasher(run.environment)
    const planOf = (image: string) => flasher.plan({ ...request, image }, signal)
    await using planned = await planOf(request.image).catch(async (thrown: unknown) =>
      planOf(await run.chooseImage(thrown)),
    )
    report.found(planned.disks.map((disk) => ({ ...disk, dryRun, provisioning })))
    const refused = findRefusal(planned.disks)
    if (refused !== null) return { code: report.refuse(refused), ends: failAll(request, refused) }
    if (dryRun) {
      await flasher.checkContent(planned, signal)
      return { code: report.concludeDryRun(), ends: [] }
    }
    report.begin()
    const ends = await flasher.run(planned, {
      signal,
      onEnd: report.end,
      onEvent(event, plan) {
        run.onEvent?.(event, plan)
        report.event(event, plan)
      },
    })
    return { code: report.conclude(ends), ends }
  } catch (thrown) {
    const cause = asCancel(thrown, run.environment.signal)
    return { code: one.fail(cause), ends: failAll(request, cause) }
  }
}

async function chooseImage(
  thrown: unknown,
  { environment, json, progress }: CommandSession,
): Promise<string> {
  const { env, stdin, stderr, signal } = environment
  const names = thrown instanceof Fault ? thrown.alternatives : []
  const style = decideTerminalStyle(env, stderr.isTTY === true)
  const isSeen = style.tty && !json && progress !== 'ndjson' && stderr instanceof Writable
  const isHeard = 'isTTY' in stdin && stdin.isTTY === true
  if (names.length === 0 || !isSeen || !isHeard) throw thrown
  const { choose } = await import('#kit/terminal/prompt/choose.ts')
  // The images differ only in their digests, and a narrow terminal has no room for more.
  const choices = names.map((value) => ({
    value,
    cells: [value.slice(value.lastIndexOf('@') + 1)],
    refusal: null,
  }))
  return await choose(
    {
      message: 'Several images match. Which one should be flashed?',
      columns: DIGEST,
      choices,
      canLeave: true,
    },
    { input: stdin, output: stderr, style, encode: encodeFor(env) },
    { signal },
  )
}

const DIGEST = [{ title: 'Digest' }] as const

function findRefusal(
  disks: readonly (Parameters<typeof hintAgainst>[0] & {
    readonly plan:
      | { readonly ok: true }
      | { readonly ok: false; readonly refusal: readonly string[] }
  })[],
): Fault | null {
  const reasons = disks.flatMap(({ plan }) => (plan.ok ? [] : plan.refusal))
  if (reasons.length === 0) return null
  const hint = disks.map(hintAgainst).find((found) => found !== undefined)
  return new Fault('plan-refused', [...new Set(reasons)].join('; '), { hint })
}

const failAll = ({ targets }: CommandRequest, cause: unknown): readonly FlashOutcome[] =>
  targets.map(({ path: target }) =>
    describeFailure(cause, { target, stage: 'checking', isAborted: false }),
  )

/** `fail` reports what ended the flash of any number of disks before its plan. */
function createOneReport(run: FlashRun): FlashDocument & { fail(cause: unknown): number } {
  const { environment, json, log, style, say } = run
  let fields: DocumentFields = {}
  let storedBytes: number | null = null
  let loss = ''
  const shown = { ...environment, style, storedBytes: () => storedBytes }
  const progress = createProgress(run.progress, shown)
  function fail(cause: unknown) {
    const note = renderError(cause)
    progress.show({ event: 'failed', note })
    const known = fields['ok'] === true ? { ...fields, errors: [note], ok: false } : fields
    return run.fail(cause, { known, isPrinted: run.progress === 'text' })
  }
  function succeed(more: DocumentFields) {
    if (json) run.document({ ...fields, ...more })
    return SUCCESS
  }
  return {
    found(all) {
      for (const findings of all) {
        fields = findingsFields(findings)
        storedBytes = findings.image.sizeBytes
        loss = renderLoss(findings)
        if (!(findings.dryRun && json)) say(renderFindings(findings))
      }
    },
    refuse: fail,
    fail,
    concludeDryRun() {
      if (!json) say('Dry run: this flash would go ahead. Nothing was written.\n')
      return succeed({})
    },
    begin() {},
    event(event) {
      if (event.event === 'started') say(loss, 'bold')
      progress.show(event)
    },
    end() {},
    conclude([end]) {
      if (end === undefined) return SUCCESS
      if (end.kind !== 'done') {
        const code = fail(end.cause)
        log.line(`  ${end.leaves}`)
        return code
      }
      progress.show({ event: 'done' })
      say(renderDone(end))
      return succeed(resultFields(end))
    },
  }
}

function createManyReport(run: FlashRun): FlashDocument {
  const { environment, json, log, style, say } = run
  let found: readonly ReportedFindings[] = []
  let progress: ManyProgress | null = null
  const fieldsOf = (ends: readonly FlashOutcome[]) => {
    const [first] = found
    return manyFields(found, ends, first?.dryRun === true)
  }
  return {
    found(all) {
      found = all
      for (const findings of all) {
        if (!(findings.dryRun && json)) say(`${renderFindings(findings)}\n`)
      }
    },
    refuse: (refused) => run.fail(refused, { known: fieldsOf([]) }),
    concludeDryRun() {
      if (json) run.document(fieldsOf([]))
      else say('Dry run: these flashes would go ahead. Nothing was written.\n')
      return SUCCESS
    },
    begin() {
      for (const findings of found) say(renderLoss(findings), 'bold')
      const storedBytes = found[0]?.image.sizeBytes ?? null
      progress = createManyProgress({
        ...environment,
        mode: run.progress,
        disks: found.map(({ target }) => target.path),
        style,
        storedBytes: () => storedBytes,
      })
    },
    event: (event, { target }) => progress?.show(event, target.path),
    end(end, disk) {
      if (end.kind === 'done') {
        progress?.show({ event: 'done' }, disk)
        say(renderDone(end))
        return
      }
      progress?.show({ event: 'failed', note: end.reason }, disk)
      log.fail(`${disk}: ${end.reason}`, end.hint ?? undefined)
      log.line(`  ${end.leaves}`)
    },
    conclude(ends) {
      if (json) run.document(fieldsOf(ends))
      return exitCode(ends)
    },
  }
}

function exitCode(ends: readonly FlashOutcome[]): number {
  const failed = ends.find(({ kind }) => kind !== 'done')
  if (failed === undefined || failed.kind === 'done') return SUCCESS
  return failed.code === 'unexpected' ? FAILED : EXIT[failed.code]
}

function manyFields(
  found: readonly ReportedFindings[],
  ends: readonly FlashOutcome[],
  dryRun: boolean,
): DocumentFields {
  const targets = found.map((findings, index) => {
    const { dry_run: _, ...fields } = findingsFields(findings)
    const end = ends[index]
    if (end === undefined) return fields
    if (end.kind === 'done') return { ...fields, ...resultFields(end) }
    const { code, reason, hint } = end
    const failure = errorFields(code, reason, hint ?? undefined)
    return { ...fields, errors: [reason], ok: false, ...failure }
  })
  const errors = targets.flatMap((target) => target['errors'] ?? [])
  return { dry_run: dryRun, targets, errors, ok: errors.length === 0 }
}
