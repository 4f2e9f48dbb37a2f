/** Events as the page groups them: what a machine reported on its way is folded below where it led to. */
import type { JournalEvent } from '#fleet/state/journal.ts'
import { isAlarm } from '#fleet/state/rules/event-table.ts'

/** `earlier`: the machine's reports before it, newest first. */
export interface FoldedEvent {
  readonly event: JournalEvent
  readonly earlier: readonly JournalEvent[]
}

const STEPS: ReadonlySet<string> = new Set([
  'machine.discovered',
  'machine.inventory',
  'netboot.pxe.offered',
  'netboot.flasher.armed',
  'netboot.pxe.plan',
  'machine.flash_started',
  'machine.capture_started',
])

/**
 * Folds steps of a flash below its end, for example. Ends of flashes, acts of others and failures
 * to acknowledge stay visible. `events`: newest first.
 */
export function foldSteps(events: readonly JournalEvent[]): readonly FoldedEvent[] {
  const folded: FoldedEvent[] = []
  /** By machine: where its next older step is folded. */
  const open = new Map<string, JournalEvent[]>()
  for (const event of events) {
    const { subject_id: subject, actor } = event
    const isOfMachine = subject !== null && actor === 'pxe-client'
    const above = isOfMachine && isStep(event) ? open.get(subject) : undefined
    if (above !== undefined) {
      above.push(event)
      continue
    }
    const earlier: JournalEvent[] = []
    folded.push({ event, earlier })
    if (subject === null) continue
    if (isOfMachine) open.set(subject, earlier)
    else open.delete(subject)
  }
  return folded
}

const isStep = ({ kind }: JournalEvent): boolean => STEPS.has(kind) && !isAlarm(kind)
