/** Builds the WHERE clause of a query from the conditions that are given. */
import { findMac } from '#kit/net/rules/mac.ts'
import type { SqlValue } from './sqlite.ts'

interface Where {
  readonly text: string
  readonly values: readonly SqlValue[]
}

/** Empty without a value. Each `?` stands for the value. */
export const condition = (text: string, value: SqlValue | undefined): readonly Where[] =>
  value === undefined ? [] : [{ text, values: [...text.matchAll(/\?/g)].map(() => value) }]

export const flag = (text: string, isWanted: boolean | undefined): readonly Where[] =>
  isWanted === true ? [{ text, values: [] }] : []

/** Follows a column; `renderList` renders the list. */
export const AMONG = 'IN (SELECT value FROM json_each(?))'

export const renderList = (values: readonly string[] | undefined): string | undefined =>
  values === undefined ? undefined : JSON.stringify(values)

const MAX_WORDS = 8

/** Each word (at most eight) is in a column, an address in any spelling; `%`, `_` are plain. */
export function search(columns: readonly string[], text = ''): readonly Where[] {
  const isIn = columns.map((column) => `lower(coalesce(${column}, '')) LIKE ? ESCAPE '!'`)
  const words = text.toLowerCase().split(/\s+/).filter(Boolean).slice(0, MAX_WORDS)
  return words.map((word): Where => {
    // Addresses are stored in one spelling; twelve digits can be something else, too.
    const meant = [...new Set([word, findMac(word) ?? word])]
    return {
      text: meant.flatMap(() => isIn).join(' OR '),
      values: meant.flatMap((one) => isIn.map(() => `%${one.replace(/[!%_]/g, '!$&')}%`)),
    }
  })
}

export const renderWhere = (parts: readonly Where[]): Where => ({
  text: parts.length === 0 ? '' : `WHERE (${parts.map(({ text }) => text).join(') AND (')})`,
  values: parts.flatMap(({ values }) => values),
})
