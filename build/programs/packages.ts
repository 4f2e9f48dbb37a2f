/** Unpacks Debian packages into one folder: `packages.ts --suite S --arch A --state DIR --out DIR --list FILE NAME…`. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { fetchPackages, readPackage, unpackPackage } from '#build/debian/apt.ts'
import { writeList } from '#build/debian/list.ts'

const text = { type: 'string', default: '' } as const
const { values, positionals } = parseArgs({
  options: { suite: text, arch: text, state: text, out: text, list: text },
  allowPositionals: true,
})

const { suite, arch, state, out, list } = values
// Beside the result, so that an interrupted build removes both.
const folder = await mkdtemp(`${out}.`)
try {
  const files = await fetchPackages({ suite, arch, state }, positionals, folder)
  await mkdir(out, { recursive: true })
  for (const file of files) await unpackPackage(file, out)
  await writeList(list, await Promise.all(files.map(readPackage)))
} finally {
  await rm(folder, { recursive: true })
}
