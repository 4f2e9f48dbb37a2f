/** The string and template literals of a TypeScript file, without those of imports and comments. */

export interface Literal {
  readonly line: number
  /** The code before it on its line, and the line above: what it is given to. */
  readonly before: string
  /** Of a template without its values. */
  readonly text: string
  readonly isHtml: boolean
}

/** A value in a template's text. */
export const VALUE = '\u0000'

const COMMENT = /\/\*[^]*?\*\/|\/\/[^\n]*/y
const IMPORT = /import\b[^'"`;(]*from '[^']*'/y
const STRING = /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/y
const REGULAR = /\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/y
/** After these a slash begins a regular expression; elsewhere it divides. */
const BEFORE_REGULAR = /(?:[(,=:[!&|?{};]|=>|\breturn)\s*$/

export function listLiterals(source: string): readonly Literal[] {
  const found: Literal[] = []
  const lineOf = (at: number) => source.slice(0, at).split('\n').length
  const beforeOf = (at: number) => source.slice(Math.max(0, at - 80), at)
  const match = (pattern: RegExp, at: number) => {
    pattern.lastIndex = at
    return pattern.exec(source)?.[0] ?? ''
  }

  /** Reads code up to the brace that ends it; returns the place behind. */
  function readCode(from: number): number {
    let [at, depth] = [from, 0]
    while (at < source.length && depth >= 0) {
      if (source[at] === '{') depth += 1
      if (source[at] === '}') depth -= 1
      at = readToken(at)
    }
    return at
  }

  function readToken(at: number): number {
    if (source[at] === '`') return readTemplate(at)
    const string = match(STRING, at)
    if (string !== '') {
      const text = string.slice(1, -1)
      found.push({ line: lineOf(at), before: beforeOf(at), text, isHtml: false })
    }
    const skipped = string || match(COMMENT, at) || match(IMPORT, at) || readRegular(at)
    return at + (skipped.length || 1)
  }

  const readRegular = (at: number) => (BEFORE_REGULAR.test(beforeOf(at)) ? match(REGULAR, at) : '')

  function readTemplate(from: number): number {
    const isHtml = source.slice(from - 4, from) === 'html'
    let [at, text] = [from + 1, '']
    while (at < source.length && source[at] !== '`') {
      if (source[at] === '\\') {
        text += source.slice(at, at + 2)
        at += 2
      } else if (source.startsWith('${', at)) {
        text += VALUE
        at = readCode(at + 2)
      } else {
        text += source[at]
        at += 1
      }
    }
    found.push({ line: lineOf(from), before: beforeOf(from), text, isHtml })
    return at + 1
  }

  readCode(0)
  return found
}
