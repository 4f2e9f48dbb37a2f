/** Finds the positions of headers and `key = value` pairs in a TOML text, from the editor's syntax tree. */
import { parseDocument, type TomlDocument } from '@decimalturn/toml-patch'

export interface Statement {
  readonly kind: 'header' | 'pair'
  /** From the root: `[server]` and `port` in it are `['server', 'port']`. */
  readonly path: readonly string[]
  /** The number of its first line, from 1. */
  readonly line: number
  /**
   * The offsets of the line on which it begins, and just past the line end (or the text's) behind
   * it.
   */
  readonly start: number
  readonly end: number
  /** The offsets of what stands behind the `=`; those of a header are its own. */
  readonly valueStart: number
  readonly valueEnd: number
}

type Block = TomlDocument['cst'][number]
type Node = Pick<Block, 'loc'>

/** In the order of the text; a text that is not TOML has none. */
export function listStatements(text: string): readonly Statement[] {
  // A byte order mark belongs to no line.
  const lines = [text.startsWith('\uFEFF') ? 1 : 0]
  for (const { index } of text.matchAll(/\n/g)) lines.push(index + 1)
  const startOf = (line: number) => lines[line - 1] ?? text.length

  const describe = (
    kind: Statement['kind'],
    path: readonly string[],
    { loc: { start } }: Node,
    { loc }: Node,
  ): Statement => ({
    kind,
    path,
    line: start.line,
    start: startOf(start.line),
    end: startOf(loc.end.line + 1),
    valueStart: startOf(loc.start.line) + loc.start.column,
    valueEnd: startOf(loc.end.line) + loc.end.column,
  })

  const listBlock = (header: readonly string[], block: Block): readonly Statement[] => {
    if ('equals' in block) {
      return [describe('pair', [...header, ...block.key.value], block, block.value)]
    }
    if (!('items' in block)) return []
    const path = block.key.item.value
    const pairs = block.items.flatMap((item) => listBlock(path, item))
    return [describe('header', path, block, block.key), ...pairs]
  }
  try {
    return parseDocument(text).cst.flatMap((block) => listBlock([], block))
  } catch {
    return [] // toml.ts reports what is wrong with a text.
  }
}
