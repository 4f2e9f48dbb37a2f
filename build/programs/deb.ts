/** Builds Debian packages: `deb.ts --arch A --version V --epoch S --level N --tree DIR… --manual FILE… --package NAME… --out DIR`. */
import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { $ } from 'zx/core'
import { layFile, layFolder, makePlace } from '#build/app/lay.ts'
import {
  CONFIGURATION_FILES,
  DEBIAN_PACKAGES,
  packageOf,
  renderControl,
  SERVER_SCRIPTS,
  type DebianName,
} from '#build/debian/package-control.ts'

const text = { type: 'string', default: '' } as const
const list = { type: 'string', multiple: true, default: [] as string[] } as const
const {
  arch,
  version,
  epoch,
  level,
  out,
  tree,
  manual,
  package: wanted,
} = parseArgs({
  options: {
    arch: text,
    version: text,
    epoch: text,
    level: text,
    out: text,
    tree: list,
    manual: list,
    package: list,
  },
}).values

await mkdir(out, { recursive: true })
const work = await mkdtemp(join(out, 'work-'))
try {
  const whole = join(work, 'whole')
  await mkdir(whole)
  for (const each of tree) await layFolder(each, whole)
  const manuals = join(whole, 'usr/share/man/man1')
  await mkdir(manuals, { recursive: true })
  for (const each of manual) await layFile(each, join(manuals, basename(each)))
  const apart = join(work, 'flasher-server')
  await moveServer(whole, apart)
  const roots = { flasher: whole, 'flasher-server': apart, 'flasher-lab': join(work, 'nothing') }
  for (const name of DEBIAN_PACKAGES) {
    if (wanted.includes(name)) await pack(name, roots[name])
  }
} finally {
  await rm(work, { recursive: true })
}

/** Moves what only the server has out of the programs' tree. */
async function moveServer(whole: string, to: string): Promise<void> {
  const paths = await readdir(whole, { recursive: true })
  for (const path of paths.filter((one) => packageOf(one) === 'flasher-server')) {
    const entry = await lstat(join(whole, path))
    if (entry.isDirectory()) continue
    await rename(join(whole, path), await makePlace(to, path))
  }
  // Folders of ours that have nothing left would stay behind as empty ones.
  const { stdout } = await $({ quiet: true })`find ${whole} -depth -type d -empty -print -delete`
  if (stdout.includes(`${whole}\n`)) throw new Error(`all of ${whole} is the server's`)
}

async function pack(name: DebianName, root: string): Promise<void> {
  const documents = join(root, 'usr/share/doc', name)
  const control = join(root, 'DEBIAN')
  for (const folder of [documents, control]) await mkdir(folder, { recursive: true })
  await chmod(root, 0o755)
  await copyFile('LICENSE', join(documents, 'copyright'))
  const kib = Math.ceil((await measure(root)) / 1024)
  await writeFile(join(control, 'control'), renderControl({ name, version, arch, kib }))
  if (name === 'flasher-server') {
    await writeFile(join(control, 'conffiles'), `${CONFIGURATION_FILES.join('\n')}\n`)
    for (const [script, content] of Object.entries(SERVER_SCRIPTS)) {
      await writeFile(join(control, script), content, { mode: 0o755 })
    }
  }
  const env = { ...process.env, SOURCE_DATE_EPOCH: epoch, LC_ALL: 'C.UTF-8' }
  // Debian 12 and later read zstd. The number of threads is fixed: it decides bytes.
  const how = ['-Zzstd', `-z${level}`, '--threads-max=2', '--root-owner-group']
  const file = join(out, `${name}.deb`)
  await $({ quiet: true, env })`dpkg-deb ${how} --build ${root} ${`${file}.part`}`
  await rename(`${file}.part`, file)
}

/** Bytes of all files below. */
async function measure(folder: string): Promise<number> {
  const paths = await readdir(folder, { recursive: true })
  const sizes = await Promise.all(
    paths.map(async (path) => {
      const entry = await lstat(join(folder, path))
      return entry.isFile() ? entry.size : 0
    }),
  )
  return sizes.reduce((sum, size) => sum + size, 0)
}
