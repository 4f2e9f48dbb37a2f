/** Reads mounts and swap from /proc, in every mount namespace that we can access. */
import { open, readdir, readFile, readlink, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseMountinfo, parseSwaps } from './rules/mount-map.ts'
import type { MountTable } from './rules/mount-map.ts'
import { Fault } from '#kit/foundation/fault.ts'
import type { Backing } from './rules/sightings.ts'

/** Bounds for a hostile crowd of containers; a mount past them still stops the exclusive open. */
const MAX_TABLES = 1024
const MAX_CHARACTERS = 2 ** 26

/** Without our own mounts nothing is known of any disk. */
export async function readOwnMounts(proc: string): Promise<MountTable> {
  try {
    return { process: null, mounts: parseMountinfo(await read(proc, 'self', 'mountinfo')) }
  } catch (cause) {
    throw new Fault('tool-missing', `${join(proc, 'self/mountinfo')} cannot be read`, {
      hint: 'Mount it: mount -t proc proc /proc',
      cause,
    })
  }
}

/**
 * One process for each namespace, and 1 and 2: kernel threads see what an initramfs left mounted
 * below today's root.
 */
export async function listOtherMounts(proc: string): Promise<readonly MountTable[]> {
  const names = await readdir(proc).catch(() => [])
  const pids = names.filter((name) => /^[1-9]\d*$/.test(name)).map(Number)
  const views = await Promise.all(
    pids.toSorted((a, b) => a - b).map(async (pid) => ({ pid, view: await readView(proc, pid) })),
  )
  const own = await readView(proc, 'self')
  const seen = new Set([own, null])
  const chosen = views.filter(({ pid, view }) => {
    const isNew = !seen.has(view)
    seen.add(view)
    return isNew || pid <= 2
  })
  const tables: MountTable[] = []
  let left = MAX_CHARACTERS
  for (const { pid } of chosen.slice(0, MAX_TABLES)) {
    // A process may have ended meanwhile, or be another user's.
    const text = await read(proc, `${pid}`, 'mountinfo').catch(() => '')
    left -= text.length
    if (left < 0) break
    if (text !== '') tables.push({ process: pid, mounts: parseMountinfo(text) })
  }
  return tables
}

export async function listSwaps(proc: string): Promise<readonly string[]> {
  // Kernels without swap have no such file.
  return parseSwaps(await read(proc, 'swaps').catch(() => ''))
}

export async function listPools(proc: string): Promise<readonly string[]> {
  const entries = await readdir(join(proc, 'spl/kstat/zfs'), { withFileTypes: true }).catch(
    () => [],
  )
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

/** Null: it leads nowhere, or to something that we may not look at. */
export async function readBacking(proc: string, path: string): Promise<Backing | null> {
  try {
    const facts = await stat(path, { bigint: true })
    if (facts.isBlockDevice()) return { kind: 'device', dev: renderDev(facts.rdev) }
    const mountId = await readMountId(proc, path).catch(() => null)
    return { kind: 'file', mountId, dev: renderDev(facts.dev) }
  } catch {
    return null
  }
}

/** `major:minor` of a number from stat. */
const renderDev = (number: bigint) => {
  const major = ((number >> 8n) & 0xfffn) | ((number >> 32n) & ~0xfffn)
  const minor = (number & 0xffn) | ((number >> 12n) & ~0xffn)
  return `${major}:${BigInt.asUintN(32, minor)}`
}

/** Names a file without opening it: no side effects, no permission needed. */
const O_PATH = 0o10000000

async function readMountId(proc: string, path: string): Promise<number | null> {
  await using file = await open(path, O_PATH)
  const text = await read(proc, 'self/fdinfo', `${file.fd}`)
  const id = /^mnt_id:\s*(\d+)$/m.exec(text)?.[1]
  return id === undefined ? null : Number(id)
}

const read = (...path: readonly string[]) => readFile(join(...path), 'utf8')

/** With the root, as a process in a chroot sees less than its namespace has. */
async function readView(proc: string, pid: number | 'self'): Promise<string | null> {
  const links = ['ns/mnt', 'root'].map((name) => readlink(join(proc, `${pid}`, name)))
  return Promise.all(links).then(
    (parts) => parts.join(' '),
    () => null,
  )
}
