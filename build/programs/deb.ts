/** Builds the Debian package: `deb.ts --arch A --version V --epoch S --level N --tree DIR… --manual FILE… --out FILE`. */
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
import { layFile, layFolder } from '../app/lay.ts'
import { CONFIGURATION_FILES, PACKAGE_SCRIPTS, renderControl } from '../debian/package-control.ts'

const text = { type: 'string', default: '' } as const
const list = { type: 'string', multiple: true, default: [] as string[] } as const
const { arch, version, epoch, level, out, tree, manual } = parseArgs({
  options: {
    arch: text,
    version: text,
    epoch: text,
    level: text,
    out: text,
    tree: list,
    manual: list,
  },
}).values

const root = await mkdtemp(`${out}.`)
try {
  await chmod(root, 0o755)
  for (const each of tree) await layFolder(each, root)
  const manuals = join(root, 'usr/share/man/man1')
  const documents = join(root, 'usr/share/doc/flasher-lab')
  const control = join(root, 'DEBIAN')
  for (const folder of [manuals, documents, control]) await mkdir(folder, { recursive: true })
  for (const each of manual) await layFile(each, join(manuals, basename(each)))
  await copyFile('LICENSE', join(documents, 'copyright'))
  const kib = Math.ceil((await measure(root)) / 1024)
  await writeFile(join(control, 'control'), renderControl({ version, arch, kib }))
  await writeFile(join(control, 'conffiles'), `${CONFIGURATION_FILES.join('\n')}\n`)
  for (const [name, script] of Object.entries(PACKAGE_SCRIPTS)) {
    await writeFile(join(control, name), script, { mode: 0o755 })
  }
  const env = { ...process.env, SOURCE_DATE_EPOCH: epoch, LC_ALL: 'C.UTF-8' }
  // Debian 12 and later read zstd. The number of threads is fixed: it decides bytes.
  const how = ['-Zzstd', `-z${level}`, '--threads-max=2', '--root-owner-group']
  await $({ quiet: true, env })`dpkg-deb ${how} --build ${root} ${`${out}.part`}`
  await rename(`${out}.part`, out)
} finally {
  await rm(root, { recursive: true })
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
