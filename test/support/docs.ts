/** What the documentation shows, so that tests try exactly that. */
import { readFileSync } from 'node:fs'

/** The fenced blocks of a language in a page of docs/, in their order. */
export const readBlocks = (page: string, language: string): readonly string[] =>
  [
    ...readFileSync(`docs/${page}`, 'utf8').matchAll(
      new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'),
    ),
  ].map(([, block = '']) => block)
