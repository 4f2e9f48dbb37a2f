/** What people may read in the shared database: rows hold records as text, which these show as columns. */
import { SCHEMA_NAME } from './shared-tables.ts'

const WORD = `${SCHEMA_NAME}.word`

/** Records are text: PostgreSQL's JSON refuses some characters. Such a word is null here. */
const WORD_FUNCTION = `CREATE FUNCTION ${WORD} (record text, key text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE AS $$
  BEGIN
    RETURN record::json ->> key;
  EXCEPTION WHEN others THEN
    RETURN NULL;
  END $$`

const words = (...names: readonly string[]) =>
  names.map((name) => `${WORD}(record, '${name}') AS ${name}`).join(', ')

export const PEOPLE_VIEWS: readonly string[] = [
  WORD_FUNCTION,
  `CREATE VIEW ${SCHEMA_NAME}.machine_list AS SELECT mac,
    ${words('name', 'labels', 'boot_mode', 'bty_image_ref', 'target_disk_serial', 'last_flashed_at')},
    last_seen_at, last_seen_ip FROM ${SCHEMA_NAME}.machines ORDER BY mac`,
  `CREATE VIEW ${SCHEMA_NAME}.run_list AS SELECT mac, id, began, result, image, model, serial, actor,
    ${words('reason', 'verified', 'bytes_written')} FROM ${SCHEMA_NAME}.runs ORDER BY n DESC`,
]
