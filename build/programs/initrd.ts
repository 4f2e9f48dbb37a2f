/** Builds an initrd: an archive that names its only root, then the archive of drivers and scripts. */
import { createHash } from 'node:crypto'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { rename, writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { TEXT, requireOptions } from '#build/steps/program-options.ts'
import { ROOT_MANIFEST } from '#appliance/initrd.ts'
import { fileEntry, renderNewc } from '#build/initrd/newc.ts'

interface Job {
  /** The compressed archive that the kernel unpacks after ours. */
  readonly files: string
  readonly version: string
  /** Seconds since 1970: the time of every file. */
  readonly epoch: number
  /** The only root that the initrd accepts, and its name on a server. */
  readonly squashfs: string
  readonly name: string
  readonly out: string
}

/**
 * The kernel takes any number of archives, each compressed or not. Ours comes first, so that its
 * version is known where memory is too little for the rest.
 */
async function makeInitrd({ files, version, epoch, squashfs, name, out }: Job): Promise<string> {
  const head = renderNewc(
    [
      { kind: 'folder', name: 'etc' },
      fileEntry('etc/flasher-release', `${version}\n`),
      fileEntry(ROOT_MANIFEST, `${await digestOf(squashfs)} ${statSync(squashfs).size} ${name}\n`),
    ],
    epoch,
  )
  const initrd = Buffer.concat([head, readFileSync(files)])
  await writeFile(`${out}.part`, initrd)
  await rename(`${out}.part`, out)
  return `${basename(out)}: ${(initrd.length / 1e6).toFixed(1)} MB`
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}

if (import.meta.main) {
  const { values: given } = parseArgs({
    options: { files: TEXT, version: TEXT, epoch: TEXT, squashfs: TEXT, name: TEXT, out: TEXT },
  })
  const values = requireOptions(given)
  console.log(await makeInitrd({ ...values, epoch: Number(values.epoch) }))
}
