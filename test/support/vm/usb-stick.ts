/** A stick with our ISO on it, as a file: with images on it, fresh or grown already. */
import { execFileSync } from 'node:child_process'
import { closeSync, fstatSync, openSync, readSync, writeSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BOOT_AT, IMAGES_VOLUME } from '#appliance/images-volume.ts'
import { renderVolume, type VolumeFile } from '#build/exfat/volume.ts'
import { parseSpans } from '#build/gpt/table.ts'
import { growWhole } from '../disk/growing.ts'
import type { SectorDisk } from '../disk/sparse-disk.ts'

const SECTOR = 512

export interface UsbStickOptions {
  readonly iso: string
  readonly gigabytes: number
  /** Files in place of what the ISO has on its images partition. */
  readonly files?: readonly VolumeFile[]
  /** As after an earlier start: there is room for more than 22 MiB. */
  readonly isGrown?: boolean
}

export interface UsbStick extends AsyncDisposable {
  readonly path: string
  /** What the images volume is like now: room for files in bytes, and what fsck.exfat says. */
  check(): Promise<{ readonly room: number; readonly said: string }>
}

/** Needs the package exfatprogs. */
export async function makeUsbStick(options: UsbStickOptions): Promise<UsbStick> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-stick-'))
  const path = join(folder, 'stick')
  run('cp', '--sparse=always', options.iso, path)
  run('truncate', '--size', `${options.gigabytes}G`, path)
  changeFile(path, (disk) => putFiles(disk, options))
  return {
    path,
    async check() {
      const { offset, sectors } = changeFile(path, findImages)
      const volume = join(folder, 'volume')
      const place = [`skip=${offset / SECTOR}`, `count=${sectors}`, 'bs=512', 'conv=sparse']
      run('dd', 'status=none', `if=${path}`, `of=${volume}`, ...place)
      const boot = changeFile(volume, (disk) => disk.read(0, SECTOR))
      const clusters = boot.readUInt32LE(BOOT_AT.clusterCount)
      return {
        // Table of used clusters, table of capitals and root directory have one each.
        room: (clusters - 3) * IMAGES_VOLUME.clusterBytes,
        said: run('fsck.exfat', '-n', volume),
      }
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}

const run = (tool: string, ...args: string[]) =>
  execFileSync(tool, args, { encoding: 'utf8', stdio: 'pipe' })

function putFiles(disk: SectorDisk, { files, isGrown = false }: UsbStickOptions) {
  if (isGrown) growWhole(disk)
  if (files === undefined) return
  const { offset: start, sectors } = findImages(disk)
  const label = 'FLASHER_IMG'
  const time = new Date('2026-03-04T05:06:08Z')
  for (const { offset, bytes } of renderVolume({ sectors, label, serial: 1, time, files })) {
    disk.write(start + offset, bytes)
  }
}

function findImages(disk: SectorDisk) {
  const [, , images] = parseSpans(disk.read(0, 64 * SECTOR))
  if (images === undefined) throw new Error('there is no third partition')
  const { firstSector, lastSector } = images
  return { offset: firstSector * SECTOR, sectors: lastSector + 1 - firstSector }
}

function changeFile<Value>(path: string, change: (disk: SectorDisk) => Value): Value {
  const file = openSync(path, 'r+')
  try {
    return change({
      bytes: fstatSync(file).size,
      read(offset, length) {
        const bytes = Buffer.alloc(length)
        readSync(file, bytes, 0, length, offset)
        return bytes
      },
      write: (offset, bytes) => {
        writeSync(file, bytes, 0, bytes.length, offset)
      },
    })
  } finally {
    closeSync(file)
  }
}
