/** A filter of events as the condition of a query. */
import type { SqlValue } from './sqlite.ts'

export interface EventCondition {
  readonly kind?: string
  readonly subject_kind?: string
  readonly subject_id?: string
  readonly actor?: string
  readonly source_ip?: string
  /** Kinds that end in `failed`. */
  readonly failed?: boolean
  readonly unacknowledged?: boolean
  /** Plain text, looked for in kind, subject, actor, address and summary. */
  readonly text?: string
  readonly before_id?: number
}

interface Where {
  /** With its `WHERE`, or empty. */
  readonly text: string
  readonly values: readonly SqlValue[]
}

const EQUAL = ['kind', 'subject_kind', 'subject_id', 'actor', 'source_ip'] as const
const SEARCHED = ['kind', 'subject_id', 'actor', 'source_ip', 'summary'] as const

export function renderWhere(condition: EventCondition): Where {
  const parts: { text: string; values: readonly SqlValue[] }[] = []
  for (const column of EQUAL) {
    const value = condition[column]
    if (value !== undefined) parts.push({ text: `${column} = ?`, values: [value] })
  }
  if (condition.before_id !== undefined) {
    parts.push({ text: 'id < ?', values: [condition.before_id] })
  }
  if (condition.failed === true) parts.push({ text: `kind LIKE '%failed'`, values: [] })
  if (condition.unacknowledged === true) {
    parts.push({ text: 'alarm = 1 AND acknowledged = 0', values: [] })
  }
  if (condition.text !== undefined && condition.text.trim() !== '') {
    parts.push(search(condition.text.trim()))
  }
  const text = parts.map((part) => `(${part.text})`).join(' AND ')
  return { text: text && `WHERE ${text}`, values: parts.flatMap(({ values }) => values) }
}

/** Every word must be somewhere; `%` and `_` are characters like any other. */
function search(text: string) {
  const words = text.toLowerCase().split(/\s+/).slice(0, MAX_WORDS)
  const one = SEARCHED.map((column) => `lower(coalesce(${column}, '')) LIKE ? ESCAPE '!'`)
  return {
    text: words.map(() => `(${one.join(' OR ')})`).join(' AND '),
    values: words.flatMap((word) => SEARCHED.map(() => pattern(word))),
  }
}

const pattern = (word: string) => `%${word.replace(/[!%_]/g, '!$&')}%`

const MAX_WORDS = 8
