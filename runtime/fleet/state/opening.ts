/** Opens state.db: checks it, its release and its line, upgrades an older one, and puts another one in its place. */
import { existsSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { Fault } from '#kit/foundation/fault.ts'
import { insertEvent, SYSTEM_EVENT } from './event-rows.ts'
import { moveNameNow } from '#kit/host/folders.ts'
import { adoptFile } from './ownership.ts'
import {
  archiveFile,
  beginState,
  closeWhole,
  COMPANIONS,
  removeDatabase,
  reserveArchive,
  rotateState,
  type SchemaReset,
} from './rotation.ts'
import { readMarker, SCHEMA, writeSchema, type Marker } from './schema.ts'
import { openSqlite, type Sql, type SqliteFile } from './sqlite.ts'

interface StateOpening {
  readonly path: string
  readonly release: string
  readonly line: string
  /** ISO time. */
  readonly now: string
  /** Only the server's process may rotate a file of another release. */
  readonly owner: boolean
}

interface Opened {
  readonly file: SqliteFile
  readonly reset: SchemaReset | null
  /** The file existed and was empty: its former content is lost. */
  readonly wasEmpty: boolean
}

interface Holding extends Omit<StateOpening, 'now'> {
  /** ISO time. */
  now(): string
  /** Where the file is damaged, an empty one stands in, so that a backup can replace it. */
  readonly replacesDamaged?: boolean | undefined
}

export function holdFile({ now, replacesDamaged, ...opening }: Holding) {
  const { path, release } = opening
  const standIn = `${path}.stand-in`
  const open = (at = path) => openState({ ...opening, path: at, now: now() })
  if (opening.owner) removeDatabase(standIn)
  let isStandIn = false
  const opened = ((): Opened => {
    try {
      return open()
    } catch (thrown) {
      if (replacesDamaged !== true || !isDamage(thrown)) throw thrown
      isStandIn = true
      return open(standIn)
    }
  })()
  let { file } = opened

  /** Nobody may use the held file until this returns. */
  function letGo() {
    if (isStandIn) return
    try {
      closeWhole(file)
    } catch (thrown) {
      if (!file.isOpen()) file = open().file
      throw thrown
    }
  }

  return {
    opened,
    current: () => file,
    isStandIn: () => isStandIn,
    /**
     * Returns the name of the former file's `.bak`. If `other` is unusable, all is as before.
     * `settle` changes `other` in the same step.
     */
    replace(other: string, settle: (sql: Sql) => void): string {
      letGo()
      const former = file
      const archive = reserveArchive(path, isStandIn ? 'damaged' : release, now())
      archiveFile(path, archive)
      // The log of an unreadable file must not be read into the new one.
      moveCompanions(path, archive)
      try {
        adoptFile(other)
        moveNameNow(other, path)
        const next = open().file
        file = next
        next.transact(() => settle(next))
      } catch (thrown) {
        if (file !== former) file.close()
        file = former
        moveNameNow(archive, path)
        moveCompanions(archive, path)
        if (!isStandIn) file = open().file
        throw thrown
      }
      if (isStandIn) former.close()
      if (isStandIn) removeDatabase(standIn)
      isStandIn = false
      return basename(archive)
    },
    close() {
      file.close()
      if (isStandIn) removeDatabase(standIn)
    },
  }
}

const isDamage = (thrown: unknown) => thrown instanceof Fault && thrown.code === 'input-invalid'

function moveCompanions(from: string, to: string) {
  for (const tail of COMPANIONS) {
    if (existsSync(`${from}${tail}`)) moveNameNow(`${from}${tail}`, `${to}${tail}`)
  }
}

/**
 * Each commit is followed by our own wait for the disk, off the event loop (commits.ts). Only
 * folding blocks the loop: at 8 MiB, half as often as by default.
 */
const PRAGMAS = `PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
  PRAGMA wal_autocheckpoint = 2000`

/** Throws, with nothing changed, if the file is damaged, of another line, or busy. */
function openState(opening: StateOpening): Opened {
  const { path, release, line, now, owner } = opening
  const ours: Marker = { release, line, schema: SCHEMA }
  const size = statSync(path, { throwIfNoEntry: false })?.size
  if (size === undefined) {
    if (!owner) throw notThere(path)
    beginState(path, ours, now)
  }
  const wasEmpty = size === 0
  const file = openSqlite(path)
  try {
    checkHealth(file)
    file.execute(PRAGMAS)
    const plan = planOpening(file, ours, wasEmpty)
    if (plan.action === 'use') return { file, reset: null, wasEmpty: false }
    if (plan.action === 'fill') {
      file.transact(() => {
        writeSchema(file, ours)
        const summary = renderEmptyState(path)
        insertEvent(file, { ...SYSTEM_EVENT, ts: now, kind: 'system.state.empty', summary })
      })
      return { file, reset: null, wasEmpty }
    }
    if (!owner) throw notUpgraded(path, plan.from)
    closeWhole(file)
    const { action: _, ...how } = plan
    const reset = rotateState({ path, to: ours, now, ...how })
    return { file: openState(opening).file, reset, wasEmpty: false }
  } catch (thrown) {
    if (file.isOpen()) file.close()
    throw thrown
  }
}

export const renderEmptyState = (path: string): string =>
  `${basename(path)} was empty, so a new database was begun: machines, settings and events that it held are lost. A backup can be restored.`

type OpeningPlan =
  | { readonly action: 'use' }
  | { readonly action: 'fill' }
  | ({ readonly action: 'rotate' } & Pick<
      Parameters<typeof rotateState>[0],
      'from' | 'carry' | 'isBare'
    >)

function planOpening(file: SqliteFile, ours: Marker, wasEmpty: boolean): OpeningPlan {
  const found = readMarker(file)
  if (found.kind === 'empty' && wasEmpty) return { action: 'fill' }
  if (found.kind !== 'marked') {
    const isBare = found.kind === 'empty'
    const from = isBare ? 'pre-versioning' : found.from
    return { action: 'rotate', from, carry: false, isBare }
  }
  const { marker } = found
  if (marker.line !== ours.line) throw otherLine(file.path, marker, ours)
  if (marker.release === ours.release && marker.schema === ours.schema) return { action: 'use' }
  const carry = marker.schema <= SCHEMA
  return { action: 'rotate', from: marker.release, carry, isBare: false }
}

const otherLine = (path: string, marker: Marker, ours: Marker) =>
  new Fault(
    'conflict',
    `${path} belongs to the ${marker.line} release line (${marker.release}); this is the ${ours.line} line`,
    {
      hint: 'Start that line, or choose another state directory (FLASHER_PATHS_STATE_DIR), or move the file away.',
    },
  )

const notThere = (path: string) =>
  new Fault('busy', `${path} is not there, though a server runs`, {
    hint: 'Try again when the server has started.',
  })

const notUpgraded = (path: string, from: string) =>
  new Fault('conflict', `${path} was written by release ${from} and a server is using it`, {
    hint: 'Restart the server with this release first; it upgrades the file.',
  })

/** Larger files are not read through at each start. */
const CHECKED_BYTES = 256 * 1024 * 1024

function checkHealth(file: SqliteFile) {
  if (statSync(file.path).size > CHECKED_BYTES) return
  const damage = file.findDamage('quick_check')
  if (damage === null) return
  throw new Fault('input-invalid', `${file.path} is damaged: ${damage}`, {
    hint: 'Nothing was changed. Move the file away and start again, then restore a backup; the newest state.db.*.bak beside it is an older state.',
  })
}
