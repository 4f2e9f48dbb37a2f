/** What a server must read before it may lead: nothing, some rows, everything, or nothing because it is another database. */
import type { ClusterMembership } from '#fleet/state/rules/cluster-membership.ts'
import type { Position } from './lease.ts'

export interface LogEnds {
  readonly cluster: string
  readonly newest: Position
  /** The oldest kept change. */
  readonly oldest: number
  /** The id of the change with the server's number; null: none. */
  readonly atSeq: string | null
}

type CatchUp = 'nothing' | 'changes' | 'everything' | 'other-database' | 'older-database'

/** `membership` null: it has followed no database yet. */
export function decideCatchUp(membership: ClusterMembership | null, ends: LogEnds): CatchUp {
  if (membership === null) return 'everything'
  if (membership.cluster !== ends.cluster) return 'other-database'
  if (membership.seq < 0) return 'everything'
  if (ends.newest.seq < membership.seq) return 'older-database'
  if (ends.atSeq === null) return membership.seq < ends.oldest ? 'everything' : 'older-database'
  // A database that went back and then on has other changes under the same numbers.
  if (ends.atSeq !== membership.change) return 'older-database'
  return ends.newest.seq === membership.seq ? 'nothing' : 'changes'
}
