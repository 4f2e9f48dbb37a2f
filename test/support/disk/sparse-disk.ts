/** A disk in memory that keeps only what was written to it, however large it is. */
import { closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'

const SECTOR = 512

export interface SectorDisk {
  readonly bytes: number
  /** Offset and length are whole sectors. */
  read(offset: number, length: number): Buffer
  write(offset: number, bytes: Uint8Array): void
}

export interface SparseDisk extends SectorDisk {
  /** The same disk, whose later writes are its own. */
  copy(): SparseDisk
  /** Puts a part of it into a sparse file. */
  save(path: string, from: number, bytes: number): void
  /** Its sectors that hold something, in hexadecimal: equal for equal disks. */
  print(): ReadonlyMap<number, string>
}

export function createSparseDisk(
  bytes: number,
  sectors: Map<number, Buffer> = new Map(),
): SparseDisk {
  return {
    bytes,
    read(offset, length) {
      const first = offset / SECTOR
      const all = Array.from(
        { length: length / SECTOR },
        (_, at) => sectors.get(first + at) ?? Buffer.alloc(SECTOR),
      )
      return Buffer.concat(all)
    },
    write(offset, written) {
      for (let at = 0; at < written.length; at += SECTOR) {
        const sector = Buffer.alloc(SECTOR)
        sector.set(written.subarray(at, at + SECTOR))
        sectors.set((offset + at) / SECTOR, sector)
      }
    },
    copy: () => createSparseDisk(bytes, new Map(sectors)),
    save(path, from, length) {
      const file = openSync(path, 'w')
      try {
        ftruncateSync(file, length)
        for (const [number, sector] of sectors) {
          const at = number * SECTOR - from
          if (at >= 0 && at < length) writeSync(file, sector, 0, SECTOR, at)
        }
      } finally {
        closeSync(file)
      }
    },
    print: () =>
      new Map(
        [...sectors]
          .filter(([, sector]) => sector.some((byte) => byte !== 0))
          .toSorted(([one], [two]) => one - two)
          .map(([number, sector]) => [number, sector.toString('hex')]),
      ),
  }
}
