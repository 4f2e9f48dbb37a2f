/** The pages whose figures are held, and the list of those held by hand: where it is, how it is read and written. */
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parse } from 'smol-toml'
import { z } from 'zod'
import type { ByHand } from './held-figures.ts'

const FORMATTER = fileURLToPath(new URL('../../../node_modules/.bin/oxfmt', import.meta.url))
const BY_HAND = 'test/support/documents/by-hand.toml'
/** A test compares each with what its script makes; decisions are records of what was known on their day. */
const ELSEWHERE: ReadonlySet<string> = new Set(['docs/dhcp.md', 'docs/map.md', 'docs/settings.md'])

const schema = z.record(z.string(), z.record(z.string(), z.array(z.string())))

/** Pages of which each figure is held. */
export const listHeldPages = (): readonly string[] =>
  globSync(['README.md', 'docs/*.md'])
    .toSorted()
    .filter((page) => !ELSEWHERE.has(page))

/** Reads the figures that are held by hand, with the reason of each. */
export const readByHand = (): ByHand => schema.parse(parse(readFileSync(BY_HAND, 'utf8')))

const HEAD = `# Figures of the documentation that nothing in this repository knows, by page and by the reason why not: a wrong
# digit is found because it is not in this list. What the code knows belongs in limits.toml, what was measured in
# docs/measured/, and what many examples use in examples.ts. \`pnpm docs:figures\` keeps the list.
`

/** Writes the list, one phrase a line, so that two writers seldom meet. */
export function writeByHand(list: ByHand): void {
  const pages = Object.entries(list)
    .filter(([, reasons]) => Object.values(reasons).some((phrases) => phrases.length > 0))
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  const text = pages.map(([page, reasons]) => {
    const rows = Object.entries(reasons)
      .filter(([, phrases]) => phrases.length > 0)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([reason, phrases]) => {
        const lines = phrases.toSorted().map((phrase) => `  ${JSON.stringify(phrase)},`)
        return [`${JSON.stringify(reason)} = [`, ...lines, ']'].join('\n')
      })
    return `\n[${JSON.stringify(page)}]\n${rows.join('\n')}\n`
  })
  writeFileSync(BY_HAND, HEAD + text.join(''))
  execFileSync(FORMATTER, [BY_HAND])
}
