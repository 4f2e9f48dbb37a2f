/** Who leads, and how long it took after each fault of a leader until another server did. */
import type { ProcessorTimes } from '#test/support/processor-times.ts'
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

/** What a takeover goes through, one after the other. */
export const STEPS = ['lease', 'catching up', 'opening'] as const

export interface Takeover {
  readonly fault: FaultKind
  /** It begins with the fault, and ends when the next server answers everything. */
  readonly milliseconds: number
  /** How much of that each of the `STEPS` took. */
  readonly steps: readonly number[]
  /** Since it took the lease: what it had of a processor, and what it waited for one, as others had them all. */
  readonly times: ProcessorTimes
  /** Another server stood by as the fault began. */
  readonly wasReady: boolean
}

type Watched = Pick<Takeover, 'fault' | 'wasReady'> & { readonly from: number }

/** A server that has taken the lease: after which fault, when, and its times at that moment. */
interface Taking {
  readonly watched: Watched
  readonly at: number
  readonly times: ProcessorTimes
  openedAt: number
}

/** `say` gets each takeover as it happens. */
export function createTakeovers(servers: number, say: (line: string) => void) {
  const roles: Role[] = Array.from({ length: servers }, () => 'away')
  const takings = new Map<number, Taking>()
  const taken: Takeover[] = []
  let leader = 0
  let watched: Watched | null = null

  function end(
    server: number,
    { watched: after, at, times, openedAt }: Taking,
    now: ProcessorTimes,
  ) {
    const endedAt = performance.now()
    const { fault, wasReady, from } = after
    const made: Takeover = {
      fault,
      wasReady,
      milliseconds: endedAt - from,
      steps: [at - from, openedAt - at, endedAt - openedAt],
      times: { worked: now.worked - times.worked, waited: now.waited - times.waited },
    }
    taken.push(made)
    say(`server ${server} leads ${renderTakeover(made)}`)
  }

  return {
    leader: () => leader,
    roles: (): readonly Role[] => roles,
    taken: (): readonly Takeover[] => taken,
    onRole(server: number, role: Role, times: ProcessorTimes) {
      roles[server] = role
      const taking = takings.get(server)
      const at = performance.now()
      if (role === 'catches-up' && watched !== null && server !== leader) {
        takings.set(server, { watched, at, times, openedAt: at })
        watched = null
      } else if (role === 'opens') {
        if (taking !== undefined) taking.openedAt = at
      } else {
        takings.delete(server)
      }
      if (role !== 'leads') return
      if (taking !== undefined) end(server, taking, times)
      leader = server
    },
    /** A fault begins: the next server that takes the lease does so because of it. */
    begin({ kind }: StormFault) {
      const wasReady = roles.some((role, at) => at !== leader && role === 'stands-by')
      watched = { fault: kind, from: performance.now(), wasReady }
    },
  }
}

const seconds = (milliseconds: number) => (milliseconds / 1000).toFixed(1)

function renderTakeover({ fault, milliseconds, steps, times, wasReady }: Takeover): string {
  const parts = STEPS.map((name, at) => `${name} ${seconds(steps[at] ?? 0)} s`).join(', ')
  const processor = `${seconds(times.worked)} s of a processor, waited ${seconds(times.waited)} s for one`
  return `${seconds(milliseconds)} s after ${fault}: ${parts}; ${processor}${wasReady ? '' : '; none stood by'}`
}
