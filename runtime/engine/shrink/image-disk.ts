/** What a shrink has to know of a disk: its table, how each partition begins, and what lies between them. */
import { planAreas, TABLE_BYTES } from '#engine/capture/rules/areas.ts'
import { probeContents } from '#engine/disk/disks.ts'
import { isAllZero } from '#engine/disk/rules/extents.ts'
import { listHashed, SIGNATURE_BYTES } from '#engine/disk/rules/file-systems.ts'
import {
  GPT_AT,
  hasHeader,
  parsePartitions,
  parseTableSector,
} from '#engine/disk/rules/partition-tables.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { Shell } from '#kit/host/shell.ts'
import { locateGrubCore, type ShrinkDisk, type ShrinkPart } from './rules/shrink-plan.ts'
import { listData, type SparseFile } from './sparse-file.ts'

/** Rejects with a Fault `plan-refused` where its partition table does not say what lies where. */
export async function readDisk(
  shell: Shell,
  whole: SparseFile,
  sizeBytes: number,
): Promise<ShrinkDisk> {
  const head = await whole.read({ offset: 0, bytes: Math.min(TABLE_BYTES, sizeBytes) })
  const sectorBytes = parseTableSector(head) ?? 512
  const end = await whole.read({ offset: sizeBytes - sectorBytes, bytes: sectorBytes })
  const contents = await probeContents(shell, whole.path)
  const areas = planAreas({ sizeBytes, sectorBytes, head, end, contents })
  if (!areas.ok) throw new Fault('plan-refused', `the image cannot be shrunk: ${areas.refusal}`)
  const partitions = areas.value.filter(({ number }) => number !== null && number > 0)
  if (partitions.length === 0) {
    throw new Fault('plan-refused', 'the image cannot be shrunk: it has no partition table')
  }
  const isGpt = hasHeader(head, sectorBytes)
  const hashed = await listHashedPlaces(whole, head, sectorBytes)
  const parts: ShrinkPart[] = []
  let last = 0
  for (const { number, role, offset, bytes } of partitions) {
    const first = await whole.read({ offset, bytes: SIGNATURE_BYTES })
    const isWalled = last > 0 && (await isUsed(whole, last, offset))
    const isHashed = hashed.includes(offset)
    parts.push({ number: number ?? 0, role, offset, bytes, first, isHashed, isWalled })
    last = offset + bytes
  }
  const core = locateGrubCore(head)
  const isInside = core !== null && core * 512 < sizeBytes
  return {
    sectorBytes,
    isGpt,
    head,
    parts,
    grubCore: isInside ? await whole.read({ offset: core * 512, bytes: 512 }) : null,
    isTailUsed: await isTailUsed(whole, { head, isGpt, sectorBytes, sizeBytes, last }),
  }
}

/** Where partitions begin that dm-verity protects. */
async function listHashedPlaces(whole: SparseFile, head: Buffer, sectorBytes: number) {
  const listed = parsePartitions(head, sectorBytes)
  const seen = []
  for (const partition of listed.ok ? listed.value : []) {
    const bytes = Math.min(SIGNATURE_BYTES, partition.bytes)
    const first = await whole.read({ offset: partition.offset, bytes })
    seen.push({ ...partition, first, behind: null })
  }
  return listHashed(seen).map(({ offset }) => offset)
}

async function isUsed(whole: SparseFile, from: number, to: number): Promise<boolean> {
  for (const range of listData(whole.data, { offset: from, bytes: to - from })) {
    if (!isAllZero(await whole.read(range))) return true
  }
  return false
}

interface Tail extends Pick<ShrinkDisk, 'head' | 'isGpt' | 'sectorBytes'> {
  readonly sizeBytes: number
  readonly last: number
}

/** The backup of a GPT is made anew. */
async function isTailUsed(whole: SparseFile, tail: Tail): Promise<boolean> {
  const { head, isGpt, sectorBytes, sizeBytes, last } = tail
  if (!isGpt) return await isUsed(whole, last, sizeBytes)
  const header = head.subarray(sectorBytes)
  const entries = header.readUInt32LE(GPT_AT.entryCount) * header.readUInt32LE(GPT_AT.entryBytes)
  const backup = Number(header.readBigUInt64LE(GPT_AT.otherLba)) * sectorBytes
  const from = Math.max(last, Math.min(sizeBytes, backup - entries))
  const to = Math.min(sizeBytes, Math.max(last, backup + sectorBytes))
  return (await isUsed(whole, last, from)) || (await isUsed(whole, to, sizeBytes))
}
