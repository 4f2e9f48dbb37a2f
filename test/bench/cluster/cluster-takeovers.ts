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
  /** Until it answered, and of these: until it took the lease, had caught up, and answered. */
  readonly milliseconds: number
  readonly steps: readonly number[]
  /** Another server stood by as the fault began. */
  readonly wasReady: boolean
}

/** `say` gets each takeover as it happens. */
export function createTakeovers(servers: number, say: (line: string) => void) {
  const since: Partial<Record<Role, number>>[] = Array.from({ length: servers }, () => ({}))
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
      const now = performance.now()
      roles[server] = role
      since[server] = { ...since[server], [role]: now }
      if (role !== 'leads') return
      if (watched !== null && server !== leader) {
        const { fault, from, wasReady } = watched
        const { 'catches-up': tookAt = now, opens: openedAt = now } = since[server]
        const steps = [tookAt - from, openedAt - tookAt, now - openedAt]
        const made = { fault, wasReady, steps, milliseconds: now - from }
        taken.push(made)
        say(`server ${server} leads ${renderTakeover(made)}`)
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

function renderTakeover({ fault, milliseconds, steps, wasReady }: Takeover): string {
  const parts = steps.map((step) => (step / 1000).toFixed(1)).join(' + ')
  const ready = wasReady ? '' : '; none stood by'
  return `${(milliseconds / 1000).toFixed(1)} s after ${fault} (lease, catching up, opening: ${parts} s${ready})`
}
