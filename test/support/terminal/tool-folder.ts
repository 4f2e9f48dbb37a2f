/** Programs of a test's own that stand before the system's: each is a few lines of shell. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createShell, type Shell } from '#kit/host/shell.ts'

export interface ToolFolder extends AsyncDisposable {
  readonly folder: string
  readonly shell: Shell
  at(name: string): string
  /** What a tool wrote into a file of that name; empty where it wrote none. */
  text(name: string): Promise<string>
}

/** `$HERE` in a script is the folder, which goes at the end. */
export async function makeTools(scripts: Readonly<Record<string, string>>): Promise<ToolFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-tools-'))
  const at = (name: string) => join(folder, name)
  for (const [name, script] of Object.entries(scripts)) {
    await writeFile(at(name), `#!/bin/sh\nHERE=${folder}\n${script}\n`, { mode: 0o755 })
  }
  return {
    folder,
    shell: createShell({ env: { PATH: `${folder}:${process.env['PATH'] ?? ''}` } }),
    at,
    text: (name) => readFile(at(name), 'utf8').catch(() => ''),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
