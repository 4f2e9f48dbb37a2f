/** Packs what npm installs: `npm-package.ts --epoch S --out FILE --list FILE ENTRY…`; the entries are copied and compiled elsewhere. */
import { lstat, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { $ } from 'zx/core'
import { layFile, layFolder } from '#build/app/lay.ts'
import { listPackages } from '#build/app/npm.ts'
import { renderTarball, type TarEntry } from '#build/archive/tar.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'

const text = { type: 'string', default: '' } as const
const { values, positionals } = parseArgs({
  options: { epoch: text, out: text, list: text },
  allowPositionals: true,
})
const { epoch, out, list } = values

// Beside the result, so that an interrupted build removes both.
const folder = await mkdtemp(`${resolve(out)}.`)
try {
  for (const name of positionals) {
    if ((await lstat(name)).isDirectory()) await layFolder(name, join(folder, name))
    else await layFile(name, join(folder, name))
  }
  await symlink(resolve('node_modules'), join(folder, 'node_modules'))
  const run = $({ cwd: folder, quiet: true })
  await run`${process.execPath} build/package.ts`
  const entries = await readPacked(folder, await listPacked(folder))
  await writeFile(out, await renderTarball(entries, { folder: 'package', epoch: Number(epoch) }))
} finally {
  await rm(folder, { recursive: true })
}
await writeFile(list, `${JSON.stringify(await listDependencies(), null, 2)}\n`)

interface Packed {
  readonly path: string
  readonly isProgram: boolean
}

/** npm decides what belongs to the package; the bytes are ours, whichever npm it is. */
async function listPacked(cwd: string): Promise<readonly Packed[]> {
  const run = $({ cwd, quiet: true })
  const { stdout } = await run`npm pack --dry-run --json --ignore-scripts --offline`
  const answer = parseJson(stdout)
  const [first] = Array.isArray(answer) ? answer : []
  const files: unknown = first?.files
  if (!Array.isArray(files) || files.length === 0) throw new Error('npm would pack nothing')
  return files.map(({ path, mode }) => ({
    path: String(path),
    isProgram: (Number(mode) & 0o100) !== 0,
  }))
}

async function readPacked(from: string, files: readonly Packed[]): Promise<readonly TarEntry[]> {
  return await Promise.all(
    files.map(async ({ path, isProgram }) => ({
      path,
      isProgram,
      content: await readFile(join(from, path)),
    })),
  )
}

/** What an installer brings along. */
async function listDependencies() {
  const about: unknown = JSON.parse(await readFile('package.json', 'utf8'))
  const needs = typeof about === 'object' && about !== null && 'dependencies' in about
  const names = needs ? Object.keys(Object(about.dependencies)) : []
  // One after the other: two of them may require different versions of one package.
  const lists = await Promise.all(names.map((one) => listPackages([one], process.cwd())))
  const rows = lists.flat().map(({ name, version, license }) => ({ name, version, license }))
  const unique = new Map(rows.map((row) => [`${row.name} ${row.version}`, row]))
  return [...unique.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row)
}
