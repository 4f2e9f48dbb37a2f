/** Opens state.db: checks it, its release and its line, and upgrades an older one. */
import { statSync } from 'node:fs'
import { basename } from 'node:path'
import { Fault } from '../../core/foundation/fault.ts'
import { insertEvent, SYSTEM_EVENT } from './event-rows.ts'
import { closeWhole, rotateState, type SchemaReset } from './rotation.ts'
import { readMarker, SCHEMA, writeSchema, type Marker } from './schema.ts'
import { openSqlite, type SqliteFile } from './sqlite.ts'

interface Opening {
  readonly path: string
  readonly release: string
  readonly line: string
  /** ISO time. */
  readonly now: string
  /** Whether a file of another release may be rotated now: only the server's process may. */
  readonly owner: boolean
}

interface Opened {
  readonly file: SqliteFile
  readonly reset: SchemaReset | null
  /** The file was there and held nothing: whatever it held before is lost. */
  readonly wasEmpty: boolean
}

/**
 * Our own wait for the disk follows each commit (commits.ts), off the event loop. Only folding the
 * `-wal` into the file keeps the loop waiting: at 8 MiB, half as often as by default.
 */
const PRAGMAS = `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 2000`

/** Throws, with nothing changed, when the file is damaged, of the other line, or busy. */
export function openState(opening: Opening): Opened {
  const { path, release, line, now, owner } = opening
  const wasEmpty = statSync(path, { throwIfNoEntry: false })?.size === 0
  const file = openSqlite(path)
  const ours: Marker = { release, line, schema: SCHEMA }
  try {
    checkHealth(file)
    file.execute(PRAGMAS)
    const plan = planOpening(file, ours)
    if (plan.action === 'use') return { file, reset: null, wasEmpty: false }
    if (plan.action === 'fill') {
      file.transact(() => {
        writeSchema(file, ours)
        const summary = renderEmptyState(path)
        const event = { ...SYSTEM_EVENT, ts: now, kind: 'system.state.empty', summary }
        if (wasEmpty) insertEvent(file, event)
      })
      return { file, reset: null, wasEmpty }
    }
    if (!owner) throw notUpgraded(path, plan.from)
    closeWhole(file)
    const reset = rotateState({ path, from: plan.from, to: ours, carry: plan.carry, now })
    return { file: openState(opening).file, reset, wasEmpty: false }
  } catch (thrown) {
    if (file.isOpen()) file.close()
    throw thrown
  }
}

/** Also for the log. */
export const renderEmptyState = (path: string): string =>
  `${basename(path)} was empty, so a new database was begun: machines, settings and events that it held are lost. A backup can be restored.`

type Plan =
  | { readonly action: 'use' }
  | { readonly action: 'fill' }
  | { readonly action: 'rotate'; readonly from: string; readonly carry: boolean }

function planOpening(file: SqliteFile, ours: Marker): Plan {
  const found = readMarker(file)
  if (found.kind === 'empty') return { action: 'fill' }
  if (found.kind === 'foreign') return { action: 'rotate', from: found.from, carry: false }
  const { marker } = found
  if (marker.line !== ours.line) throw otherLine(file.path, marker, ours)
  if (marker.release === ours.release && marker.schema === ours.schema) return { action: 'use' }
  return { action: 'rotate', from: marker.release, carry: marker.schema <= SCHEMA }
}

const otherLine = (path: string, marker: Marker, ours: Marker) =>
  new Fault(
    'conflict',
    `${path} belongs to the ${marker.line} release line (${marker.release}); this is the ${ours.line} line`,
    {
      hint: 'Start that line, or choose another state directory (FLASHER_PATHS_STATE_DIR), or move the file away.',
    },
  )

const notUpgraded = (path: string, from: string) =>
  new Fault('conflict', `${path} was written by release ${from} and a server is using it`, {
    hint: 'Restart the server with this release first; it upgrades the file.',
  })

/** Whole files of more than this are not read through at each start. */
const CHECKED_BYTES = 256 * 1024 * 1024

function checkHealth(file: SqliteFile) {
  if (statSync(file.path).size > CHECKED_BYTES) return
  const damage = file.findDamage('quick_check')
  if (damage === null) return
  throw new Fault('input-invalid', `${file.path} is damaged: ${damage}`, {
    hint: 'Nothing was changed. Move the file away and start again, then restore a backup; the newest state.db.*.bak beside it is an older state.',
  })
}
