/** Packs the sources: `source.ts --folder NAME --epoch S --out FILE ENTRY…`. */
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { readEntries } from '#build/archive/entries.ts'
import { renderTarball } from '#build/archive/tar.ts'

const text = { type: 'string', default: '' } as const
const { values, positionals } = parseArgs({
  options: { folder: text, epoch: text, out: text },
  allowPositionals: true,
})
const { folder, epoch, out } = values
const entries = await Promise.all(positionals.map((path) => readEntries('.', path)))
await writeFile(out, await renderTarball(entries.flat(), { folder, epoch: Number(epoch) }))
