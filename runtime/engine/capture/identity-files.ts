/** Finds the files of a system's identity on an ext4 partition, and empties them in the image. */
import { emptyFile, readExtFacts, renderInodeRefusal } from './rules/ext-inode.ts'
import {
  IDENTITY_FOLDERS,
  parseInodeRange,
  parseListing,
  type FoundFile,
} from './rules/identity.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { Range } from '#engine/disk/rules/extents.ts'
import { createSlot, type Device } from '#engine/disk/device.ts'
import type { Shell } from '#kit/host/shell.ts'
import type { Patch } from './disk-reader.ts'

/** With a file system that debugfs reads, as a device of its own. */
export interface ExtPart {
  readonly node: string
  readonly range: Range
  /** With the superblock. */
  readonly first: Buffer
}

const TIMEOUT_MS = 60_000

/** Null where debugfs is missing or cannot read it. */
export async function listIdentityFiles(
  shell: Shell,
  { node }: Pick<ExtPart, 'node'>,
  signal: AbortSignal,
): Promise<readonly FoundFile[] | null> {
  if (!(await shell.has('debugfs'))) return null
  const listings = await Promise.all(
    IDENTITY_FOLDERS.map(async (range) =>
      parseListing(await debug(shell, `ls -p ${range.folder}`, node, signal), range),
    ),
  )
  const whole = listings.filter((files) => files !== null)
  if (whole.length < listings.length) return null
  return [...new Map(whole.flat().map((file) => [file.inode, file])).values()]
}

/** Throws a Fault where a file cannot be emptied. */
export async function emptyIdentityFiles(
  shell: Shell,
  device: Pick<Device, 'read'>,
  part: ExtPart,
  files: readonly FoundFile[],
  signal: AbortSignal,
): Promise<readonly Patch[]> {
  const facts = readExtFacts(part.first)
  const patches: Patch[] = []
  for (const file of files) {
    const { stdout } = await debug(shell, `imap <${file.inode}>`, part.node, signal)
    const within = parseInodeRange(stdout, facts)
    if (within === null) throw cannotEmpty(file, 'its inode was not found')
    const inode = { offset: locate(part, file, within), bytes: within.bytes }
    const emptied = emptyFile(await readBytes(device, inode), file.inode, facts)
    if (!emptied.ok) throw cannotEmpty(file, renderInodeRefusal(emptied.refusal))
    patches.push({ offset: inode.offset, bytes: emptied.value.inode })
    for (const range of emptied.value.content) {
      patches.push({ offset: locate(part, file, range), bytes: Buffer.alloc(range.bytes) })
    }
  }
  return patches
}

/** A Fault where the range goes beyond the partition. */
function locate({ range }: ExtPart, file: FoundFile, { offset, bytes }: Range): number {
  if (offset + bytes <= range.bytes) return range.offset + offset
  throw cannotEmpty(file, 'its file system is damaged')
}

const cannotEmpty = ({ path }: FoundFile, reason: string) =>
  new Fault('plan-refused', `${path} cannot be cleared in the image: ${reason}`, {
    hint: 'Capture without --generalize, or remove the file on the machine first.',
  })

const debug = (shell: Shell, request: string, node: string, signal: AbortSignal) =>
  shell.run(['debugfs', '-R', request, node], { signal, timeout: TIMEOUT_MS })

const PAGE = 4096

/** Direct reads are of whole pages. */
async function readBytes(device: Pick<Device, 'read'>, { offset, bytes }: Range) {
  const start = Math.floor(offset / PAGE) * PAGE
  const slot = createSlot(Math.ceil((offset + bytes - start) / PAGE) * PAGE)
  await device.read(slot, start)
  return slot.subarray(offset - start, offset - start + bytes)
}
