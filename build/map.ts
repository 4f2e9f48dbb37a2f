/** `pnpm docs:map [FOLDER…]`: prints every file, by folder, with the first sentence of its opening comment. */
import { globSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { readArguments } from './arguments.ts'
import { CHECKOUT, readVersion } from './facts.ts'
import { runScript } from './script.ts'

const SCRIPT = {
  name: 'docs:map',
  summary: ['Prints every file, by folder, with its first sentence.'],
  version: readVersion(CHECKOUT),
  positionals: 'folder',
  examples: ['', 'runtime/engine/flash'],
}
const SHOWN = [
  'appliance/**/*.ts',
  'build/**/*.ts',
  'runtime/**/*.{ts,mjs}',
  'test/support/**/*.ts',
  'test/bench/**/*.ts',
]
const OPENING = /^(?:#!.*\n)?\/\*\*((?:[^*]|\*(?!\/))*)\*\//

await runScript({
  name: SCRIPT.name,
  read: (argv) => readArguments(SCRIPT, argv),
  run: async ({ positionals }) => {
    const folders = positionals.map((folder) => `${posix.normalize(folder)}/`.replace('//', '/'))
    // `head` ends before it has read all.
    process.stdout.on('error', () => undefined)
    const files = globSync(SHOWN, { cwd: CHECKOUT })
      .filter((path) => folders.length === 0 || folders.some((folder) => path.startsWith(folder)))
      .toSorted()
    const paths = Map.groupBy(files, posix.dirname)
    for (const folder of [...paths.keys()].toSorted()) {
      const lines = await Promise.all((paths.get(folder) ?? []).map(readLine))
      process.stdout.write(`${folder}\n${lines.join('')}\n`)
    }
    return 0
  },
})

async function readLine(path: string): Promise<string> {
  const text = await readFile(`${CHECKOUT}/${path}`, 'utf8')
  return `  ${posix.basename(path)}: ${parseOpening(text)}\n`
}

/** The first sentence of a file's opening comment; empty without one. */
function parseOpening(text: string): string {
  const words = (OPENING.exec(text)?.[1] ?? '').replaceAll(/\s*\n\s*\*?\s*/g, ' ').trim()
  const [sentence = ''] = words.split(/(?<=\.)\s+(?=[A-Z`(])/, 1)
  return sentence.replace(/\.$/, '')
}
