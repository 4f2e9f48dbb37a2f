/** Runs as CSV (RFC 4180), safe to open in a spreadsheet. */
import { printableText } from '../foundation/printable.ts'
import type { Run } from './run.ts'
import { averageRateOf, secondsOf, stateOf } from './run-view.ts'

type Cell = string | number | boolean | null | undefined

const COLUMNS = {
  mac: ({ mac }) => mac,
  run: ({ id }) => id,
  state: stateOf,
  mode: ({ mode }) => mode,
  started_at: ({ started_at }) => started_at,
  ended_at: ({ ended_at }) => ended_at,
  seconds: secondsOf,
  image: ({ image }) => image?.name,
  image_src: ({ image }) => image?.src,
  image_ref: ({ image }) => image?.ref,
  image_sha256: ({ image }) => image?.sha256,
  format: ({ image }) => image?.format,
  disk: ({ disk }) => disk?.path,
  disk_model: ({ disk }) => disk?.model,
  disk_serial: ({ disk }) => disk?.serial,
  disk_bytes: ({ disk }) => disk?.size_bytes,
  bytes_read: (run) => (run.reported ? run.bytes_read : null),
  bytes_written: (run) => (run.reported ? run.bytes_written : null),
  bytes_per_second: averageRateOf,
  verified: ({ verified }) => verified,
  armed_by: ({ armed_by }) => armed_by?.actor,
  armed_from: ({ armed_by }) => armed_by?.ip,
  armed_at: ({ armed_by }) => armed_by?.at,
  reason: ({ reason }) => reason,
} as const satisfies Readonly<Record<string, (run: Run) => Cell>>

export const CSV_HEAD = `${Object.keys(COLUMNS).join(',')}\r\n`

export const renderCsvRow = (run: Run): string =>
  `${Object.values(COLUMNS)
    .map((read) => renderCell(read(run)))
    .join(',')}\r\n`

/** A spreadsheet takes what begins so for a formula, also behind blanks and in full width. */
const FORMULA = /^[\s\0]*[=+\-@\t\r|%＝＋－＠]/

/** Texts come from machines: a formula among them is shown instead of calculated. */
function renderCell(value: Cell): string {
  if (value === null || value === undefined) return ''
  if (typeof value !== 'string') return String(value)
  const text = printableText(value)
  const shown = FORMULA.test(text) ? `'${text}` : text
  return /[",\r\n;\t']/.test(shown) ? `"${shown.replaceAll('"', '""')}"` : shown
}
