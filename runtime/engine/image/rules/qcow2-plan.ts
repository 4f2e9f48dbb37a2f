/** Plans the reads of one request to a qcow2 image: parts for one buffer, compressed neighbours in one read. */
import type { ClusterRun } from './qcow2-tables.ts'

export interface Part<R extends ClusterRun = ClusterRun> {
  readonly at: number
  readonly guest: number
  readonly run: R
}

type DataPart = Part<Extract<ClusterRun, { kind: 'data' }>>
export type CompressedPart = Part<Extract<ClusterRun, { kind: 'compressed' }>>

export interface HostGroup {
  readonly host: number
  readonly bytes: number
  readonly parts: readonly CompressedPart[]
}

/** Reading a gap up to this is cheaper than another request. */
const WIDEST_GAP = 16 * 1024
/** Longer groups would leave too few to run side by side. */
const LONGEST_GROUP = 512 * 1024

export function sortParts(parts: readonly Part[]) {
  const zeros: Part[] = []
  const data: DataPart[] = []
  const compressed: CompressedPart[] = []
  for (const { at, guest, run } of parts) {
    if (run.kind === 'zeros') zeros.push({ at, guest, run })
    else if (run.kind === 'data') data.push({ at, guest, run })
    else compressed.push({ at, guest, run })
  }
  return { zeros, data, compressed }
}

/** Parallel compression leaves neighbours in the file in any order. */
export function groupCompressed(parts: readonly CompressedPart[]): readonly HostGroup[] {
  const groups: { host: number; bytes: number; parts: CompressedPart[] }[] = []
  for (const part of parts.toSorted((a, b) => a.run.host - b.run.host)) {
    const { host, hostBytes } = part.run
    const group = groups.at(-1)
    if (group !== undefined && isNeighbour(group, host, hostBytes)) {
      group.bytes = Math.max(group.bytes, host + hostBytes - group.host)
      group.parts.push(part)
    } else {
      groups.push({ host, bytes: hostBytes, parts: [part] })
    }
  }
  return groups
}

const isNeighbour = (group: Omit<HostGroup, 'parts'>, host: number, bytes: number) =>
  host - (group.host + group.bytes) <= WIDEST_GAP && host + bytes - group.host <= LONGEST_GROUP

export const clipRun = (run: ClusterRun, bytes: number): ClusterRun =>
  run.bytes <= bytes ? run : { ...run, bytes }
