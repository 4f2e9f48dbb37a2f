/** Things dear to make, kept between runs and outside the checkout, and made anew when spoilt. */
import { createHash } from 'node:crypto'
import { createReadStream, type Stats } from 'node:fs'
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { destr } from 'destr'
import { z } from 'zod'
import { withLock } from '../disk/lock.ts'

const DAY = 24 * 60 * 60 * 1000
const UNUSED_FOR = 10 * DAY
const MAKING = 'making-'

/** What is written beside each kept file, to know it again. */
const RecordSchema = z.object({ bytes: z.number(), seconds: z.number(), sha256: z.string() })

export interface TestCache {
  /**
   * The folder where the named files lie. Where one is missing or not as it was left, `make` is
   * called first, to write all of them into the folder that it is given.
   */
  keep(names: readonly string[], make: (folder: string) => Promise<void>): Promise<string>
}

/** `recipe`: files whose content decides what is made; the week and `also` count as well. */
export async function openTestCache(
  title: string,
  { recipe, also }: { readonly recipe: readonly string[]; readonly also: readonly string[] },
): Promise<TestCache> {
  const root = cacheRoot()
  const texts = await Promise.all(recipe.map((path) => readFile(path, 'utf8')))
  const week = Math.floor(Date.now() / (7 * DAY))
  const key = createHash('sha256')
    .update(JSON.stringify([texts, also, week]))
    .digest('hex')
  const folder = join(root, `${title}-${key.slice(0, 16)}`)
  await mkdir(folder, { recursive: true })
  const now = new Date()
  await utimes(folder, now, now)
  await removeUnused(root)
  return {
    keep: (names, make) =>
      withLock(join(folder, 'lock'), async () => {
        const states = await Promise.all(names.map((name) => isWhole(join(folder, name))))
        if (states.includes(false)) await makeAll(folder, names, make)
        return folder
      }),
  }
}

function cacheRoot(): string {
  const { FLASHER_TEST_CACHE: chosen, XDG_CACHE_HOME: home } = process.env
  return chosen || join(home || join(homedir(), '.cache'), 'flasher-test')
}

async function makeAll(
  folder: string,
  names: readonly string[],
  make: (folder: string) => Promise<void>,
) {
  await removeWhere(folder, (name) => name.startsWith(MAKING))
  const workspace = await mkdtemp(join(folder, MAKING))
  try {
    await make(workspace)
    for (const name of names) {
      const path = join(folder, name)
      await rm(recordOf(path), { force: true })
      await rename(join(workspace, name), path)
      await writeRecord(path)
    }
  } finally {
    await rm(workspace, { recursive: true, force: true })
  }
}

const recordOf = (path: string) => `${path}.record`

/** Size and time tell at once; where only the time differs (a restored copy), the digest does. */
async function isWhole(path: string): Promise<boolean> {
  const known = RecordSchema.safeParse(
    destr(await readFile(recordOf(path), 'utf8').catch(() => '')),
  )
  const found = await stat(path).catch(() => null)
  if (!known.success || found?.size !== known.data.bytes) return false
  if (Math.floor(found.mtimeMs / 1000) === known.data.seconds) return true
  if ((await digestOf(path)) !== known.data.sha256) return false
  await writeRecord(path)
  return true
}

async function writeRecord(path: string) {
  const { size, mtimeMs } = await stat(path)
  const record = {
    bytes: size,
    seconds: Math.floor(mtimeMs / 1000),
    sha256: await digestOf(path),
  }
  await writeFile(recordOf(path), JSON.stringify(record))
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path, { highWaterMark: 2 ** 20 }), hash)
  return hash.digest('hex')
}

/** Folders of recipes and weeks past. */
const removeUnused = (root: string) =>
  removeWhere(root, (_, { mtimeMs }) => Date.now() - mtimeMs > UNUSED_FOR)

async function removeWhere(folder: string, decide: (name: string, found: Stats) => boolean) {
  for (const name of await readdir(folder)) {
    const path = join(folder, name)
    const found = await stat(path).catch(() => null)
    if (found !== null && decide(name, found)) await rm(path, { recursive: true, force: true })
  }
}
