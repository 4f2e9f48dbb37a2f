/** Names the schema that an upgrade leaves behind in the database. */
import { SCHEMA_NAME } from './shared-tables.ts'

/** PostgreSQL cuts longer names. */
const MAX_RELEASE = 30

/** `flasher_1_4_0_20261121t065553z`, safe without quotes. `at`: an ISO time. */
export function renderFormerSchema(release: string, at: string): string {
  const safe = release
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '_')
    .slice(0, MAX_RELEASE)
  const stamp = `${at.slice(0, 19).replaceAll(/[-:]/g, '').toLowerCase()}z`
  return `${SCHEMA_NAME}_${safe || 'unknown'}_${stamp}`
}
