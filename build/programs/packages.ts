/** Lays the files of Debian packages below one folder: `packages.ts --suite S --arch A --state DIR --out DIR --list FILE NAME…`. */
import { mkdtemp, mkdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { fetchPackages, readPackage, unpackPackage } from '../debian/apt.ts'

const text = { type: 'string', default: '' } as const
const { values, positionals } = parseArgs({
  options: { suite: text, arch: text, state: text, out: text, list: text },
  allowPositionals: true,
})

const { suite, arch, state, out, list } = values
const folder = await mkdtemp(join(tmpdir(), 'flasher-packages-'))
try {
  const files = await fetchPackages({ suite, arch, state }, positionals, folder)
  await mkdir(out, { recursive: true })
  for (const file of files) await unpackPackage(file, out)
  const packages = await Promise.all(files.map(readPackage))
  const sorted = packages.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  await writeFile(list, `${JSON.stringify(sorted, null, 2)}\n`)
} finally {
  await rm(folder, { recursive: true })
}
