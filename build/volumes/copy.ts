/** Copies a volume into an image of a disk. */
import { createReadStream } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { SECTOR_BYTES } from '#build/gpt/table.ts'

/** Copies a volume to a sector of the disk. Zeros are left out, so that the file stays sparse. */
export async function copyInto(disk: FileHandle, from: string, sector: number): Promise<void> {
  let at = sector * SECTOR_BYTES
  for await (const piece of createReadStream(from, { highWaterMark: 2 ** 20 })) {
    if (!Buffer.isBuffer(piece)) throw new Error(`${from} is read as text`)
    if (piece.some((byte) => byte !== 0)) await disk.write(piece, 0, piece.length, at)
    at += piece.length
  }
}
