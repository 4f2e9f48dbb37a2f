/** Shorter times for servers of one fleet, where a test needs them to pass; those of the product are tried in test/server/real. */
import type { ClusterTimes } from '#fleet/cluster/rules/lease.ts'

/** What a server is started with besides. */
export const timesOf = (times: Partial<ClusterTimes>) => ({
  FLASHER_TEST_TIMES: JSON.stringify(times),
})

/** A leader that hangs is replaced sooner; one that is held up by other work for two seconds stays. */
export const SHORT_LEASE = { leaseMs: 3200, gapMs: 1200, sureMs: 1500 } as const

/** Nobody comes to lead: whoever waits learns it sooner. */
export const SHORT_HOLD = { holdMs: 4000 } as const
