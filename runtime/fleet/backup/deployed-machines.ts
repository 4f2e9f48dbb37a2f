/** Reads the machines of a database that the deployed server of the earlier line wrote. */
import { openSqlite } from '#fleet/state/sqlite.ts'
import { isThere } from '#kit/config/state-dirs.ts'

type DeployedRow = Readonly<Record<string, unknown>>

/** Null: no file, or no such database. Nothing is changed. */
export async function readDeployedMachines(path: string): Promise<readonly DeployedRow[] | null> {
  if (!(await isThere(path))) return null
  using file = openSqlite(path)
  const tables = file.listTables()
  if (tables.includes('flasher_state') || !tables.includes('machines')) return null
  const isEarlier = file.listColumns('main', 'machines').includes('boot_policy')
  return isEarlier ? file.all('SELECT * FROM machines') : null
}
