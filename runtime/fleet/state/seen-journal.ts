/** The journal as somebody reads it who sees some of the machines. */
import type { Journal } from './journal.ts'

/** Events about these machines, and about none. */
export const createSeenJournal = (
  journal: Journal,
  listSeen: () => readonly string[],
): Journal => ({
  ...journal,
  // A batch has a line only if all its machines are seen, so no line stands for others here.
  list: (filter) => journal.list({ ...filter, folded: undefined, among: listSeen() }),
  countAlarms: () => journal.countAlarms(listSeen()),
  acknowledge: (ids, acknowledged) => journal.acknowledge(ids, acknowledged, listSeen()),
})
