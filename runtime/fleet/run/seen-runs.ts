/** Runs as a person with a scope sees them: those of some machines only. */
import type { Runs } from './runs.ts'

interface SeenMacs {
  sees(mac: string): boolean
  list(): readonly string[]
}

export function createSeenRuns(runs: Runs, { sees, list }: SeenMacs): Runs {
  const within = <Filter>(filter: Filter) => ({ ...filter, among: list() })
  return {
    // Named one by one: a new member has to be decided here.
    take: runs.take,
    end: runs.end,
    giveUp: runs.giveUp,
    saveLog: runs.saveLog,
    remove: runs.remove,
    prune: runs.prune,
    marks: runs.marks,
    onLost: runs.onLost,
    sweep: runs.sweep,
    writtenVersion: runs.writtenVersion,
    findWritten: (mac) => (sees(mac) ? runs.findWritten(mac) : null),
    listEndedFlashes: (since) => runs.listEndedFlashes(since).filter(({ mac }) => sees(mac)),
    find: (mac, id) => (sees(mac) ? runs.find(mac, id) : null),
    findRunning: (mac) => (sees(mac) ? runs.findRunning(mac) : null),
    listRunning: () => runs.listRunning().filter(({ mac }) => sees(mac)),
    findLog: async (mac, id) => (sees(mac) ? await runs.findLog(mac, id) : null),
    list: (filter) => runs.list(within(filter)),
    count: (filter) => runs.count(within(filter)),
    listSortRows: (filter, column) => runs.listSortRows(within(filter), column),
    read: (numbers) => runs.read(numbers).filter(({ run }) => sees(run.mac)),
  }
}
