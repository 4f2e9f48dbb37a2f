/** The columns of runs as CSV. */
import { renderCsvRow, type Cell } from '#kit/foundation/csv.ts'
import type { Run } from '#engine/inventory/rules/run.ts'
import { averageRateOf, secondsOf, stateOf } from './run-view.ts'

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
  boot: ({ proof }) => proof?.state,
  boot_seen_by: ({ proof }) => proof?.how,
  boot_seconds: ({ proof }) => proof?.seconds,
} as const satisfies Readonly<Record<string, (run: Run) => Cell>>

/** The name is last, so that programs that count columns find the others. */
export const CSV_HEAD = renderCsvRow([...Object.keys(COLUMNS), 'name'])

/** With its line end. `name` null: none. */
export const renderRunRow = (run: Run, name: string | null): string =>
  renderCsvRow([...Object.values(COLUMNS).map((read) => read(run)), name])
