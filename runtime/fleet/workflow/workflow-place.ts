/** Looks at the path of a workflow on this server: nothing there yet is no fault, something else than a file is. */
import { statSync } from 'node:fs'

/**
 * A clause; null: it is a file, or may become one. Synchronous: a record is changed in one turn.
 */
export function findWorkflowFault(path: string): string | null {
  const found = look(path)
  if (found === undefined || found.isFile()) return null
  return found.isDirectory() ? 'it is a folder, not a file' : 'it is a device or pipe, not a file'
}

function look(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    // Best effort: the workflow's start reports what may not be looked at.
    return undefined
  }
}
