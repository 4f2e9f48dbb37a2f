/** The columns of the machines table: their titles, and which of them are shown. */
import { PAGES } from '#server/texts/texts.ts'

export const COLUMN_NAMES = [
  'state',
  'name',
  'next',
  'image',
  'disk',
  'labels',
  'ip',
  'arch',
  'flashed',
  'discovered',
  'seen',
] as const

export type ColumnName = (typeof COLUMN_NAMES)[number]

export const COLUMN_TITLES: Readonly<Record<ColumnName, string>> = PAGES.view.columns

const SPARE: ReadonlySet<ColumnName> = new Set(['labels', 'ip', 'arch', 'flashed', 'discovered'])

/** `state.image.disk`, in our order; the name is always shown. Null or empty: the usual columns. */
export function parseColumns(text: string | null): readonly ColumnName[] {
  const given = new Set((text ?? '').slice(0, 200).split('.'))
  const chosen = COLUMN_NAMES.filter((name) => name === 'name' || given.has(name))
  return text === null || text === '' ? COLUMN_NAMES.filter((name) => !SPARE.has(name)) : chosen
}

export const renderColumns = (columns: readonly ColumnName[]): string => columns.join('.')

export const isUsual = (columns: readonly ColumnName[]): boolean =>
  renderColumns(columns) === renderColumns(parseColumns(null))
