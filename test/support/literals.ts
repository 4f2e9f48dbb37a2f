/** Reads the string literals of a TypeScript file, without its imports and comments. */

export interface Literal {
  readonly line: number
  /** As it is written, without quotes, escapes and what stands in `${}`. */
  readonly text: string
  /** The same in pieces: between two of them stands a `${}`. */
  readonly pieces: readonly string[]
  /** The code before it, back to some line above: what it is given to. */
  readonly before: string
}

const MAX_BEFORE = 80

const TOKEN =
  /\/\/.*|\/\*[^]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|[`{}]|\/(?![*/\s])(?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*(?=[\s.,;)\]])/g
/** The next place in a template at which it is more than text. */
const TEMPLATE = /\\u\{\w+\}|\\[^]|`|\$\{/g
const ESCAPE = /\\(?:u\{\w+\}|u\w{4}|x\w{2}|[^])/g
const IMPORT = /^(?:import\b[^;]*?from '[^']*'|.*\bimport\('[^']*'\))/gm

/** Lists the literals of a source in the order in which they end. */
export function listLiterals(source: string): readonly Literal[] {
  const code = source.replace(IMPORT, (found) => found.replace(/[^\n]/g, ' '))
  const found: Literal[] = []
  /** `from`: where its quote stands. */
  const add = (from: number, raw: readonly string[]) => {
    const line = code.slice(0, from + 1).split('\n').length
    const pieces = raw.map((piece) => piece.replaceAll(ESCAPE, ' '))
    const before = code.slice(Math.max(0, from - MAX_BEFORE), from)
    found.push({ line, text: pieces.join(''), pieces, before })
  }

  /** Skips the code from behind the opening brace to behind its closing one, and returns where that is. */
  function skipCode(from: number): number {
    let depth = 1
    let at = from
    while (depth > 0) {
      TOKEN.lastIndex = at
      const hit = TOKEN.exec(code)
      if (hit === null) return code.length
      const [token] = hit
      at = TOKEN.lastIndex
      if (token === '{') depth += 1
      else if (token === '}') depth -= 1
      else if (token === '`') at = readTemplate(at)
      else if (token.startsWith("'") || token.startsWith('"')) add(hit.index, [token.slice(1, -1)])
    }
    return at
  }

  /**
   * Reads a template from behind the opening backquote to behind the closing one, and returns where
   * that is.
   */
  function readTemplate(from: number): number {
    const pieces = ['']
    let at = from
    for (;;) {
      TEMPLATE.lastIndex = at
      const hit = TEMPLATE.exec(code)
      if (hit === null) return code.length
      pieces.push(`${pieces.pop()}${code.slice(at, hit.index)}`)
      at = TEMPLATE.lastIndex
      if (hit[0] === '`') break
      if (hit[0] === '${') {
        at = skipCode(at)
        pieces.push('')
      }
    }
    add(from - 1, pieces)
    return at
  }

  // The file as a whole is like the inside of a brace that never closes.
  skipCode(0)
  return found
}
