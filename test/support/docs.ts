/** What the documentation shows, so that tests try exactly that. */
import { readFileSync } from 'node:fs'

/** The fenced blocks of a language in a page of docs/, in their order. */
export const readBlocks = (page: string, language: string): readonly string[] =>
  [
    ...readFileSync(`docs/${page}`, 'utf8').matchAll(
      new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'),
    ),
  ].map(([, block = '']) => block)

/** What stands in a fenced block of TypeScript below each `@example` of a declaration file. */
export const readExamples = (declarations: string): readonly string[] =>
  [...declarations.matchAll(/^ ?\* @example\n \* ```ts\n([^]*?)^ \* ```$/gm)].map(
    ([, block = '']) => block.replaceAll(/^ \* ?/gm, ''),
  )

/**
 * What an example promises to print: the comment at the end of a line that logs, and comments that have
 * a line for themselves. `…` stands for anything.
 */
export const readPromise = (example: string): RegExp => {
  const lines = [...example.matchAll(/^(?:.*console\.log\(.*)?\/\/ (.+)$/gm)].map(([, line = '']) =>
    RegExp.escape(line).replaceAll(RegExp.escape('…'), '[^]*'),
  )
  return new RegExp(`^${lines.join('\n')}\n$`)
}
