/** What every server does each second, whether it leads or not: it says that it is there, and keeps what servers share alike. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault, renderError } from '../../kit/foundation/fault.ts'
import { createQueue } from '../../kit/host/queue.ts'
import { readBeat, readMembers, touchMember, writeMember, type Member } from './members.ts'
import { toFault, type PgSession } from './postgres.ts'
import type { ClusterMembership } from '../state/rules/cluster-membership.ts'
import type { ClusterNotes } from './cluster-notes.ts'
import type { NetbootShare } from './netboot-share.ts'
import { mayBeCopy, type MemberFacts, type MemberRow } from './rules/member.ts'
import type { NetbootRow } from './rules/shared-netboot.ts'
import { describePostgresError } from './rules/postgres-fault.ts'
import type { ClusterTimes } from './rules/times.ts'
import type { ServerStanding, SharedFiles } from './shared-files.ts'
import { hasTables, readLease, type Lease } from './tables.ts'

export interface ClusterView {
  readonly ownId: string
  readonly lease: Lease
  readonly members: readonly MemberRow[]
  /** Whether the secrets are rows; `unreadable`: they are, and this server has no key for them. */
  readonly secrets: 'shared' | 'own' | 'unreadable'
  readonly survivesHost: boolean
  /** What machines boot; null: no server has said it yet. */
  readonly netboot: NetbootRow | null
}

export type Presence = ReturnType<typeof createPresence>

/** What a server says of itself beside what is known of its live systems. */
export type OwnFacts = Omit<MemberFacts, 'netboot'>

interface PresenceOptions {
  readonly member: Member
  readonly files: SharedFiles
  open(): Promise<PgSession>
  /** A change waits for its database for `holdMs`. */
  readonly times: Pick<ClusterTimes, 'holdMs'>
  /** Where this server's state stands; null: it has not joined yet. */
  membership(): ClusterMembership | null
  facts(): OwnFacts
  readonly notes: ClusterNotes
  /** The live systems that servers share; null: this program has none. */
  readonly netboot: PresentNetboot | null
  readonly log: { warn(message: string): void }
}

type PresentNetboot = Pick<NetbootShare, 'exchange' | 'fact' | 'row' | 'end'>

const NO_NETBOOT: PresentNetboot = {
  exchange: () => Promise.resolve(),
  fact: () => ({ version: '', trouble: '' }),
  row: () => null,
  end: () => Promise.resolve(),
}

const BEAT_MS = 1000

/** Begins at once, in a session of its own; a database that is away is asked again each second. */
export function createPresence(options: PresenceOptions) {
  const { member, open, membership, facts, times } = options
  const netboot = options.netboot ?? NO_NETBOOT
  const inOrder = createQueue(1)
  let session: PgSession | null = null
  let view: ClusterView | null = null
  let standing: ServerStanding = { role: 'stands-by', epoch: null }
  let [said, isOver] = ['', false]

  /** Rejects where the database is away, or the rows of secrets cannot be opened. */
  async function beat(): Promise<void> {
    try {
      if (session === null || session.isOver()) session = await open()
      view = await look(session)
    } catch (thrown) {
      view = null
      if (thrown instanceof Fault || thrown instanceof TypeError) throw thrown
      session?.drop()
      throw toFault(describePostgresError(thrown), thrown)
    }
  }

  /** Null: there are no tables yet, or they are none of this server's. */
  async function look(present: PgSession): Promise<ClusterView | null> {
    if (!(await hasTables(present))) return null
    const lease = await readLease(present)
    const joined = membership()
    // Who was not let in yet, or has another database, gives and takes nothing.
    if (joined === null || joined.cluster !== lease.cluster) return null
    const saying = JSON.stringify({ ...facts(), netboot: netboot.fact() })
    const isKnown = await touchMember(present, member.id, joined.seq)
    if (!isKnown || saying !== said) await writeMember(present, member, joined.seq, saying)
    said = saying
    return await exchange(present, lease, { ...options, netboot, standing })
  }

  const ticks = startTicks(() => inOrder(beat), options.log)

  return {
    /** Null: the database does not answer, or has not yet. */
    view: () => view,
    /**
     * Resolves once what this server changed is in the database. Rejects with a Fault `no-leader` where
     * that takes longer than 12 s.
     */
    async share(): Promise<void> {
      const until = performance.now() + times.holdMs
      for (;;) {
        try {
          await inOrder(beat)
          return
        } catch (thrown) {
          const isAway = thrown instanceof Fault && thrown.code === 'no-leader'
          if (!isAway || isOver || performance.now() > until) throw thrown
          await sleep(BEAT_MS)
        }
      }
    },
    /**
     * Before this server waits for its turn. Rejects with a Fault `input-invalid` where another
     * server has its id; a database that is away is for others to wait for. No beat of ours is
     * among those that it sees.
     */
    check: () => inOrder(() => checkStart(options)),
    /** This server leads now, under that epoch. Rejects as `share`, before anything of it was used. */
    async lead(epoch: number): Promise<void> {
      standing = { role: 'begins-to-lead', epoch }
      await this.share()
      standing = { role: 'leads', epoch }
    },
    async end(): Promise<void> {
      isOver = true
      ticks.end()
      await netboot.end()
      await session?.[Symbol.asyncDispose]()
    },
  }
}

interface BeatExchange extends Pick<PresenceOptions, 'member' | 'files' | 'notes'> {
  readonly netboot: PresentNetboot
  readonly standing: ServerStanding
}

/** Has everything that servers share brought and taken, and returns what the database says then. */
async function exchange(
  session: PgSession,
  lease: Lease,
  { member, files, notes, netboot, standing }: BeatExchange,
): Promise<ClusterView> {
  const { cluster, holder } = lease
  await files.exchange(session, cluster, standing)
  const members = await readMembers(session)
  const own = { ownId: member.id, members }
  await netboot.exchange({ ...own, session, cluster, notes, standing, holder })
  const secrets = files.isOn ? 'shared' : (await files.lacksKey(session)) ? 'unreadable' : 'own'
  return { ...own, lease, secrets, survivesHost: session.survivesHost, netboot: netboot.row() }
}

/**
 * Before anybody can reach this server. Rejects with a Fault `input-invalid` where it cannot open
 * the rows of secrets; a database that is away is for others to wait for.
 */
export const checkKey = ({
  files,
  ...parts
}: Pick<PresenceOptions, 'open' | 'files'>): Promise<void> =>
  checkRows(parts, async (session) => files.check(session, (await readLease(session)).cluster))

const checkStart = ({ member, ...parts }: PresenceOptions): Promise<void> =>
  checkRows(parts, (session) => checkCopy(session, member))

async function checkRows(
  { open }: Pick<PresenceOptions, 'open'>,
  check: (session: PgSession) => Promise<void>,
): Promise<void> {
  try {
    await using session = await open()
    if (await hasTables(session)) await check(session)
  } catch (thrown) {
    if (thrown instanceof Fault && thrown.code === 'input-invalid') throw thrown
  }
}

/** Two beats and a half. */
const COPY_MS = 2500
const LOOK_MS = 250

/** A row that stays as it was is this server's own, from before its restart. */
async function checkCopy(session: PgSession, member: Member): Promise<void> {
  const before = await readBeat(session, member.id)
  if (before === null || !mayBeCopy(before, member)) return
  const until = performance.now() + COPY_MS
  while (performance.now() < until) {
    await sleep(LOOK_MS)
    const present = await readBeat(session, member.id)
    if (present !== null && present.seen !== before.seen) throw refuseCopy(present)
  }
}

const refuseCopy = ({ name, url }: Pick<Member, 'name' | 'url'>) =>
  new Fault(
    'input-invalid',
    `the state folder is a copy of the one that ${name} (${url}) uses: both would be one server to the others`,
    {
      hint: 'Delete cluster.json in the state folder of the copy: it is a server of its own then.',
    },
  )

/** One after the other, each second; a failure is said once. */
function startTicks(beat: () => Promise<void>, log: PresenceOptions['log']) {
  let isBeating = false
  let warned = ''
  const tick = async () => {
    if (isBeating) return
    isBeating = true
    try {
      await beat()
      warned = ''
    } catch (thrown) {
      // That the database is away is said by who leads or waits for it.
      if (thrown instanceof Fault && thrown.code === 'no-leader') return
      const why = renderError(thrown)
      if (why !== warned) log.warn(`what servers share is not up to date: ${why}`)
      warned = why
    } finally {
      isBeating = false
    }
  }
  const timer = setInterval(() => void tick(), BEAT_MS).unref()
  return { end: () => clearInterval(timer) }
}
