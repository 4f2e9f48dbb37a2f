/** Registers new machines at a bounded rate and number, with disks of a bounded size: anyone in reach can create records. */
import { takeOne, type Bucket } from '#kit/foundation/bucket.ts'
import { shortenList, weighDisks } from '#fleet/machine/rules/list-budget.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { Inventory, MachineBase } from '#engine/inventory/rules/machine.ts'
import type { ServerServices } from './site.ts'

/** How long a count of unassigned rows is trusted; additions here are counted meanwhile. */
const RECOUNT_MS = 30_000
/** At most one event in this time. */
const QUIET_MS = 60_000

/** The returned function says whether its caller may be stored as a new machine. */
export function createDiscovery(
  site: ServerServices,
  /** Called once a minute while new machines are turned away. */
  refused: (reason: string) => void,
): () => boolean {
  const { line, machines, settings, elapsed = () => performance.now() } = site
  let bucket: Bucket | null = null
  let count = 0
  let countedAt = -Infinity
  let reportedAt = -Infinity

  function recount(at: number): void {
    if (at - countedAt < RECOUNT_MS) return
    countedAt = at
    count = machines.peekAll().filter((machine) => line.describe(machine).isUnassigned).length
  }

  function turnAway(reason: string, at: number): false {
    if (at - reportedAt >= QUIET_MS) {
      reportedAt = at
      refused(reason)
    }
    return false
  }

  return () => {
    const at = elapsed()
    const { discoveriesPerMinute, mostUnassigned } = settings()
    const rate = { perMinute: discoveriesPerMinute, most: discoveriesPerMinute }
    const next = takeOne(bucket, at, rate)
    if (next === null) return turnAway(`more than ${discoveriesPerMinute} a minute`, at)
    bucket = next
    recount(at)
    if (count >= mostUnassigned) return turnAway(`${count} machines are unassigned`, at)
    count += 1
    return true
  }
}

export function createDiskLists({
  line,
  machines,
  elapsed = () => performance.now(),
}: ServerServices): (mac: Mac, inventory: Inventory) => Inventory {
  let sum = 0
  let countedAt = -Infinity

  function weigh(machine: MachineBase): number {
    const { disks, isUnassigned } = line.describe(machine)
    return isUnassigned && disks !== null ? weighDisks(disks) : 0
  }

  function recount(at: number): void {
    if (at - countedAt < RECOUNT_MS) return
    countedAt = at
    sum = machines.peekAll().reduce((all, machine) => all + weigh(machine), 0)
  }

  return (mac, inventory) => {
    const machine = machines.peek(mac)
    if (machine === null || !line.describe(machine).isUnassigned) return inventory
    recount(elapsed())
    const others = sum - weigh(machine)
    const kept = shortenList(inventory, others)
    sum = others + weighDisks(kept.disks)
    return kept
  }
}
