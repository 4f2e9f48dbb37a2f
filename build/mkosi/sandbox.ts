/** The apt configuration that mkosi uses: sources derived from the host's, and which packages come from backports. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readSources } from '#build/debian/apt.ts'

interface SandboxOptions {
  readonly folder: string
  readonly suite: string
  /** Globs of packages that are taken from backports. */
  readonly backports?: readonly string[]
}

/** Writes the configuration below a folder, and returns the folder. */
export async function writeSandbox({ folder, suite, backports }: SandboxOptions): Promise<string> {
  const apt = join(folder, 'etc/apt')
  for (const dir of ['sources.list.d', 'preferences.d']) {
    await mkdir(join(apt, dir), { recursive: true })
  }
  const sources = await readSources(suite, backports !== undefined)
  await writeFile(join(apt, 'sources.list.d/mkosi.sources'), sources)
  if (backports !== undefined) {
    const pin = `Package: ${backports.join(' ')}\nPin: release n=${suite}-backports\nPin-Priority: 600\n`
    await writeFile(join(apt, 'preferences.d/backports.pref'), pin)
  }
  return folder
}
