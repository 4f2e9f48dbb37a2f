/**
 * The tests that load a changed file, by imports and by names in texts of tests: an aid while one works,
 * never the proof, for a test may read a file, or start a program, by a name that it puts together.
 */
import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { listArrows, readTexts } from '../arrows.ts'

const SOURCES = ['appliance/**/*.ts', 'build/**/*.ts', 'runtime/**/*.{ts,mjs}', 'test/**/*.ts']

interface Choice {
  readonly folder: string
  /** A commit: what differs from it, or is not committed, has changed. */
  readonly since: string
}

export function listChanged(tests: readonly string[], { folder, since }: Choice): string[] {
  const changed = new Set([
    ...git(['diff', '--name-only', '--relative', since]),
    ...git(['ls-files', '--others', '--exclude-standard']),
  ])
  const texts = readTexts(SOURCES)
  const loaders = new Map<string, string[]>()
  for (const { from, to, local } of listArrows(texts)) {
    if (local) loaders.set(to, [...(loaders.get(to) ?? []), from])
  }
  // A program that is started is named, not imported.
  for (const program of [...texts.keys()].filter((file) =>
    /^(runtime\/bin|build)\/[^/]+$/.test(file),
  )) {
    const name = path.basename(program)
    const starters = [...texts].filter(
      ([file, text]) => file.startsWith(folder) && text.includes(name),
    )
    loaders.set(program, [...(loaders.get(program) ?? []), ...starters.map(([file]) => file)])
  }
  const reached = new Set(changed)
  // A set that grows while it is walked is walked to its end.
  for (const file of reached) for (const loader of loaders.get(file) ?? []) reached.add(loader)
  return tests.filter((test) => reached.has(path.join(folder, test)))
}

function git(argv: readonly string[]): string[] {
  const { status, stdout, stderr } = spawnSync('git', argv, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`git ${argv.join(' ')} ended with ${status}: ${stderr}`)
  return stdout.split('\n').filter(Boolean)
}
