/** What every server does each second, whether it leads or not: it says that it is there, and keeps what servers share alike. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { createQueue } from '#kit/host/queue.ts'
import { readBeat, readMembers, touchMember, writeMember, type Member } from './members.ts'
import { toFault, type PgSession } from './postgres.ts'
import type { ClusterMembership } from '#fleet/state/rules/change-count.ts'
import type { ClusterNotes } from './cluster-notes.ts'
import type { NetbootShare } from './netboot-share.ts'
import { type ClusterTimes, mayBeCopy, type MemberFacts, type MemberRow } from './rules/lease.ts'
import type { NetbootRow } from './rules/shared-netboot.ts'
import { describePostgresError } from './rules/postgres-fault.ts'
import type { ServerStanding, SharedFiles } from './shared-files.ts'
import { hasTables, readLease, type Lease } from './tables.ts'

export interface ClusterView {
  readonly ownId: string
  readonly lease: Lease
  readonly members: readonly MemberRow[]
  /** `unreadable`: they are rows, but this server has no key for them. */
  readonly secrets: 'shared' | 'own' | 'unreadable'
  readonly survivesHost: boolean
  /** What machines boot; null: not said yet. */
  readonly netboot: NetbootRow | null
}

export type Presence = ReturnType<typeof createPresence>

export type OwnFacts = Omit<MemberFacts, 'netboot'>

interface PresenceOptions {
  readonly member: Member
  readonly files: SharedFiles
  open(): Promise<PgSession>
  readonly times: Pick<ClusterTimes, 'holdMs'>
  /** Null: it has not joined yet. */
  membership(): ClusterMembership | null
  facts(): OwnFacts
  readonly notes: ClusterNotes
  /** Null: this program has no live systems. */
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

/** Begins at once, in its own session; asks a database that is away again each second. */
export function createPresence(options: PresenceOptions) {
  const { member, open, membership, facts, times } = options
  const netboot = options.netboot ?? NO_NETBOOT
  const inOrder = createQueue(1)
  let session: PgSession | null = null
  let view: ClusterView | null = null
  let standing: ServerStanding = { role: 'stands-by', epoch: null }
  let [said, isOver] = ['', false]

  /** Rejects if the database is away, or the secrets' rows cannot be opened. */
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

  /** Null: no tables yet, or not this server's. */
  async function look(present: PgSession): Promise<ClusterView | null> {
    if (!(await hasTables(present))) return null
    const lease = await readLease(present)
    const joined = membership()
    // A server that has not joined, or has another database, gives and takes nothing.
    if (joined === null || joined.cluster !== lease.cluster) return null
    const saying = JSON.stringify({ ...facts(), netboot: netboot.fact() })
    const isKnown = await touchMember(present, member.id, joined.seq)
    if (!isKnown || saying !== said) await writeMember(present, member, joined.seq, saying)
    said = saying
    return await exchange(present, lease, { ...options, netboot, standing })
  }

  const ticks = startTicks(() => inOrder(beat), options.log)

  return {
    view: () => view,
    /** Resolves when our changes are in the database, else a Fault `no-leader` after 12 s. */
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
     * Before this server waits for its turn; it sees no beat of ours. Rejects with a Fault
     * `input-invalid` if another server has its id; an absent database is not waited for.
     */
    check: () => inOrder(() => checkStart(options)),
    /** Rejects as `share`, before anything of it was used. */
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

/** Brings and takes what is shared; returns the database's view after it. */
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
 * Before anybody can reach this server. Rejects with a Fault `input-invalid` if it cannot open the
 * secrets' rows; an absent database is not waited for.
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

/** Two and a half beats. */
const COPY_MS = 2500
const LOOK_MS = 250

/** An unchanged row is our own, from before the restart. */
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
      hint: 'Delete cluster.json in the state folder of the copy, to make it a separate server.',
    },
  )

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
      // The leader, or the server that waits, reports an absent database.
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
