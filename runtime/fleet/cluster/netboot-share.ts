/** Keeps the live systems of all servers alike: the row says what machines boot, and who lacks a file copies it from another server. */
import { randomUUID } from 'node:crypto'
import { Fault } from '#kit/foundation/fault.ts'
import type { ClusterNotes } from './cluster-notes.ts'
import { createCopies, type CopiesOptions } from './netboot-copies.ts'
import { createNetbootFiles } from './netboot-files.ts'
import { readNetbootRow, writeNetbootRow } from './netboot-row.ts'
import type { PgSession } from './postgres.ts'
import type { MemberRow } from './rules/member.ts'
import {
  decideNetboot,
  isWhole,
  parseNetboot,
  renderContent,
  type LocalNetboot,
  type NetbootFact,
  type NetbootRow,
  type SharedNetboot,
} from './rules/shared-netboot.ts'
import type { ServerStanding } from './shared-files.ts'

type NetbootShareOptions = Omit<CopiesOptions, 'files' | 'refresh'>

interface NetbootExchange {
  readonly session: PgSession
  readonly cluster: string
  readonly notes: ClusterNotes
  readonly standing: ServerStanding
  readonly ownId: string
  readonly members: readonly MemberRow[]
  readonly holder: string
}

export type NetbootShare = ReturnType<typeof createNetbootShare>

const NAME = 'netboot'

interface ReadRow {
  readonly row: NetbootRow
  /** Null: this release cannot read the row. */
  readonly wanted: SharedNetboot | null
}

/** Reads the boot directory in the background: an exchange never waits for it. */
export function createNetbootShare(options: NetbootShareOptions) {
  const ending = new AbortController()
  const files = createNetbootFiles(options.bootFiles, ending.signal)
  const folder = createReading(files)
  const copies = createCopies({ ...options, files, refresh: folder.refresh })
  let stored: ReadRow | null = null
  let [epoch, begun]: [number | null, LocalNetboot | null] = [null, null]

  function follow(standing: ServerStanding, local: LocalNetboot): void {
    if (standing.epoch === epoch) return
    epoch = standing.epoch
    begun = epoch === null ? null : local
  }

  async function bring(exchange: NetbootExchange, own: LocalNetboot): Promise<void> {
    const { session, standing } = exchange
    if (standing.epoch === null) return
    await copies.stop()
    const next = { version: randomUUID(), content: renderContent(own) }
    const before = stored?.row.version ?? null
    if (!(await writeNetbootRow(session, next, { before, epoch: standing.epoch }))) return
    stored = { row: next, wanted: own }
    await keepNote(exchange, next, own)
  }

  async function keepNote(exchange: NetbootExchange, { version }: NetbootRow, local: LocalNetboot) {
    if (notedBy(exchange) === version) return
    if (epoch !== null) begun = local
    await exchange.notes.keep(exchange.cluster, NAME, { version, digest: '' })
  }

  async function settle(exchange: NetbootExchange, local: LocalNetboot): Promise<void> {
    const { row = null } = stored ?? {}
    const leads = exchange.standing.role === 'leads'
    const decided = decideNetboot({ leads, noted: notedBy(exchange), row, local, begun })
    if (decided === 'bring') return await bring(exchange, local)
    if (stored === null) return
    if (decided === 'take') return copies.begin({ ...exchange, ...stored, local })
    if (decided === 'nothing') return
    copies.settle()
    await keepNote(exchange, stored.row, local)
  }

  return {
    /** The leader brings what was chosen here; others copy what is missing. */
    async exchange(exchange: NetbootExchange): Promise<void> {
      const row = await readNetbootRow(exchange.session)
      stored = row === null ? null : { row, wanted: parseNetboot(row.content) }
      const local = folder.last()
      void folder.refresh(stored?.wanted ?? null)
      if (local === null) return
      follow(exchange.standing, local)
      await settle(exchange, local)
    },
    fact(): NetbootFact {
      const [wanted, local] = [stored?.wanted ?? null, folder.last()]
      const has = wanted !== null && local !== null && isWhole(wanted, local)
      return { version: has ? (stored?.row.version ?? '') : '', trouble: copies.trouble() }
    },
    row: () => stored?.row ?? null,
    isStale(name: string): boolean {
      const here = folder.last()?.known.get(name)
      const named = stored?.wanted?.files.find((file) => file.name === name)
      return here !== undefined && named !== undefined && here.sha256 !== named.sha256
    },
    find: files.find,
    async end(): Promise<void> {
      ending.abort(new Fault('cancelled', 'the server stops'))
      await Promise.all([copies.stop(), folder.settled()])
    },
  }
}

const notedBy = ({ notes, cluster }: NetbootExchange): string | null =>
  notes.find(cluster, NAME)?.version ?? null

/** One reading at a time; keeps the last one. */
function createReading(files: ReturnType<typeof createNetbootFiles>) {
  let [last, wanted]: [LocalNetboot | null, SharedNetboot | null] = [null, null]
  let reading: Promise<void> | null = null
  return {
    last: () => last,
    refresh(named: SharedNetboot | null = wanted): Promise<void> {
      wanted = named
      reading ??= files
        .read(wanted?.files.map(({ name }) => name) ?? [])
        .then((read) => {
          if (read !== null) last = read
        })
        // Best effort: the folder is read again in a second.
        .catch(() => undefined)
        .finally(() => {
          reading = null
        })
      return reading
    },
    settled: async () => reading,
  }
}
