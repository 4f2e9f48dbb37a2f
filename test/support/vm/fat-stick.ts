/** A stick as a shop sells it, formatted with FAT32, as a file, with the files of a folder on it. */
import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'

const SECTOR = 512
const MIB = 2048
const FIRST_SECTOR = MIB

/** Writes the file `path` of so many MiB. Needs the packages fdisk and mtools. */
export function makeFatStick(path: string, megabytes: number, folder: string): void {
  const sectors = megabytes * MIB - FIRST_SECTOR
  run('truncate', ['--size', `${megabytes}M`, path])
  // One partition of the type that Windows gives to FAT32.
  run('sfdisk', ['--quiet', path], `label: dos\nstart=${FIRST_SECTOR}, type=c\n`)
  const at = `${path}@@${FIRST_SECTOR * SECTOR}`
  const shape = ['-T', String(sectors), '-h', '64', '-s', '32']
  run('mformat', ['-i', at, '-F', '-v', 'STICK', ...shape, '::'])
  const names = readdirSync(folder).map((name) => join(folder, name))
  run('mcopy', ['-Q', '-s', '-i', at, ...names, '::/'])
}

const run = (tool: string, args: readonly string[], input = '') =>
  execFileSync(tool, args, { encoding: 'utf8', input })
