/** Hands over finished files under their release names, with checksums, package list and bill of materials. */
import { constants, copyFile, mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ALL_SUMS, billOf, packageListOf } from '#appliance/assets.ts'
import { digestFile } from '#build/cache/digest.ts'
import { renderContents, type Contents } from './contents.ts'
import { renderSbom } from './sbom.ts'
import { mergeSums, parseSums, renderSums, type Sum } from './sums.ts'

interface ReleaseOptions {
  readonly folder: string
  readonly version: string
  readonly epoch: number
  /** Begins the names of the lists. */
  readonly stem: string
  /** Name of the list of checksums over `files`. */
  readonly checksums: string
  /** The release name of each file, and its path. */
  readonly files: readonly { readonly asset: string; readonly path: string }[]
  readonly contents: Contents
}

export interface Released {
  readonly asset: string
  readonly bytes: number
  readonly digest: string
}

/**
 * Copies the files into a folder and writes what describes them. A rename completes each file; the
 * checksums come last.
 */
export async function writeRelease(options: ReleaseOptions): Promise<readonly Released[]> {
  const { folder, stem, checksums, files, contents, version, epoch } = options
  await mkdir(folder, { recursive: true })
  const released: Released[] = []
  for (const { asset, path } of files) {
    const place = join(folder, asset)
    await copyFile(path, partOf(place), constants.COPYFILE_FICLONE)
    await rename(partOf(place), place)
    released.push({ asset, bytes: (await stat(place)).size, digest: await digestFile(place) })
  }
  const sums = released.map(({ asset, digest }) => ({ file: asset, digest }))
  const sbom = renderSbom({ stem, version, epoch, files: sums, contents })
  const beside = {
    [billOf(stem)]: sbom,
    [packageListOf(stem)]: renderContents(contents),
    [checksums]: renderSums(sums),
  }
  for (const [name, text] of Object.entries(beside)) await writeText(join(folder, name), text)
  const others = Object.keys(beside).map(async (name) => ({
    file: name,
    digest: await digestFile(join(folder, name)),
  }))
  await addSums(folder, [...sums, ...(await Promise.all(others))])
  return released
}

/** Updates the list of the whole folder; lines of files that no longer exist are dropped. */
async function addSums(folder: string, sums: readonly Sum[]): Promise<void> {
  const place = join(folder, ALL_SUMS)
  const known = parseSums(await readFile(place, 'utf8').catch(() => ''))
  const there = await Promise.all(
    known.map(async ({ file }) => (await stat(join(folder, file)).catch(() => null)) !== null),
  )
  await writeText(
    place,
    renderSums(
      mergeSums(
        known.filter((_, at) => there[at]),
        sums,
      ),
    ),
  )
}

/** Distinct for each build, because two may write to one folder. */
const partOf = (path: string) => `${path}.${process.pid}.part`

async function writeText(path: string, text: string): Promise<void> {
  await writeFile(partOf(path), text)
  await rename(partOf(path), path)
}
