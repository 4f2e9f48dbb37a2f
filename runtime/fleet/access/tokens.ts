/** API tokens: created once, shown once, stored as hashes. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { SCOPES, type Scope } from '#kit/web/answers/rules/rights.ts'
import { createLaggedWrites } from '#fleet/state/commits.ts'
import type { Database } from '#fleet/state/database.ts'
import { keepRead } from '#fleet/state/kept-rows.ts'
import { readText, readTextOrNull, type Row } from '#fleet/state/sqlite.ts'
import { readFile } from 'node:fs/promises'
import { replaceFile } from '#kit/host/folders.ts'

export interface TokenRecord {
  readonly id: string
  readonly name: string
  readonly scopes: readonly Scope[]
  /** The owner's person id; null: the administrator. */
  readonly owner: string | null
  /** The id of the token that made it, with which it is revoked; null: a person made it. */
  readonly maker: string | null
  /** ISO times; null: never used yet, never ends. */
  readonly created_at: string
  readonly last_used_at: string | null
  readonly expires_at: string | null
}

export interface MadeToken {
  readonly record: TokenRecord
  readonly token: string
}

interface NewToken extends Pick<TokenRecord, 'name' | 'scopes' | 'expires_at'> {
  /** Default: the administrator. */
  readonly owner?: TokenRecord['owner']
  readonly maker?: TokenRecord['maker']
}

export type Tokens = ReturnType<typeof createTokens>

const LAG_MS = 30_000

/** Lookups come from memory; a change is on disk before the call resolves. */
export function createTokens(
  database: Database,
  { now = () => new Date() }: { now?(): Date } = {},
) {
  /** By digest. */
  const { current, write } = keepRead(
    database,
    (sql) =>
      new Map(
        sql.all(ALL).flatMap((row) => {
          const record = readRecord(row)
          return record === null ? [] : [[readText(row, 'digest'), record]]
        }),
      ),
  )
  const uses = createTokenUses(database, write)

  return {
    hasName: (name: string): boolean =>
      current()
        .values()
        .some((each) => each.name === name),
    /** Oldest first; expired ones too, revoked ones not. */
    list: async (): Promise<readonly TokenRecord[]> => [...current().values()].map(uses.apply),
    /**
     * The token's text is only in this answer. The name and the limit `most` are checked in the
     * storing transaction, so parallel calls cannot pass them.
     */
    async create(
      { name, scopes, owner = null, maker = null, expires_at }: NewToken,
      most: number,
    ): Promise<Result<MadeToken, 'name-taken' | 'too-many'>> {
      const id = randomBytes(6).toString('hex')
      const token = `flasher_${id}_${randomBytes(32).toString('base64url')}`
      const created_at = now().toISOString()
      const record = { id, name, scopes, owner, maker, created_at, last_used_at: null, expires_at }
      const more = { owner: owner ?? undefined, maker: maker ?? undefined }
      const stored = JSON.stringify({ name, scopes, ...more, expires_at })
      const obstacle = await write((sql) => {
        const known = sql.all(ALL).flatMap((row) => readRecord(row) ?? [])
        if (known.some((each) => each.name === name)) return 'name-taken'
        if (known.length >= most) return 'too-many'
        sql.run(ADD, id, stored, digestOf(token), created_at)
        return null
      })
      return obstacle === null ? accept({ record, token }) : refuse(obstacle)
    },
    /** Revokes the tokens that it made, too. False: no such token. */
    revoke(id: string): Promise<boolean> {
      const at = now().toISOString()
      return write((sql) => sql.run(REVOKE, at, id) > 0)
    },
    /** Never waits for a disk. The use is on disk within a minute. */
    find(token: string): TokenRecord | null {
      const record = current().get(digestOf(token))
      if (record === undefined) return null
      const at = now().toISOString()
      if (isExpired(record, at)) return null
      uses.note(record.id, at)
      return uses.apply(record)
    },
  }
}

/** Last uses are kept in memory for a moment, so that no request waits for the disk. */
function createTokenUses(database: Database, write: Database['write']) {
  const used = createLaggedWrites<string, string>(LAG_MS, (uses) =>
    write((sql) => {
      for (const [id, at] of uses) sql.run(NOTE_USE, at, id)
    }),
  )
  database.beforeClosing(used.flush)

  return {
    note: used.note,
    apply: (record: TokenRecord): TokenRecord => ({
      ...record,
      last_used_at: used.find(record.id) ?? record.last_used_at,
    }),
  }
}

/** Revoked rows stay, so that restoring an older state gives no token its rights back. */
const ALL = `SELECT id, record, digest, created_at, last_used_at FROM tokens
  WHERE revoked_at IS NULL ORDER BY created_at, id`
const ADD = 'INSERT INTO tokens (id, record, digest, created_at) VALUES (?, ?, ?, ?)'
const NOTE_USE = 'UPDATE tokens SET last_used_at = ? WHERE id = ?'
const REVOKE = `UPDATE tokens SET revoked_at = ? WHERE revoked_at IS NULL AND id IN (
  WITH RECURSIVE made (id) AS (VALUES (?) UNION
    SELECT each.id FROM tokens AS each JOIN made ON json_extract(each.record, '$.maker') = made.id)
  SELECT id FROM made)`

/** An unreadable date ends the token. */
const isExpired = ({ expires_at }: TokenRecord, at: string) =>
  expires_at !== null && !(Date.parse(expires_at) > Date.parse(at))

const digestOf = (token: string) => createHash('sha256').update(token).digest('hex')

/** Null if it grants no known scope. */
function readRecord(row: Row): TokenRecord | null {
  const stored = STORED.safeParse(parseJson(readText(row, 'record')))
  if (!stored.success) return null
  return {
    id: readText(row, 'id'),
    ...stored.data,
    created_at: readText(row, 'created_at'),
    last_used_at: readTextOrNull(row, 'last_used_at'),
  }
}

const STORED = z.object({
  name: z.string(),
  scopes: z.array(z.unknown()).transform((all) => SCOPES.filter((one) => all.includes(one))),
  owner: z.string().nullable().default(null),
  maker: z.string().nullable().default(null),
  // An unreadable date ends the token.
  expires_at: z.string().nullable().catch(''),
})

// A token in a file that only its owner can read; it authorizes changes to the service beside it.

export async function readLocalToken(path: string): Promise<string | null> {
  const text = await readFile(path, 'latin1').catch(() => '')
  return /^[\w-]{32,100}\s*$/.test(text) ? text.trim() : null
}

/** Makes a token (mode 0600) if there is none. Rejects if the file cannot be written. */
export async function ensureLocalToken(path: string): Promise<string> {
  const found = await readLocalToken(path)
  if (found !== null) return found
  const token = randomBytes(32).toString('base64url')
  await replaceFile(path, `${token}\n`, 0o600)
  return token
}

/** Compares in constant time; an empty secret matches nothing. */
export function isOneOf(given: string, secrets: readonly string[]): boolean {
  const wanted = digest(given)
  const hits = secrets.filter((each) => each.trim() !== '' && timingSafeEqual(digest(each), wanted))
  return hits.length > 0
}

const digest = (text: string) => createHash('sha256').update(text).digest()
