/** Events as the page groups them: what a machine reported on its way is folded below where it led to. */
import type { JournalEvent } from '../../../../fleet/state/journal.ts'
import { isAlarm } from '../../../../fleet/state/rules/event-table.ts'

/** An event, and the reports of the machine that came before it, newest first. */
export interface FoldedEvent {
  readonly event: JournalEvent
  readonly earlier: readonly JournalEvent[]
}

/** Steps on the way to something: contacts, plans, and what has begun. */
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
 * Such as the steps of a flash below its end. How a flash ended, what somebody else did to the
 * machine and what has to be acknowledged are never folded away. `events`: newest first.
 */
export function foldSteps(events: readonly JournalEvent[]): readonly FoldedEvent[] {
  const folded: FoldedEvent[] = []
  /** What the next older step of each machine is folded below. */
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
