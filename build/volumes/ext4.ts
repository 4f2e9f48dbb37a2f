/** A small ext4 volume with the files of a folder, made by mke2fs without mounting it. */
import { open } from 'node:fs/promises'
import { $ } from 'zx/core'
import { renderGuid, SECTOR_BYTES } from '#build/gpt/table.ts'

interface Ext4Options {
  /** The folder whose files go into it. */
  readonly root: string
  readonly image: string
  readonly sectors: number
  readonly label: string
  /** Identifiers are derived from it. */
  readonly id: string
  /** Seconds since 1970. */
  readonly epoch: number
}

/** It is only read, and holds a few large files: it has no journal, and hardly any inodes. */
const FEATURES = '^has_journal,^metadata_csum_seed,^resize_inode'

/** Writes the volume into the file `image`. Rejects where mke2fs fails. */
export async function writeExt4Volume(options: Ext4Options): Promise<void> {
  const { root, image, sectors, label, id, epoch } = options
  await using file = await open(image, 'w')
  await file.truncate(sectors * SECTOR_BYTES)
  const { env: own } = process
  // Users other than root often have no /usr/sbin among their folders of programs.
  const PATH = `${own['PATH'] ?? ''}:/usr/sbin:/sbin`
  const env = { ...own, PATH, TZ: 'UTC', LC_ALL: 'C.UTF-8', SOURCE_DATE_EPOCH: String(epoch) }
  const extended = [
    `hash_seed=${renderGuid(`${id} hash`)}`,
    'lazy_itable_init=0',
    'root_owner=0:0',
  ].join(',')
  const words = [
    ['-q', '-t', 'ext4', '-b', '4096', '-N', '32', '-m', '0', '-O', FEATURES],
    ['-L', label, '-U', renderGuid(`${id} volume`), '-E', extended, '-d', root],
  ]
  await $({ quiet: true, env })`mke2fs ${words.flat()} ${image}`
}
