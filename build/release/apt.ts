/** Lays out the apt repository of a release, as any web server serves it; signs it with an OpenPGP key. */
import {
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { $ } from 'zx/core'
import { digestFile } from '#build/cache/digest.ts'

const SUITE = 'stable'
const COMPONENT = 'main'
const ARCHS = ['amd64', 'arm64'] as const
const POOL = `pool/${COMPONENT}/f/flasher`
/** apt reads the one that it likes best; small repositories need no other compression. */
const PACKERS: Readonly<Record<string, readonly string[]>> = {
  '.xz': ['xz', '--keep', '--threads=1'],
  '.gz': ['gzip', '--keep', '--no-name', '-9'],
}

interface AptOptions {
  /** Paths of the packages. */
  readonly debs: readonly string[]
  /** Replaced as a whole. */
  readonly to: string
  /** Seconds since 1970: the date of the repository. */
  readonly epoch: number
  /** A file with a secret key, or the fingerprint of one in the caller's keyring. */
  readonly key: string
}

/**
 * Writes the tree, which a rename completes: `pool/`, `dists/stable/` with indexes by name and by
 * hash, `Release` signed inside (`InRelease`) and beside (`Release.gpg`), and the public key as
 * `flasher.asc`. It has no Valid-Until, since nobody signs it anew when it gets old.
 *
 * @throws {Error} A tool is missing or refuses, with its message.
 */
export async function writeAptTree({ debs, to, epoch, key }: AptOptions): Promise<void> {
  const part = `${to}.${process.pid}.part`
  await rm(part, { recursive: true, force: true })
  try {
    await mkdir(join(part, POOL), { recursive: true })
    for (const deb of debs) await copyFile(deb, join(part, POOL, deb.split('/').at(-1) ?? deb))
    const dists = join(part, 'dists', SUITE)
    for (const arch of ARCHS) await writeIndexes(part, dists, arch)
    await writeFile(join(dists, 'Release'), await renderReleaseFile(part, epoch))
    await signTree(part, dists, key)
    // Web servers and apt read it as users of their own.
    await $({ quiet: true })`chmod -R a+rX,u+w,go-w ${part}`
    await rm(to, { recursive: true, force: true })
    await rename(part, to)
  } finally {
    await rm(part, { recursive: true, force: true })
  }
}

/**
 * Packs such a tree; the bytes depend on its content alone.
 *
 * @throws {Error} with the message of tar.
 */
export async function packAptTree(tree: string, file: string, epoch: number): Promise<void> {
  const how = ['--sort=name', '--owner=0', '--group=0', '--numeric-owner', `--mtime=@${epoch}`]
  await $({ quiet: true })`tar --create ${how} --mode=a+rX,u+w,go-w --file ${file} -C ${tree} .`
}

async function writeIndexes(root: string, dists: string, arch: string): Promise<void> {
  const folder = join(dists, COMPONENT, `binary-${arch}`)
  const byHash = join(folder, 'by-hash/SHA256')
  await mkdir(byHash, { recursive: true })
  const { stdout } = await $({
    quiet: true,
    cwd: root,
  })`apt-ftparchive --arch ${arch} packages pool`
  await writeFile(join(folder, 'Packages'), stdout)
  for (const [end, packer] of Object.entries(PACKERS)) {
    await $({ quiet: true })`${packer} ${join(folder, 'Packages')}`
    await stat(join(folder, `Packages${end}`))
  }
  for (const name of await readdir(folder)) {
    if (!name.startsWith('Packages')) continue
    const path = join(folder, name)
    await copyFile(path, join(byHash, await digestFile(path)))
  }
}

/** apt-ftparchive lists the files; the date is ours, for the same files make the same tree. */
async function renderReleaseFile(root: string, epoch: number): Promise<string> {
  const fields: Readonly<Record<string, string>> = {
    Origin: 'flasher',
    Label: 'flasher',
    Suite: SUITE,
    Codename: SUITE,
    Architectures: ARCHS.join(' '),
    Components: COMPONENT,
    Description: 'flasher writes disk images and boots machines over the network',
  }
  const options = Object.entries(fields).flatMap(([name, value]) => [
    '-o',
    `APT::FTPArchive::Release::${name}=${value}`,
  ])
  const only = ['-o', 'APT::FTPArchive::MD5=false', '-o', 'APT::FTPArchive::SHA1=false']
  const more = ['-o', 'APT::FTPArchive::SHA512=false', '-o', 'APT::FTPArchive::DoByHash=true']
  const folder = join(root, 'dists', SUITE)
  const { stdout } = await $({
    quiet: true,
  })`apt-ftparchive ${options} ${only} ${more} release ${folder}`
  const lines = stdout
    .split('\n')
    .filter(
      (line) => !/^(Date|Acquire-By-Hash|Valid-Until):/.test(line) && !line.includes('/by-hash/'),
    )
  const date = `Date: ${new Date(epoch * 1000).toUTCString().replace('GMT', '+0000')}`
  return [date, 'Acquire-By-Hash: yes', ...lines].join('\n')
}

/** In a keyring of its own where the key is a file, so that it stays nowhere. */
async function signTree(root: string, dists: string, key: string): Promise<void> {
  const isFile = await stat(key).then(
    (found) => found.isFile(),
    () => false,
  )
  const home = isFile ? await mkdtemp(join(tmpdir(), 'flasher-gpg-')) : null
  const env = { ...process.env, ...(home === null ? {} : { GNUPGHOME: home }) }
  const run = $({ quiet: true, env, stdio: ['inherit', 'pipe', 'pipe'] })
  try {
    if (isFile) await run`gpg --batch --import ${key}`
    const who = isFile ? [] : ['--local-user', key]
    const release = join(dists, 'Release')
    const how = ['--batch', '--yes', '--digest-algo', 'SHA512', ...who]
    await run`gpg ${how} --clearsign --output ${join(dists, 'InRelease')} ${release}`
    await run`gpg ${how} --armor --detach-sign --output ${`${release}.gpg`} ${release}`
    const named = isFile ? [] : [key]
    await run`gpg --batch --yes --armor --output ${join(root, 'flasher.asc')} --export ${named}`
    if ((await readFile(join(root, 'flasher.asc'))).length === 0) {
      throw new Error(`gpg exports no public key of ${key}`)
    }
  } finally {
    if (home !== null) {
      await $({ quiet: true, env, nothrow: true })`gpgconf --kill all`
      await rm(home, { recursive: true, force: true })
    }
  }
}
