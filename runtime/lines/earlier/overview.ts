/** What `pnpm start` shows as long as there is nothing to serve: what can be run, and where to read on. */
import { readVersion } from '../../services/manifest.ts'
import { wrapColumns } from '../../terminal/wrap.ts'
import { COMMAND_LINE } from './rules/commands.ts'

/** `width`: of the terminal, in characters. */
export async function renderOverview(width: number): Promise<string> {
  const { program, summary, commands } = COMMAND_LINE
  const rows = commands.map(({ words, summary: does }) => [words.join(' '), does] as const)
  return `${[
    `flasher-lab ${await readVersion()}`,
    '',
    `${program}: ${summary}. Its commands:`,
    ...wrapColumns(rows, width),
    '',
    'Run them from this folder:',
    '  node runtime/bin/flasher.mjs list disks',
    '  node runtime/bin/flasher.mjs flash --help',
    '',
    'Read on:',
    ...wrapColumns(DOCUMENTS, width),
  ].join('\n')}\n`
}

const DOCUMENTS = [
  ['README.md', 'what this is, and how to begin'],
  ['docs/cli.md', 'the command line'],
  ['docs/flasher.1', 'its manual page: man -l docs/flasher.1'],
  ['docs/architecture.md', 'how it is built'],
] as const
