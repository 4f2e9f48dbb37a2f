/** Makes the documentation as a site that needs no other host: `docs-site.ts --docs DIR --readme FILE --out DIR`. */
import { cp, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'vitepress'
import { CHECKOUT, readVersion } from '#build/facts.ts'

const text = { type: 'string', default: '' } as const
const { docs, readme, out } = parseArgs({
  options: { docs: text, readme: text, out: text },
}).values

await mkdir(dirname(resolve(out)), { recursive: true })
const source = await mkdtemp(`${resolve(out)}.`)
try {
  await cp(docs, source, { recursive: true })
  // The README is its first page; it names the others from one folder above.
  const start = await readFile(readme, 'utf8')
  const near = start.replaceAll('](docs/', '](').replaceAll(/\[docs\/([\w-]+)\.md\]/g, '[$1]')
  await writeFile(join(source, 'index.md'), near)
  for (const folder of ['containers', 'pictures']) {
    await cp(join(docs, folder), join(source, 'public', folder), {
      recursive: true,
      filter: isPlain,
    })
  }
  await symlink(join(CHECKOUT, 'node_modules'), join(source, 'node_modules'))
  await mkdir(join(source, '.vitepress'))
  const outDir = join(source, '.vitepress/dist')
  const config = { version: readVersion(CHECKOUT), source, outDir }
  const site = join(CHECKOUT, 'build/document/site.ts')
  await writeFile(
    join(source, '.vitepress/config.mjs'),
    [
      `import { configure } from ${JSON.stringify(site)}`,
      `export default configure(${JSON.stringify(config)})\n`,
    ].join('\n'),
  )
  await mkdir(join(source, '.vitepress/theme'))
  await cp(join(CHECKOUT, 'build/document/site.css'), join(source, '.vitepress/theme/site.css'))
  await writeFile(
    join(source, '.vitepress/theme/index.mjs'),
    // Without its fonts: those of the operating system are there already.
    "export { default } from 'vitepress/theme-without-fonts'\nimport './site.css'\n",
  )
  await build(source)
  await rm(out, { recursive: true, force: true })
  await rename(outDir, out)
} finally {
  await rm(source, { recursive: true })
}

/** What pages link to and don't show. */
function isPlain(path: string): boolean {
  return !/\.(png|svg|json)$/.test(path)
}
