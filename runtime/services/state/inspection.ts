/** Checks whether a file is a database that this program can use. */
import { Fault } from '../../core/foundation/fault.ts'
import { readMarker, SCHEMA, type Marker } from './schema.ts'
import { openSqlite } from './sqlite.ts'

/** Reads all of it, on the event loop's time. Throws when it is damaged, foreign, too new or of another line. */
export function inspectState(path: string, line: string): Marker {
  using file = openSqlite(path)
  const damage = file.findDamage('integrity_check')
  if (damage !== null) throw refused(`it is damaged: ${damage}`)
  const found = readMarker(file)
  if (found.kind !== 'marked') throw refused('it was not written by this program')
  const { marker } = found
  if (marker.line !== line) throw refused(`it belongs to the ${marker.line} release line`)
  if (marker.schema > SCHEMA) throw refused(`release ${marker.release} is newer than this one`)
  // What follows is a rename: nothing may be left beside the file.
  file.fold()
  return marker
}

const refused = (why: string) =>
  new Fault('input-invalid', `the database cannot be used: ${why}`, {
    hint: 'Nothing was changed.',
  })
