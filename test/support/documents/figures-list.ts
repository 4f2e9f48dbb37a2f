/** pnpm docs:figures: takes out of by-hand.toml what pages no longer say, and adds what they say with `--because`. */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { checkLimits, compareFigures } from './held-figures.ts'
import { listHeldPages, readByHand, writeByHand } from './held-pages.ts'
import { LIMITS } from './limits.ts'

const { values } = parseArgs({ options: { because: { type: 'string' } } })
const { because } = values

const before = readByHand()
const after: Record<string, Record<string, string[]>> = {}
let unheld = 0
for (const page of listHeldPages()) {
  const { rest } = checkLimits(page, readFileSync(page, 'utf8'), LIMITS)
  const { extra, gone } = compareFigures(page, rest, before)
  const reasons = Object.fromEntries(
    Object.entries(before[page] ?? {}).map(([reason, phrases]) => [reason, [...phrases]]),
  )
  for (const phrase of gone) {
    const row = Object.values(reasons).find((phrases) => phrases.includes(phrase))
    row?.splice(row.indexOf(phrase), 1)
  }
  if (because !== undefined) {
    reasons[because] = [...(reasons[because] ?? []), ...extra.map(({ phrase }) => phrase)]
  } else {
    for (const { phrase, line } of extra) console.log(`${page}:${line}: “${phrase}”`)
    unheld += extra.length
  }
  after[page] = reasons
}
writeByHand(after)
if (unheld > 0) {
  console.log(`${unheld} figures are held by nothing. What the code knows: a row in test/support/documents/limits.toml.
What nothing here can know: pnpm docs:figures --because 'an example', or another reason of one clause.`)
  process.exitCode = 1
}
