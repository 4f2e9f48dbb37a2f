/** Parses `zpool status -P -L`: which device nodes belong to which imported pool. */

export interface PoolMember {
  readonly pool: string
  /** A device node, links resolved. */
  readonly path: string
}

/** Spares, logs and caches count like all others; rows that name no device are passed over. */
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
