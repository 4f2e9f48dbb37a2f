/** The fenced blocks of a page that a test runs: the comment before each names the test. */

/** `<!-- run: test/bin/server-docs.test.ts -->`, then the block. */
const FENCE = /^(?: *<!-- run: ([^\n]+) -->\n\n?)( *)```\w*\n([^]*?)^ *```$/gm

/** Lists the texts of those blocks of a page that `test` runs, in their order. */
export const listRunFences = (page: string, test: string): readonly string[] =>
  [...page.matchAll(FENCE)].filter(([, by]) => by === test).map(([, , , text = '']) => text)
