/** Who leads, and how long it took after each fault of a leader until another server did. */
import type { FaultKind, StormFault } from './cluster-faults.ts'
import type { Role } from './cluster-process.ts'

/** What ends a leadership, and within how many seconds another server leads where one stands by. */
export const TAKEOVER_KINDS = {
  killed: { faults: ['kill-leader'], within: 2 },
  'ended in order': { faults: ['stop-leader'], within: 2 },
  'stopped, cut or silent': { faults: ['hang-leader', 'cut-leader', 'silent-leader'], within: 7 },
} as const satisfies Record<
  string,
  { readonly faults: readonly FaultKind[]; readonly within: number }
>

export interface Takeover {
  readonly fault: FaultKind
  readonly milliseconds: number
  /** Another server stood by as the fault began. */
  readonly wasReady: boolean
}

export function createTakeovers(servers: number) {
  const roles: Role[] = Array.from({ length: servers }, () => 'away')
  const taken: Takeover[] = []
  let leader = 0
  let watched: {
    readonly fault: FaultKind
    readonly from: number
    readonly wasReady: boolean
  } | null = null

  return {
    leader: () => leader,
    roles: (): readonly Role[] => roles,
    taken: (): readonly Takeover[] => taken,
    onRole(server: number, role: Role) {
      roles[server] = role
      if (role !== 'leads') return
      if (watched !== null && server !== leader) {
        const { fault, from, wasReady } = watched
        taken.push({ fault, wasReady, milliseconds: performance.now() - from })
      }
      watched = null
      leader = server
    },
    /** A fault begins: the next server that leads takes over after it. */
    begin({ kind }: StormFault) {
      const wasReady = roles.some((role, at) => at !== leader && role === 'stands-by')
      watched = { fault: kind, from: performance.now(), wasReady }
    },
  }
}
