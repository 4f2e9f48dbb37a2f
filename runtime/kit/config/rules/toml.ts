/** Parses TOML strictly, and reports errors with line and column. */
import { parse, TomlDate, TomlError, type TomlTable } from 'smol-toml'
import { printable } from '#kit/foundation/printable.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export interface TomlProblem {
  /** Lines and columns are counted from 1. */
  readonly line: number
  readonly column: number
  /** One clause. */
  readonly message: string
  /** The lines around it with a mark below the place. */
  readonly frame: string
}

/** This is far beyond any configuration or catalog. */
const MAX_CHARACTERS = 4 * 1024 * 1024

/**
 * TOML 1.0. Tables have no prototype; whole numbers beyond 2^53 are refused. A refusal says what is
 * wrong in which line and column.
 */
export function parseToml(text: string): Result<TomlTable, TomlProblem> {
  if (text.length > MAX_CHARACTERS) {
    return refuse({ line: 1, column: 1, message: 'the text is too long', frame: '' })
  }
  try {
    return accept(parse(text.replace(/^\uFEFF/, '')))
  } catch (thrown) {
    if (thrown instanceof TomlError) return refuse(describe(thrown, text))
    throw thrown
  }
}

function describe({ line, column, codeblock, message }: TomlError, text: string): TomlProblem {
  // The frame is part of the library's message; here it stands by itself.
  const [first = ''] = message.split('\n')
  const clause = first.replace(/^Invalid TOML document: /, '')
  const lines = LONG_SECRET.test(text) ? '' : codeblock.trimEnd()
  const frame = lines.split('\n').map(renderFrameLine).join('\n')
  return { line, column, message: printable(clause), frame }
}

const MAX_FRAME_LINE = 120
/** Values of keys like these are secret, and a frame ends up in logs. */
const SECRET_LINE = /^(.*(?:password|secret|token|credential|key|options|connection)[^=]*=).*$/i
/** One of several lines cannot be separated from what is around it. */
const LONG_SECRET = /(?:password|secret|token|credential|key|options|connection).*(?:"""|''')/i

function renderFrameLine(line: string): string {
  const safe = printable(line.replace(SECRET_LINE, '$1 …'))
  return safe.length > MAX_FRAME_LINE ? `${safe.slice(0, MAX_FRAME_LINE)}…` : safe
}

/** Neither a list nor a date. */
export const isTable = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isRecord(value) && !(value instanceof TomlDate)

/** The order of keys aside. */
export function isSameToml(one: unknown, two: unknown): boolean {
  if (one instanceof TomlDate && two instanceof TomlDate)
    return one.toISOString() === two.toISOString()
  if (Array.isArray(one) && Array.isArray(two)) {
    return one.length === two.length && one.every((value, index) => isSameToml(value, two[index]))
  }
  if (!isTable(one) || !isTable(two)) return Object.is(one, two)
  const keys = Object.keys(one)
  return (
    keys.length === Object.keys(two).length &&
    keys.every((key) => Object.hasOwn(two, key) && isSameToml(one[key], two[key]))
  )
}
