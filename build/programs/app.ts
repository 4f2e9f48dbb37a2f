/** Gathers our programs for an image: `app.ts --out DIR --home PATH --list FILE --node FILE --node-path PATH --node-package NAME [--node-folder DIR] [--docs DIR] [ENTRY…]`; without an entry, all of them. */
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { layFile, layFolder } from '#build/app/lay.ts'
import { listPackages } from '#build/app/npm.ts'
import { collectImports } from '#build/cache/imports.ts'

/** Not needed at run time: types, source maps, TypeScript in packages (which Node does not run) and documentation. Licences are kept. */
const USELESS =
  /^node_modules$|\.(d\.[cm]?ts|[cm]?tsx?|map|md|markdown|flow)$|^(test|tests|docs|bench|example|examples)$/i
const LEGAL = /^(licen[cs]e|copying|notice)/i

const text = { type: 'string', default: '' } as const
const { values, positionals } = parseArgs({
  options: {
    out: text,
    home: text,
    list: text,
    node: text,
    /** Where it lies in the image. */
    'node-path': text,
    'node-package': text,
    /** Where its npm package lies; default: where this checkout has it. */
    'node-folder': { ...text, default: process.cwd() },
    /** The documentation as a site. */
    docs: text,
  },
  allowPositionals: true,
})
const home = join(values.out, values.home)
const isUseful = (path: string) => LEGAL.test(basename(path)) || !USELESS.test(basename(path))

const node = join(values.out, values['node-path'])
for (const folder of [dirname(node), join(home, 'node_modules')]) {
  await mkdir(folder, { recursive: true })
}
await layFile(values.node, node, true)
for (const folder of ['runtime', 'appliance']) await layFolder(folder, join(home, folder))
await layFile('package.json', join(home, 'package.json'))
if (values.docs !== '') await layFolder(values.docs, join(home, 'dist/docs'))

const wanted =
  positionals.length === 0 ? await readDependencies() : collectImports(positionals).packages
const packages = await listPackages(wanted, process.cwd())
for (const { folder, place } of packages) {
  await layFolder(folder, join(home, 'node_modules', place), { wants: isUseful })
}
const nodePackage = await listPackages([values['node-package']], values['node-folder'])
const list = [...packages, ...nodePackage].map(({ name, version, license }) => ({
  name,
  version,
  license,
}))
const sorted = list.toSorted((a, b) => (a.name < b.name ? -1 : 1))
await writeFile(values.list, `${JSON.stringify(sorted, null, 2)}\n`)

/** The server reads some packages as files, without importing them. */
async function readDependencies(): Promise<readonly string[]> {
  const about: unknown = JSON.parse(await readFile('package.json', 'utf8'))
  const found =
    typeof about === 'object' && about !== null && 'dependencies' in about
      ? about.dependencies
      : null
  if (typeof found !== 'object' || found === null) throw new Error('package.json has no packages')
  return Object.keys(found)
}
