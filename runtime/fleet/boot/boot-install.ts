/** Moves files into the boot directory all together, even across a crash. */
import { lstat, open, readdir, readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { parseBootRecord, type BootRecord } from './rules/boot-set.ts'
import { Fault } from '#kit/foundation/fault.ts'
import { replaceFile } from '#kit/host/atomic-file.ts'
import { moveName, removeTree } from '#kit/host/folders.ts'
import { clearUploads } from '#kit/host/temporary-uploads.ts'

/** Hidden: nobody can fetch or upload it below `/boot/`. */
const RECORD = '.active.json'
/** Like the files beside it: another program may serve them. */
const FOR_ALL = 0o644
export const STAGED = '.staged-'
const COMMITTED = '.install-'

export async function readBootRecord(dir: string): Promise<BootRecord> {
  const text = await readFile(join(dir, RECORD), 'utf8').catch(() => '')
  return parseBootRecord(parseJson(text))
}

export const writeBootRecord = (dir: string, record: BootRecord): Promise<void> =>
  replaceFile(join(dir, RECORD), renderRecord(record), FOR_ALL)

/**
 * One rename commits; from then on the installation is finished here or at the next start. Before,
 * a Fault `conflict` if something that is no file has a needed name. `record` null: the folder has
 * none.
 */
export async function installStaged(
  dir: string,
  staged: string,
  record: BootRecord | null,
): Promise<void> {
  const names = await readdir(staged)
  for (const name of names) await checkFree(dir, name)
  for (const name of names) await syncFile(join(staged, name))
  if (record !== null) await replaceFile(join(staged, RECORD), renderRecord(record), FOR_ALL)
  const committed = join(dir, basename(staged).replace(STAGED, COMMITTED))
  await moveName(staged, committed)
  await finish(dir, committed)
}

/** At start: finishes what was committed, removes what was not. */
export async function recoverInstalls(dir: string): Promise<void> {
  await clearUploads(dir)
  for (const name of await readdir(dir)) {
    if (name.startsWith(COMMITTED)) await finish(dir, join(dir, name))
    else if (name.startsWith(STAGED)) {
      await removeTree(join(dir, name))
    }
  }
}

/** The record comes last: until then scripts name the former files. */
async function finish(dir: string, committed: string): Promise<void> {
  const names = await readdir(committed)
  for (const name of names.filter((one) => one !== RECORD)) {
    await moveName(join(committed, name), join(dir, name))
  }
  if (names.includes(RECORD)) await moveName(join(committed, RECORD), join(dir, RECORD))
  await removeTree(committed)
}

async function checkFree(dir: string, name: string): Promise<void> {
  const there = await lstat(join(dir, name)).catch(() => null)
  if (there === null || there.isFile() || there.isSymbolicLink()) return
  throw new Fault('conflict', `${join(dir, name)} is in the way: it is no file`, {
    hint: 'Move it away, then try again.',
  })
}

async function syncFile(path: string): Promise<void> {
  await using handle = await open(path, 'r')
  await handle.sync()
}

const renderRecord = (record: BootRecord) => `${JSON.stringify(record, null, 2)}\n`
