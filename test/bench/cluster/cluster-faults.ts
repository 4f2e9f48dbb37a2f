/** The list of faults of a storm: made from a seed, so that the same one comes again. */
import { createRandom } from '#test/support/collect.ts'

/** What each kind does, for the list that is printed. Who leads at that moment is the leader. */
export const FAULT_KINDS = {
  'kill-leader': 'the leader is killed',
  'kill-standby': 'a server that stands by is killed',
  'hang-leader': 'the leader is stopped (SIGSTOP) and goes on later',
  'hang-standby': 'a server that stands by is stopped (SIGSTOP) and goes on later',
  'stop-leader': 'the leader ends in order and starts again',
  'cut-leader': 'the leader loses its connections to the database',
  'cut-standby': 'a server that stands by loses its connections to the database',
  'silent-leader': 'nothing passes between the leader and the database',
  'silent-standby': 'nothing passes between a server that stands by and the database',
  'cut-servers': 'nobody reaches the leader by way of the other servers',
  'silent-servers': 'nothing passes between the other servers and the leader',
  'database-stop': 'PostgreSQL is stopped and starts again',
  'database-kill': 'PostgreSQL is ended at once (SIGQUIT) and starts again',
  'database-slow': 'each answer of the database comes 2 s later',
  'database-full': 'the disk of the database is full',
  'disk-full': "the disk of the leader's state is full",
  clock: 'the clock of a server is set by an hour',
  'cache-kill': 'a cache is killed and starts again',
  'cache-hang': 'a cache is stopped (SIGSTOP) and goes on later',
} as const satisfies Record<string, string>

export type FaultKind = keyof typeof FAULT_KINDS

export interface StormFault {
  readonly kind: FaultKind
  /** How long it lasts, or how long what was killed stays away, in seconds. */
  readonly seconds: number
  /** How long nothing else happens after it, in seconds. */
  readonly rest: number
  /** From 0 to 1: which of several it is. */
  readonly which: number
}

/** How often each kind comes, beside the others, and how long it lasts at least and at most. */
const MIX: Readonly<Record<FaultKind, readonly [weight: number, least: number, most: number]>> = {
  'kill-leader': [5, 1, 6],
  'kill-standby': [2, 1, 4],
  'hang-leader': [5, 1, 10],
  'hang-standby': [2, 1, 10],
  'stop-leader': [3, 1, 3],
  'cut-leader': [3, 1, 10],
  'cut-standby': [1, 1, 10],
  'silent-leader': [3, 1, 10],
  'silent-standby': [1, 1, 10],
  'cut-servers': [2, 1, 8],
  'silent-servers': [2, 1, 12],
  'database-stop': [2, 1, 30],
  'database-kill': [2, 1, 10],
  'database-slow': [1, 4, 10],
  'database-full': [1, 2, 6],
  'disk-full': [1, 2, 6],
  clock: [2, 0, 0],
  'cache-kill': [2, 1, 8],
  'cache-hang': [1, 1, 12],
}

const KINDS = Object.keys(FAULT_KINDS).filter((name): name is FaultKind =>
  Object.hasOwn(FAULT_KINDS, name),
)
const [MIN_REST, MAX_REST] = [0.5, 6]

/** The first faults are one of each kind, in the order of chance, so that a short storm has all it can. */
export function listFaults(count: number, seed: number): readonly StormFault[] {
  const random = createRandom(seed)
  const between = (least: number, most: number) =>
    Math.round((least + random() * (most - least)) * 10) / 10
  const one = (kind: FaultKind): StormFault => {
    const [, least, most] = MIX[kind]
    return {
      kind,
      seconds: between(least, most),
      rest: between(MIN_REST, MAX_REST),
      which: random(),
    }
  }
  const total = KINDS.reduce((sum, kind) => sum + MIX[kind][0], 0)
  const pick = (): FaultKind => {
    let left = random() * total
    return KINDS.find((kind) => (left -= MIX[kind][0]) < 0) ?? 'kill-leader'
  }
  const each = KINDS.map((kind) => ({ kind, at: random() })).toSorted((a, b) => a.at - b.at)
  return Array.from({ length: count }, (_, at) => one(each[at]?.kind ?? pick()))
}

export const renderFault = ({ kind, seconds, rest }: StormFault): string =>
  `${kind}${seconds > 0 ? ` ${seconds} s` : ''}, then ${rest} s`
