/** Keeps the pieces of a window within its size: nginx itself looks at that every ten seconds only. */
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { linger } from '#kit/host/watch.ts'
import { PIECE_BYTES } from './rules/peer-config.ts'

/** In this time 1 GbE brings some 25 MiB. */
const LOOK_MS = 200

/** nginx's name for a complete piece. */
const PIECE = /^[0-9a-f]{32}$/

/** Removes the oldest pieces beyond `windowBytes`. */
export function createWindowKeeper(folder: string, windowBytes: number) {
  const most = Math.floor(windowBytes / PIECE_BYTES)
  /** In the order in which they came. */
  const known = new Set<string>()

  async function tidy(): Promise<void> {
    // No folder before the first piece, and none after the end.
    const there = new Set(await readdir(folder).catch(() => []))
    for (const name of known) if (!there.has(name)) known.delete(name)
    const fresh = [...there].filter((name) => PIECE.test(name) && !known.has(name))
    for (const name of await sortByAge(folder, fresh)) known.add(name)
    const surplus = [...known].slice(0, Math.max(0, known.size - most))
    // nginx fetches a missing piece again.
    await Promise.all(surplus.map((name) => rm(join(folder, name)).catch(() => undefined)))
  }

  return {
    tidy,
    async watch(signal: AbortSignal): Promise<void> {
      for (; !signal.aborted; await linger(LOOK_MS, signal)) await tidy()
    },
  }
}

async function sortByAge(folder: string, names: readonly string[]): Promise<readonly string[]> {
  const ages = names.map(async (name) => {
    const found = await stat(join(folder, name)).catch(() => null)
    return { name, at: found?.ctimeMs ?? 0 }
  })
  return (await Promise.all(ages)).toSorted((a, b) => a.at - b.at).map(({ name }) => name)
}
