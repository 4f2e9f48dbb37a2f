/** Recognises the volumes that cloud-init prefers to a seed in the root file system, by their first bytes. */

const LABELS = [
  { mark: 'FAT32', markAt: 82, labelAt: 71, bytes: 11 },
  { mark: 'FAT', markAt: 54, labelAt: 43, bytes: 11 },
  { mark: 'CD001', markAt: 0x8001, labelAt: 0x8028, bytes: 32 },
] as const

export function isCidata(first: Buffer): boolean {
  const read = (at: number, bytes: number) => first.toString('latin1', at, at + bytes)
  const found = LABELS.find(({ mark, markAt }) => read(markAt, mark.length) === mark)
  return found !== undefined && read(found.labelAt, found.bytes).trim().toLowerCase() === 'cidata'
}

export const CIDATA_PREFERRED =
  'the image has a partition labelled CIDATA, which cloud-init reads instead of a seed in its root file system'
