/** API tokens: made once, shown once, kept as hashes. */

export type TokenScope = 'read' | 'machines' | 'flash' | 'admin'

/** As kept; the token itself is nowhere. */
export interface TokenRecord {
  readonly id: string
  readonly name: string
  readonly scopes: readonly TokenScope[]
  /** ISO times; null: never used yet, never ends. */
  readonly created_at: string
  readonly last_used_at: string | null
  readonly expires_at: string | null
}

export interface Tokens {
  list(): Promise<readonly TokenRecord[]>
  /** The token's text is in the answer and never again. */
  create(
    wish: Pick<TokenRecord, 'name' | 'scopes' | 'expires_at'>,
  ): Promise<{ readonly record: TokenRecord; readonly token: string }>
  /** False when there was none. */
  revoke(id: string): Promise<boolean>
  /** Who it is, or null; never waits for a disk. Notes the use, on disk within a minute. */
  find(token: string): TokenRecord | null
}
