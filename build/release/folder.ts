/** Writes the folder of a release: assets with their checksums and lists, the manifest, `SHA256SUMS`, signatures. */
import { constants, copyFile, mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  ALL_SUMS,
  checksumsOf,
  IMAGER_LIST,
  RELEASE_MANIFEST,
  signatureOf,
} from '#appliance/assets.ts'
import type { AssetGroup, ReleaseLine } from '#appliance/release.ts'
import { digestFile } from '#build/cache/digest.ts'
import { renderSums } from '#build/pack/sums.ts'
import { listsOf } from './collect.ts'
import { renderManifest, type HashedFile } from './manifest.ts'
import { decodeMedia, renderImagerFile, xzOf } from './media.ts'
import { renderRecipes } from './recipes.ts'
import { signFile } from './signature.ts'

interface FolderOptions {
  readonly line: ReleaseLine
  readonly version: string
  readonly tag: string
  /** Seconds since 1970. */
  readonly epoch: number
  readonly groups: readonly AssetGroup[]
  /** Where the files were built. */
  readonly from: string
  /** Replaced by the release as a whole. */
  readonly to: string
  /** The text of `release.toml.in`. */
  readonly template: string
  /** An SSH key; null: the release is not signed. */
  readonly key: string | null
  /** The archive of the apt repository among the files that were built; null: there is none. */
  readonly apt: string | null
  /** The address below which the files will be published; null: it is not known yet. */
  readonly url: string | null
}

/**
 * Writes the folder, which a rename completes.
 *
 * @returns all files of the folder, sorted by name.
 */
export async function writeFolder(options: FolderOptions): Promise<readonly HashedFile[]> {
  const { groups, from, to, template, key, url, apt, version } = options
  const part = `${to}.${process.pid}.part`
  await rm(part, { recursive: true, force: true })
  await mkdir(part, { recursive: true })
  try {
    const assets: HashedFile[] = []
    const beside: HashedFile[] = []
    for (const group of groups) {
      const files: HashedFile[] = []
      for (const name of group.files) files.push(await take(from, part, name))
      for (const name of listsOf(group)) beside.push(await take(from, part, name))
      beside.push(await put(part, group.checksums, renderSums(files.map(asSum))))
      assets.push(...files)
    }
    if (apt !== null) {
      const file = await take(from, part, apt)
      beside.push(file, await put(part, checksumsOf(apt), renderSums([asSum(file)])))
    }
    const decoded = await decodeMedia(part, version, assets)
    for (const { name } of assets) {
      const xz = xzOf(name)
      if (xz === null || !decoded.has(xz)) continue
      const packed = await look(part, xz)
      beside.push(packed, await put(part, checksumsOf(xz), renderSums([asSum(packed)])))
    }
    if (url !== null) {
      const list = renderImagerFile({ ...options, url, files: [...assets, ...beside], decoded })
      beside.push(await put(part, IMAGER_LIST, list))
      beside.push(...(await putRecipes(part, { ...options, url, files: assets })))
    }
    const manifest = renderManifest(template, { ...options, files: assets })
    beside.push(await put(part, RELEASE_MANIFEST, manifest))
    const all = [...assets, ...beside].toSorted((a, b) => (a.name < b.name ? -1 : 1))
    const sums = await put(part, ALL_SUMS, renderSums(all.map(asSum)))
    const signed = key === null ? [] : await sign(part, key)
    await rm(to, { recursive: true, force: true })
    await rename(part, to)
    return [...all, sums, ...signed].toSorted((a, b) => (a.name < b.name ? -1 : 1))
  } finally {
    await rm(part, { recursive: true, force: true })
  }
}

/** The current line's packages are for every line: both are in them. */
async function putRecipes(
  part: string,
  { line, ...facts }: Parameters<typeof renderRecipes>[0] & Pick<FolderOptions, 'line'>,
): Promise<readonly HashedFile[]> {
  const recipes: HashedFile[] = []
  if (line !== 'current') return recipes
  for (const { name, text } of renderRecipes(facts)) recipes.push(await put(part, name, text))
  return recipes
}

const asSum = ({ name, digest }: HashedFile) => ({ file: name, digest })

/** The manifest, which says what the tag is, and the checksums of everything. */
async function sign(folder: string, key: string): Promise<readonly HashedFile[]> {
  const signatures: HashedFile[] = []
  for (const name of [RELEASE_MANIFEST, ALL_SUMS]) {
    await signFile(join(folder, name), key)
    signatures.push(await look(folder, signatureOf(name)))
  }
  return signatures
}

async function take(from: string, to: string, name: string): Promise<HashedFile> {
  await copyFile(join(from, name), join(to, name), constants.COPYFILE_FICLONE)
  return await look(to, name)
}

async function put(folder: string, name: string, text: string): Promise<HashedFile> {
  await writeFile(join(folder, name), text)
  return await look(folder, name)
}

async function look(folder: string, name: string): Promise<HashedFile> {
  const path = join(folder, name)
  return { name, bytes: (await stat(path)).size, digest: await digestFile(path) }
}
