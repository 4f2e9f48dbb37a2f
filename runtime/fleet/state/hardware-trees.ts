/** Stores the lshw report of each machine, compressed, beside its record. */
import { isUtf8 } from 'node:buffer'
import { zstdCompress, zstdCompressSync, zstdDecompress } from 'node:zlib'
import { promisify } from 'node:util'
import type { Mac } from '#kit/net/rules/mac.ts'
import { readText, type Sql } from './sqlite.ts'

export interface HardwareTree {
  readonly json: string
  /** ISO time; a bundle may not know it. */
  readonly at: string
}

export type PackedHardware = Awaited<ReturnType<typeof packHardware>>

/** Beyond it, another thread compresses: for small texts that takes ten times as long. */
const MAX_AT_ONCE = 512 * 1024

const compressLong = promisify(zstdCompress)
const decompress = promisify(zstdDecompress)

interface PostedHardware {
  readonly json: string | Uint8Array
  readonly at: string
}

/** Call it before a transaction, which must not wait. */
export async function packHardware({ json, at }: PostedHardware) {
  const bytes = typeof json === 'string' ? Buffer.from(json) : repairText(json)
  // With a known size, the compressor takes no more memory than needed.
  const sized = { pledgedSrcSize: bytes.length }
  const tree =
    bytes.length > MAX_AT_ONCE ? await compressLong(bytes, sized) : zstdCompressSync(bytes, sized)
  return { at, tree }
}

/** Firmware's names in other encodings than UTF-8 would break the JSON. */
const repairText = (json: Uint8Array): Uint8Array =>
  isUtf8(json) ? json : Buffer.from(Buffer.from(json).toString('utf8'))

export const saveHardware = (sql: Sql, mac: Mac, { at, tree }: PackedHardware): unknown =>
  sql.run(SAVE, mac, at, tree)

export async function findHardware(sql: Sql, mac: Mac): Promise<HardwareTree | null> {
  const row = sql.get('SELECT posted_at, tree FROM hardware WHERE mac = ?', mac)
  const tree = row?.['tree']
  if (row === null || !(tree instanceof Uint8Array)) return null
  return { json: (await decompress(tree)).toString('utf8'), at: readText(row, 'posted_at') }
}

export const removeHardware = (sql: Sql, mac: Mac): unknown =>
  sql.run('DELETE FROM hardware WHERE mac = ?', mac)

const SAVE = `INSERT INTO hardware (mac, posted_at, tree) VALUES (?, ?, ?)
  ON CONFLICT (mac) DO UPDATE SET posted_at = excluded.posted_at, tree = excluded.tree`
