/** What the screen of a virtual machine shows, as a picture in docs/pictures. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { shrinkPng } from './png.ts'
import type { Qemu } from './qemu.ts'

const FOLDER = fileURLToPath(new URL('../../../docs/pictures/', import.meta.url))
/** The serial line, where tests wait, is a little ahead of the screen. */
const SETTLE_MS = 1500

export async function shoot({ monitor, folder }: Qemu, name: string): Promise<void> {
  await sleep(SETTLE_MS)
  const filename = join(folder, `${name}.png`)
  await monitor.execute('screendump', { filename, format: 'png' })
  const small = shrinkPng(await readFile(filename))
  await writeFile(join(FOLDER, `${name}.png`), small)
  console.log(`docs/pictures/${name}.png ${small.length} bytes`)
}
