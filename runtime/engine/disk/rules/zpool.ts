/** Parses `zpool status -P -L`: which device nodes belong to which imported pool. */

export interface PoolMember {
  readonly pool: string
  /** Links resolved. */
  readonly path: string
}

/** With spares, logs and caches; rows without a device are skipped. */
export function parseZpoolStatus(text: string): readonly PoolMember[] {
  const members: PoolMember[] = []
  let pool: string | null = null
  for (const line of text.split('\n')) {
    pool = /^ *pool: (\S.*)$/.exec(line)?.[1] ?? pool
    const path = /^\t *(\/dev\/\S+)/.exec(line)?.[1]
    if (pool !== null && path !== undefined) members.push({ pool, path })
  }
  return members
}
