/** Probes the contents of a disk's partitions if udev did not report them. */
import type { DiskPart, SurveyedDisk } from './rules/disk.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { Range } from './rules/extents.ts'
import { parseBlkid, type Contents } from './rules/volume.ts'
import type { Shell } from '#kit/host/shell.ts'

/** A device that does not answer must not hold up everything. */
const TIMEOUT_MS = 5000
const MAX_PARTS = 64

/** Best effort: without root or the tool the disk stays as it is. */
export async function fillContents(shell: Shell, disk: SurveyedDisk): Promise<SurveyedDisk> {
  const listed = disk.parts.length === 0 ? [wholeOf(disk)] : disk.parts
  const parts = await Promise.all(
    listed.map((part, index) => (index < MAX_PARTS ? fillPart(shell, part) : part)),
  )
  const isBlank = disk.parts.length === 0 && parts.every(({ fstype }) => fstype === null)
  return { ...disk, parts: isBlank ? [] : parts }
}

/** A file system may lie on the disk itself. */
const wholeOf = ({ path }: SurveyedDisk): DiskPart => ({
  device: path,
  sizeBytes: 0,
  fstype: null,
  label: null,
  partlabel: null,
})

async function fillPart(shell: Shell, part: DiskPart): Promise<DiskPart> {
  if (part.fstype !== null) return part
  try {
    const { type, label, partlabel } = await probeContents(shell, part.device)
    return { ...part, fstype: type, label, partlabel: part.partlabel ?? partlabel }
  } catch (thrown) {
    if (thrown instanceof Fault) return part
    throw thrown
  }
}

/**
 * Reads the device, as udev's record may be outdated. `blkid` exits with 2 for "nothing known", 8
 * for "more than one thing".
 */
export async function probeContents(shell: Shell, node: string, part?: Range): Promise<Contents> {
  const place = part === undefined ? [] : [`--offset=${part.offset}`, `--size=${part.bytes}`]
  const argv = ['blkid', '--probe', '--output', 'export', ...place, node]
  return parseBlkid((await shell.run(argv, { timeout: TIMEOUT_MS })).stdout)
}
