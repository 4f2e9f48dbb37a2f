/** Configuration files: finds and reads them in order, and rewrites them with owner and mode kept. */
import { randomBytes } from 'node:crypto'
import { access, constants, open, readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CONFIG_FILE, type ConfigPath } from './rules/config-paths.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import type { ConfigLayer } from './rules/layers.ts'
import { isMissing, systemCodeOf } from '#kit/foundation/system-error.ts'
import { parseToml } from './rules/toml.ts'
import { moveName, removeName } from '#kit/host/folders.ts'

export interface ConfigFiles {
  /** Those that exist, the winner first. */
  readonly layers: readonly ConfigLayer[]
  /** Those and the ones that could be made, in the same order: where an edit may go. */
  readonly paths: readonly string[]
}

/** A file that cannot be read or is not TOML is a Fault: part of a configuration is not used. */
export async function readConfigFiles(configPaths: readonly ConfigPath[]): Promise<ConfigFiles> {
  const paths = (await Array.fromAsync(configPaths, listFiles)).flat()
  const named = new Set(configPaths.filter(({ isNamed }) => isNamed).map(({ path }) => path))
  const layers = await Array.fromAsync(paths, (path) => readLayer(path, named.has(path)))
  return { layers: layers.filter((layer) => layer !== null), paths }
}

async function listFiles({ kind, path, isNamed }: ConfigPath): Promise<readonly string[]> {
  const isFolder = isNamed
    ? (await readListed(path, isNamed, stat))?.isDirectory() === true
    : kind === 'folder'
  if (!isFolder) return [path]
  const names = (await readListed(path, isNamed, (folder) => readdir(folder))) ?? []
  const files = names.filter((name) => name.endsWith('.toml') && !name.startsWith('.')).toSorted()
  // A named folder without files still has a place for an edit.
  const all = isNamed && files.length === 0 ? [CONFIG_FILE] : files
  return all.map((name) => join(path, name))
}

async function readLayer(path: string, isNamed: boolean): Promise<ConfigLayer | null> {
  const text = await readListed(path, isNamed, (file) => readFile(file, 'utf8'))
  if (text === null) return null
  const parsed = parseToml(text)
  if (parsed.ok) return { path, text, values: parsed.value }
  const { line, column, message, frame } = parsed.refusal
  throw new Fault('input-invalid', `${path}:${line}:${column}: ${message}\n${frame}`)
}

/** Null: nothing is there, and it was not named. */
async function readListed<T>(
  path: string,
  isNamed: boolean,
  read: (path: string) => Promise<T>,
): Promise<T | null> {
  try {
    return await read(path)
  } catch (cause) {
    if (!isNamed && isMissing(cause)) return null
    throw new Fault(
      'input-missing',
      `the configuration ${path} cannot be read: ${renderError(cause)}`,
      {
        cause,
        hint: 'Make it readable for the user who runs this, or name another with --config.',
      },
    )
  }
}

/** Whether a file can be changed or, where it is missing, made. */
export async function isWritable(path: string): Promise<boolean> {
  const refusal = await tryWriting(path)
  if (refusal === null) return true
  return isMissing(refusal) && (await tryWriting(dirname(path))) === null
}

/** Null: it can be written. */
const tryWriting = (path: string): Promise<unknown> =>
  access(path, constants.W_OK).then(
    () => null,
    (thrown: unknown) => thrown,
  )

/**
 * Replaces a file's text whole: owner, group and mode stay, a link stays a link. Where the file
 * cannot be replaced (it is mounted by itself, its folder is read-only) it is rewritten in place.
 */
export async function writeConfigFile(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch(() => path)
  const before = await stat(target).catch(() => null)
  const temporary = join(dirname(target), `.${basename(target)}.${randomBytes(6).toString('hex')}`)
  try {
    await writeWhole(temporary, text, before)
    await moveName(temporary, target)
  } catch (thrown) {
    // Best effort: it may never have been made.
    await removeName(temporary).catch(() => {})
    if (before === null || !isNotReplaceable(thrown)) throw unwritable(path, thrown)
    await rewrite(target, text).catch((cause: unknown) => {
      throw unwritable(path, cause)
    })
  }
}

const NOT_REPLACEABLE = ['EBUSY', 'EXDEV', 'EACCES', 'EPERM', 'EROFS']

const isNotReplaceable = (thrown: unknown) => NOT_REPLACEABLE.includes(systemCodeOf(thrown) ?? '')

/** What a new file gets: it may come to hold secrets. */
const FRESH_MODE = 0o640

async function writeWhole(
  path: string,
  text: string,
  like: { readonly mode: number; readonly uid: number; readonly gid: number } | null,
): Promise<void> {
  await using file = await open(path, 'wx', 0o600)
  await file.writeFile(text)
  if (like !== null) await file.chown(like.uid, like.gid)
  await file.chmod(like === null ? FRESH_MODE : like.mode & 0o7777)
  await file.sync()
}

async function rewrite(path: string, text: string): Promise<void> {
  await using file = await open(path, 'r+')
  const bytes = Buffer.from(text)
  // Shortened last: at no moment does the file hold less than the whole new text needs.
  await file.write(bytes, 0, bytes.length, 0)
  await file.truncate(bytes.length)
  await file.sync()
}

const unwritable = (path: string, cause: unknown) =>
  new Fault('write-failed', `${path} cannot be written: ${renderError(cause)}`, { cause })
