/** A release of small files, as the build lays it out. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { execFile } from 'node:child_process'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { RELEASES, type ReleaseLine } from '#appliance/release.ts'
import { writeRelease } from '#build/pack/release.ts'
import { collectAssets } from '#build/release/collect.ts'
import { writeFolder } from '#build/release/folder.ts'

const execute = promisify(execFile)
const EPOCH = 1_800_000_000

export interface ReleaseFolderOptions {
  readonly line: ReleaseLine
  readonly version?: string
  readonly tag?: string
  /** An SSH key; null: it is not signed. */
  readonly key?: string | null
  /** The size of each file, whose content depends on its name and the version. */
  readonly bytes?: number
  /** The asset whose content is not what its name says. */
  readonly damage?: string
  /** Where it will be published; null: it is not known. */
  readonly url?: string | null
}

/** Every asset of the line, built and published by the same code as a real one. */
export async function makeReleaseFolder(options: ReleaseFolderOptions) {
  const { line, version = '1.2.3', tag = `v${version}`, key = null } = options
  const { bytes = 20_000, url = null } = options
  const root = await mkdtemp(join(tmpdir(), 'flasher-release-'))
  const [from, source, to] = [join(root, 'dist'), join(root, 'source'), join(root, 'release')]
  await mkdir(source)
  for (const group of RELEASES[line](version)) {
    const files = []
    for (const [at, asset] of group.files.entries()) {
      const path = join(source, asset)
      await writeFile(
        path,
        pack(
          asset === options.damage ? '' : asset,
          Buffer.alloc(bytes + at, `${asset} ${version} `),
        ),
      )
      files.push({ asset, path })
    }
    const contents = { debian: [], npm: [], programs: [] }
    const rest = { folder: from, version, epoch: EPOCH, contents }
    const stem = group.stem ?? group.checksums
    await writeRelease({ ...rest, stem, checksums: group.checksums, files })
  }
  const { groups } = collectAssets(line, version, new Set(await readdir(from)))
  const template = await readFile('release.toml.in', 'utf8')
  const facts = { line, version, tag, epoch: EPOCH }
  const files = await writeFolder({ ...facts, groups, from, to, template, key, url, apt: null })
  return {
    path: to,
    tag,
    version,
    files,
    read: (name: string) => readFile(join(to, name)),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true }),
  }
}

/** The content of a file as its name says. */
function pack(name: string, content: Buffer): Buffer {
  if (name.endsWith('.zst')) return zstdCompressSync(content)
  return name.endsWith('.img.gz') ? gzipSync(content) : content
}

/** An SSH key without a passphrase. */
export async function makeSigningKey(type = 'ed25519') {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-key-'))
  const path = join(folder, 'key')
  await execute('ssh-keygen', ['-q', '-t', type, '-N', '', '-C', 'release key', '-f', path])
  const publicKey = (await readFile(`${path}.pub`, 'utf8')).trim()
  return {
    path,
    publicKey,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  }
}
