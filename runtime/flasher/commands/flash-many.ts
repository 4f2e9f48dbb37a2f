/** What `flasher flash` says where it writes to several disks at once. */
import type { FlashOutcome } from '#engine/flash/rules/run-report.ts'
import { createManyProgress, type ManyProgress } from '#flasher/text/progress.ts'
import { errorFields, type DocumentFields, EXIT, FAILED, SUCCESS } from './rules/exit-codes.ts'
import {
  findingsFields,
  renderDone,
  renderFindings,
  renderLoss,
  resultFields,
  type ReportedFindings,
  type FlashDocument,
} from './rules/flash-report.ts'
import type { CommandOutput, CommandEnvironment } from './session.ts'

interface ManyRun extends CommandOutput {
  readonly environment: Pick<CommandEnvironment, 'stdout' | 'stderr' | 'now'>
  /** On stdout, unless that holds a document. */
  say(text: string, how?: 'bold'): void
}

export function createManyReport(run: ManyRun): FlashDocument {
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
