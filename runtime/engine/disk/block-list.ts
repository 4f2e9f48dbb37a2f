/** Lists block devices with lsblk, whatever its version. */
import { Fault } from '#kit/foundation/fault.ts'
import { LSBLK_COLUMNS, LSBLK_COLUMNS_OLD, parseLsblk, type LsblkNode } from './rules/lsblk.ts'
import type { Shell } from '#kit/host/shell.ts'

/** A device that does not answer must not hold up everything. */
const TIMEOUT_MS = 60_000

export async function readLsblk(
  shell: Shell,
  ...more: readonly string[]
): Promise<readonly LsblkNode[]> {
  const run = (columns: string) =>
    shell.run(['lsblk', '--json', '--output', columns, ...more], { timeout: TIMEOUT_MS })
  const first = await run(LSBLK_COLUMNS)
  const isOld = first.exitCode !== 0 && first.stderr.includes('unknown column')
  const { exitCode, stdout, stderr } = isOld ? await run(LSBLK_COLUMNS_OLD) : first
  if (exitCode !== 0) {
    throw new Fault('tool-failed', `lsblk: ${stderr.trim() || `exit code ${exitCode}`}`)
  }
  const parsed = parseLsblk(stdout)
  if (parsed.ok) return parsed.value
  throw new Fault('tool-failed', 'lsblk printed something other than its JSON')
}
