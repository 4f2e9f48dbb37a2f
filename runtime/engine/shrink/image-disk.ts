/** What a shrink has to know of a disk: its table, how each partition begins, and what lies between them. */
import { planAreas, TABLE_BYTES } from '#engine/capture/rules/areas.ts'
import { probeContents } from '#engine/disk/disks.ts'
import { isAllZero, type Range } from '#engine/disk/rules/extents.ts'
import { listHashed, locateEnd, SIGNATURE_BYTES } from '#engine/disk/rules/file-systems.ts'
import {
  GPT_AT,
  hasHeader,
  parsePartitions,
  parseTableSector,
} from '#engine/disk/rules/partition-tables.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { Shell } from '#kit/host/shell.ts'
import { locateGrubCore, type ShrinkDisk, type ShrinkPart } from './rules/shrink-plan.ts'
import { NTFS_NAME, SECTOR_AT } from './rules/shrunk-table.ts'
import { listData, type SparseFile } from './sparse-file.ts'

/** Rejects with a Fault `plan-refused` where its partition table does not say what lies where. */
export async function readDisk(
  shell: Shell,
  whole: SparseFile,
  sizeBytes: number,
  probeNtfs: (part: Range & { readonly number: number }) => Promise<number>,
): Promise<ShrinkDisk> {
  if (sizeBytes < LEAST_BYTES) throw noTable()
  const head = await whole.read({ offset: 0, bytes: Math.min(TABLE_BYTES, sizeBytes) })
  const sectorBytes = parseTableSector(head) ?? 512
  const end = await whole.read({ offset: sizeBytes - sectorBytes, bytes: sectorBytes })
  const contents = await probeContents(shell, whole.path)
  const areas = planAreas({ sizeBytes, sectorBytes, head, end, contents })
  if (!areas.ok) throw new Fault('plan-refused', `the image cannot be shrunk: ${areas.refusal}`)
  const partitions = areas.value.flatMap(({ number, ...area }) =>
    number !== null && number > 0 ? [{ ...area, number }] : [],
  )
  if (partitions.length === 0) throw noTable()
  const isGpt = hasHeader(head, sectorBytes)
  const hashed = await listHashedPlaces(whole, head, sectorBytes)
  const parts: ShrinkPart[] = []
  let last = 0
  for (const { number, role, offset, bytes } of partitions) {
    const first = await whole.read({ offset, bytes: SIGNATURE_BYTES })
    const isWalled = last > 0 && (await isUsed(whole, last, offset))
    const isHashed = hashed.includes(offset)
    const part = { number, role, offset, bytes, first, isHashed, isWalled }
    const { type } = await probeContents(shell, whole.path, part)
    const ntfsState = isNtfs(first) ? await probeNtfs(part) : 0
    parts.push({ ...part, type, isFollowed: await hasDataBehind(whole, part), ntfsState })
    last = offset + bytes
  }
  return {
    sizeBytes,
    sectorBytes,
    isGpt,
    head,
    parts,
    grubCore: await readGrubCore(whole, head, sizeBytes),
    isTailUsed: await isTailUsed(whole, { head, isGpt, sectorBytes, sizeBytes, last }),
  }
}

async function readGrubCore(whole: SparseFile, head: Buffer, sizeBytes: number) {
  const core = locateGrubCore(head)
  const isInside = core !== null && core * 512 < sizeBytes
  return isInside ? await whole.read({ offset: core * 512, bytes: 512 }) : null
}

/** Of a table. */
const LEAST_BYTES = 512
const noTable = () =>
  new Fault('plan-refused', 'the image cannot be shrunk: it has no partition table')

const isNtfs = (first: Buffer) => first.toString('latin1', 3, 11) === NTFS_NAME

/** The last sector may hold the copy of an NTFS' first one. */
async function hasDataBehind(
  whole: SparseFile,
  { offset, bytes, first }: Pick<ShrinkPart, 'offset' | 'bytes' | 'first'>,
): Promise<boolean> {
  const from = offset + (locateEnd(first) ?? bytes)
  const copyBytes = isNtfs(first) ? Math.min(bytes, first.readUInt16LE(SECTOR_AT)) : 0
  const copy = await whole.read({ offset: offset + bytes - copyBytes, bytes: copyBytes })
  return await isUsed(whole, from, offset + bytes - (isNtfs(copy) ? copyBytes : 0))
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

const PIECE_BYTES = 1024 * 1024

async function isUsed(whole: SparseFile, from: number, to: number): Promise<boolean> {
  for (const { offset, bytes } of listData(whole.data, { offset: from, bytes: to - from })) {
    for (let at = 0; at < bytes; at += PIECE_BYTES) {
      const piece = { offset: offset + at, bytes: Math.min(PIECE_BYTES, bytes - at) }
      if (!isAllZero(await whole.read(piece))) return true
    }
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
