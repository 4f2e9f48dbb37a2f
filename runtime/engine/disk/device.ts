/** One block device, held exclusively, for direct and aligned reads and writes; a disk's ends are cleared first and written last. */
import { readFileSync } from 'node:fs'
import { constants, type FileHandle, open } from 'node:fs/promises'
import { basename } from 'node:path'
import { Fault } from '#kit/foundation/fault.ts'
import { settle } from '#kit/host/watch.ts'
import { type EndPiece, FIRST_BYTES, locateEnds, type Range } from './rules/extents.ts'
import {
  type GptRefusal,
  moveBackup,
  type MovedBackup,
  parseBackupBytes,
} from './rules/partition-tables.ts'

export type Device = Awaited<ReturnType<typeof openDevice>>

interface DeviceFacts {
  readonly node: string
  readonly sizeBytes: number
  readonly sectorBytes: number
  readonly access?: 'read' | 'write'
}

/** Direct I/O accepts it: a resizable ArrayBuffer begins on a page, unlike `Buffer.alloc`. */
export const createSlot = (bytes: number): Buffer =>
  Buffer.from(new ArrayBuffer(bytes, { maxByteLength: bytes }))

/** Gone from the bus, or never to answer again. */
const LOST = new Set(['ENXIO', 'ENODEV', 'ENOMEDIUM'])
const codeOf = (thrown: unknown) =>
  thrown instanceof Error && 'code' in thrown ? String(thrown.code) : String(thrown)

/** A disk's bus may be reset under a write; the second try counts. */
const TRIES = 2
/** First steps of the search for a bad sector. */
const SEARCH_BYTES = 64 * 1024
/** Closing does not wait for ever for writes under way. */
const CLOSE_MS = 500

/**
 * Opens with O_EXCL: nobody can mount the device or its partitions. Offsets and lengths are
 * multiples of the sector; buffers come from `createSlot`. Rejects with a Fault `target-raced` or
 * `root-required`.
 */
export async function openDevice({ node, sizeBytes, sectorBytes, access = 'write' }: DeviceFacts) {
  const { O_RDONLY, O_RDWR, O_EXCL, O_DIRECT } = constants
  const mode = access === 'read' ? O_RDONLY : O_RDWR
  const file = await open(node, mode | O_EXCL | O_DIRECT).catch((cause: unknown) => {
    throw openingFault(node, access, cause)
  })

  async function transfer(doing: 'write' | 'read', slot: Buffer, offset: number) {
    for (let at = 0, tries = 1; at < slot.length;) {
      try {
        const bytes = await TRANSFERS[doing](file, slot, at, offset + at)
        if (bytes <= 0) throw new Error('the disk ends here')
        at += bytes
      } catch (cause) {
        const isLost = LOST.has(codeOf(cause))
        if (tries >= TRIES || isLost) {
          if (doing === 'read' && !isLost) at += await findBad(slot.subarray(at), offset + at)
          throw ioFault(access === 'read' ? 'source' : doing, node, offset + at, cause)
        }
        tries += 1
      }
    }
  }

  const tryRead = (slot: Buffer, offset: number) =>
    TRANSFERS.read(file, slot, 0, offset).then(
      (bytes) => bytes === slot.length,
      () => false,
    )

  /** A disk may try each bad sector for half a minute. */
  async function findBad(slot: Buffer, offset: number) {
    let [from, end] = [0, slot.length]
    for (const step of [SEARCH_BYTES, sectorBytes]) {
      while (from < end && (await tryRead(slot.subarray(from, from + step), offset + from))) {
        from += step
      }
      end = Math.min(end, from + step)
    }
    return from < slot.length ? from : 0
  }

  return {
    node,
    /** Tools inherit it, so that the disk stays held until they have ended as well. */
    fd: file.fd,
    sizeBytes,
    sectorBytes,
    write: (slot: Buffer, offset: number) => transfer('write', slot, offset),
    read: (slot: Buffer, offset: number) => transfer('read', slot, offset),
    /** False: not all of it could be read. */
    tryRead,
    async flush() {
      await file.datasync().catch((cause: unknown) => {
        throw new Fault('write-failed', `${node}: the disk rejected a write (${codeOf(cause)})`, {
          cause,
        })
      })
    },
    async [Symbol.asyncDispose]() {
      // A disk that does not answer must not hold the program; the kernel closes it with the
      // process.
      await settle(file.close(), CLOSE_MS)
    },
  }
}

const TRANSFERS = {
  write: async (file: FileHandle, slot: Buffer, at: number, offset: number) =>
    (await file.write(slot, at, slot.length - at, offset)).bytesWritten,
  read: async (file: FileHandle, slot: Buffer, at: number, offset: number) =>
    (await file.read(slot, at, slot.length - at, offset)).bytesRead,
}

function openingFault(node: string, access: 'read' | 'write', cause: unknown) {
  const code = codeOf(cause)
  if (code === 'EBUSY') {
    return new Fault('target-raced', `${node} is in use by another program`, {
      cause,
      hint: 'Unmount it, stop its RAID, LVM, ZFS or swap, or close the program that holds it.',
    })
  }
  if (code === 'EACCES' || code === 'EPERM') {
    const what = access === 'read' ? 'read' : 'written'
    return new Fault('root-required', `${node} can only be ${what} as root`, { cause })
  }
  return new Fault('target-raced', `${node} cannot be opened (${code})`, { cause })
}

const FAULTS = {
  write: ['write-failed', 'write error'],
  read: ['verify-failed', 'read error'],
  source: ['source-broken', 'read error'],
} as const

function ioFault(doing: keyof typeof FAULTS, node: string, offset: number, cause: unknown) {
  const code = codeOf(cause)
  const [fault, error] = FAULTS[doing]
  const what = LOST.has(code) || hasNoSize(node) ? 'the disk is gone' : error
  return new Fault(fault, `${node}: ${what} at byte ${offset} (${code})`, { cause })
}

/** A pulled NVMe disk first becomes one of size 0: its writes end in ENOSPC. */
function hasNoSize(node: string): boolean {
  try {
    return Number(readFileSync(`/sys/class/block/${basename(node)}/size`, 'utf8')) === 0
  } catch {
    return false
  }
}

export const notHeld = (node: string, { offset, bytes }: Range): Fault =>
  notWhatWasWritten(node, `between byte ${offset} and ${offset + bytes}`)

export const notWhatWasWritten = (node: string, where: string): Fault =>
  new Fault('verify-failed', `${node} does not return what was written, ${where}`, {
    hint: 'Do not use this disk. The disk, its cable or its reader is failing, or the disk is smaller than it claims.',
  })

/** Clears the first MiB and a backup GPT, so that nothing boots. Rejects with a Fault. */
export async function clearEnds(device: Device): Promise<void> {
  const { headBytes, tailStart } = locateEnds(device.sizeBytes)
  // The table first: none may be left that describes lost content.
  const first = Math.min(FIRST_BYTES, headBytes)
  await device.write(createSlot(first), 0)
  if (first < headBytes) await device.write(createSlot(headBytes - first), first)
  if (tailStart < device.sizeBytes) {
    const end = createSlot(device.sizeBytes - tailStart)
    await device.read(end, tailStart)
    const bytes = Math.min(parseBackupBytes(end), end.length)
    const whole = Math.ceil(bytes / device.sectorBytes) * device.sectorBytes
    if (whole > 0) await device.write(createSlot(whole), device.sizeBytes - whole)
  }
  await device.flush()
}

/** In memory. Throws a Fault `plan-refused` where the image has no backup that can be moved. */
export function fixBackup(
  head: Buffer,
  { sizeBytes, sectorBytes }: Pick<Device, 'sizeBytes' | 'sectorBytes'>,
): MovedBackup {
  const moved = moveBackup(head, sizeBytes, sectorBytes)
  if (moved.ok) return moved.value
  throw new Fault('plan-refused', `the backup GPT cannot be moved: ${REFUSALS[moved.refusal]}`, {
    hint: 'Flash without --fix-gpt.',
  })
}

const REFUSALS: Readonly<Record<GptRefusal, string>> = {
  'no-gpt': 'the image has no GPT for this sector size',
  'damaged-gpt': "the image's GPT is damaged",
  'disk-too-small': 'a partition is in its place',
}

/** Each piece is on the medium before the next. Rejects with a Fault. */
export async function writeEnds(
  device: Device,
  pieces: readonly EndPiece[],
  verify: boolean,
  signal: AbortSignal,
): Promise<void> {
  for (const { offset, bytes } of pieces) {
    signal.throwIfAborted()
    const slot = alignedCopy(bytes, device.sectorBytes)
    await device.write(slot, offset)
    await device.flush()
    if (verify) await verifyPiece(device, offset, slot)
  }
}

async function verifyPiece(device: Device, offset: number, slot: Buffer) {
  const back = createSlot(slot.length)
  await device.read(back, offset)
  if (back.equals(slot)) return
  throw notHeld(device.node, { offset, bytes: slot.length })
}

/** The table first; failed writes do not end it. A Fault only if the disk cannot be flushed. */
export async function eraseEnds(device: Device, pieces: readonly EndPiece[]): Promise<void> {
  for (const { offset, bytes } of pieces.toReversed()) {
    const zeros = createSlot(wholeSectors(bytes.length, device.sectorBytes))
    await device.write(zeros, offset).catch(() => undefined)
  }
  if (pieces.length > 0) await device.flush()
}

const wholeSectors = (bytes: number, sectorBytes: number) =>
  Math.ceil(bytes / sectorBytes) * sectorBytes

function alignedCopy(bytes: Buffer, sectorBytes: number) {
  const slot = createSlot(wholeSectors(bytes.length, sectorBytes))
  bytes.copy(slot)
  return slot
}
