/** The columns of the machines table: their titles, what they sort by, and which of them are shown. */
import { PAGES } from '../../../../core/texts/pages/texts.ts'

const t = PAGES.view.columns

interface FleetColumn {
  readonly title: string
  /** What `sort` names, with `-` where the first click sorts from the newest. */
  readonly sort: string
  /** Shown until somebody chooses. */
  readonly isUsual: boolean
}

const shown = (title: string, sort: string): FleetColumn => ({ title, sort, isUsual: true })
const spare = (title: string, sort: string): FleetColumn => ({ title, sort, isUsual: false })

/** In the order of the table. */
export const FLEET_COLUMNS = {
  state: shown(t.state, 'state'),
  name: shown(t.name, 'name'),
  next: shown(t.next, 'next'),
  image: shown(t.image, 'image'),
  disk: shown(t.disk, 'disk'),
  labels: spare(t.labels, 'labels'),
  ip: spare(t.ip, 'ip'),
  arch: spare(t.arch, 'arch'),
  flashed: spare(t.flashed, '-flashed'),
  discovered: spare(t.discovered, '-discovered'),
  seen: shown(t.seen, '-seen'),
} as const satisfies Readonly<Record<string, FleetColumn>>

export type ColumnName = keyof typeof FLEET_COLUMNS

const isColumn = (name: string): name is ColumnName => Object.hasOwn(FLEET_COLUMNS, name)
export const COLUMN_NAMES: readonly ColumnName[] = Object.keys(FLEET_COLUMNS).filter(isColumn)

/** `state.image.disk`, from an address or a cookie: names that exist, in our order; else the usual ones. */
export function parseColumns(text: string | null): readonly ColumnName[] {
  const given = new Set((text ?? '').slice(0, 200).split('.'))
  const chosen = COLUMN_NAMES.filter((name) => name === 'name' || given.has(name))
  return text === null || text === '' ? COLUMN_NAMES.filter(isShown) : chosen
}

const isShown = (name: ColumnName) => FLEET_COLUMNS[name].isUsual

export const renderColumns = (columns: readonly ColumnName[]): string => columns.join('.')

/** Whether nobody chose other ones. */
export const isUsual = (columns: readonly ColumnName[]): boolean =>
  renderColumns(columns) === renderColumns(parseColumns(null))
