/** The page on growth holds what its figures give, and its arithmetic is that of a pocket calculator. */
import { readFileSync } from 'node:fs'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { GROWTH_DOCUMENT, renderGrowth } from './bench/growth.ts'

const test = suite('growth')
const page = readFileSync(GROWTH_DOCUMENT, 'utf8')
/** The text without the blanks and dashes that align a table. */
const plain = (text: string) =>
  text
    .replaceAll(/-{3,}/g, '---')
    .replaceAll(/[ \t]+/g, ' ')
    .trim()

test('docs/growing.md is fresh: pnpm docs:growth makes it', () => {
  const parts = renderGrowth()
  assert.ok(parts.size > 4)
  for (const [name, text] of parts) {
    const [, rest = ''] = page.split(`<!-- bench:${name} -->`)
    const [found = ''] = rest.split(`<!-- /bench:${name} -->`)
    assert.is(plain(found), plain(text), name)
  }
})

test('the links carry what a frame leaves for data', () => {
  // 117.69 MB/s, as every download over a good gigabit link shows.
  assert.match(plain(page), '| 1 GbE | 112 |')
  assert.match(plain(page), '| 10 GbE | 1122 |')
})

test('rows as somebody would work them out by hand', () => {
  const rows = plain(page)
  // 10 × 1,024 ÷ 112.2 = 91.3 s; 100 × = 912.6 s; 500 × = 4,562 s; 1,000 × = 9,125 s; 600 ÷ 9.126 = 65.7.
  assert.match(rows, '| server on 1 GbE | 91 s | 15 min | 76 min | 152 min | 65 |')
  // No machine is faster than its own port, 9.1 s; 100 × 1,024 ÷ 1,122.3 = 91.2 s.
  assert.match(rows, '| server on 10 GbE | 9 s | 91 s | 7.6 min | 15 min | 657 |')
  // 13 racks × 9.126 s = 118.6 s; 25 × = 228 s; a rack of 40 from its nginx: 36.5 s.
  assert.match(
    rows,
    '| server on 1 GbE, nginx on 10 GbE in each rack | 9 s | 36 s | 2.0 min | 3.8 min | 2,600 |',
  )
})

test.run()
