/** Looks up guest offsets in the tables of a qcow2 image, with few reads and little memory. */
import { imageBroken } from '#kit/net/rules/source-fault.ts'
import type { Qcow2Header } from './rules/qcow2.ts'
import {
  findInside,
  parseRefcountTable,
  planMetadata,
  type Qcow2Metadata,
} from './rules/qcow2-metadata.ts'
import {
  L1_ENTRY_BYTES,
  TABLE_BREAKS,
  nextRun,
  parseL1Entry,
  type ClusterRun,
  type TableBreak,
} from './rules/qcow2-tables.ts'
import type { HostReader } from './qcow2-host.ts'

export type Qcow2Map = Awaited<ReturnType<typeof openQcow2Map>>

/** L2 tables in memory: the next ones are read together. */
const TABLES_BYTES = 1024 * 1024

/** Checks the L1 table and the places of all tables before a disk is touched. */
export async function openQcow2Map(host: HostReader, header: Qcow2Header) {
  const { guestBytesPerTable, l1Entries, virtualBytes, clusterBytes } = header
  const l1 = Buffer.allocUnsafe(l1Entries * L1_ENTRY_BYTES)
  const refcounts = Buffer.allocUnsafe(header.refcountBytes)
  await host.readAll([
    { into: l1, host: header.l1Offset, guest: 0 },
    { into: refcounts, host: header.refcountOffset, guest: 0 },
  ])
  const l2Tables = needTables(host.name, header, l1)
  const metadata = needMetadata(host.name, header, l2Tables, parseRefcountTable(refcounts))
  let tables: ReadonlyMap<number, Buffer> = new Map()

  /** 0: nowhere. */
  const tableOf = (index: number) => l2Tables[index] ?? 0

  function findAllocated(from: number): number {
    let index = from
    while (index < l1Entries && tableOf(index) === 0) index += 1
    return index
  }

  /** The table of `first` and those that follow; earlier ones are dropped. */
  async function readTables(first: number): Promise<ReadonlyMap<number, Buffer>> {
    const read = new Map<number, Buffer>()
    const most = Math.max(1, Math.floor(TABLES_BYTES / clusterBytes))
    let index = first
    while (index < l1Entries && read.size < most) {
      read.set(index, Buffer.allocUnsafe(clusterBytes))
      index = findAllocated(index + 1)
    }
    await host.readAll(
      [...read].map(([at, into]) => ({ into, host: tableOf(at), guest: at * guestBytesPerTable })),
    )
    return read
  }

  async function runWithin(guest: number, limit: number): Promise<ClusterRun> {
    const index = Math.floor(guest / guestBytesPerTable)
    if (tableOf(index) === 0) {
      const end = Math.min(findAllocated(index) * guestBytesPerTable, virtualBytes)
      return { kind: 'zeros', bytes: end - guest }
    }
    if (!tables.has(index)) {
      tables = new Map()
      tables = await readTables(index)
    }
    const run = nextRun(tables.get(index) ?? null, guest, limit, header)
    if (!run.ok) throw broken(host.name, run.refusal, guest)
    checkRange(host.name, metadata, run.value, guest)
    return run.value
  }

  return {
    /** Zeros come in one run however long; others end at most a cluster after `limit` bytes. */
    async runAt(guest: number, limit: number): Promise<ClusterRun> {
      let run = await runWithin(guest, limit)
      while (run.kind === 'zeros' && guest + run.bytes < virtualBytes) {
        const next = await runWithin(guest + run.bytes, 1)
        if (next.kind !== 'zeros') break
        run = { kind: 'zeros', bytes: run.bytes + next.bytes }
      }
      return run
    },
  }
}

/** Throws for a broken entry. */
const needTables = (name: string, header: Qcow2Header, l1: Buffer): Float64Array =>
  Float64Array.from({ length: header.l1Entries }, (_, index) => {
    const entry = parseL1Entry(l1, index, header)
    if (!entry.ok) throw broken(name, entry.refusal, index * header.guestBytesPerTable)
    return entry.value
  })

function needMetadata(
  name: string,
  header: Qcow2Header,
  l2Tables: Float64Array,
  blocks: Float64Array,
): Qcow2Metadata {
  const planned = planMetadata(header, blocks, l2Tables)
  if (planned.ok) return planned.value
  const { refusal } = planned
  throw refusal.why === 'l2-table'
    ? broken(name, 'inside-tables', refusal.index * header.guestBytesPerTable)
    : damaged(name, 'its reference counts lie in its other tables')
}

function checkRange(name: string, metadata: Qcow2Metadata, run: ClusterRun, guest: number): void {
  if (run.kind === 'zeros') return
  const isPlain = run.kind === 'data'
  const inside = findInside(metadata, run.host, isPlain ? run.bytes : run.hostBytes)
  if (inside === null) return
  throw broken(name, 'inside-tables', isPlain ? guest + inside - run.host : guest)
}

const broken = (name: string, why: TableBreak, guest: number) =>
  damaged(name, `its table entry for guest byte ${guest} ${TABLE_BREAKS[why]}`)

const damaged = (name: string, what: string) => imageBroken(`${name} is damaged: ${what}`)
