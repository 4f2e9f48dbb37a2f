/** Changes keys in configuration files and keeps their author's formatting. */
import { findLayer } from './rules/layers.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { findSetting, type Setting, type SettingsTable, type TomlValue } from './rules/setting.ts'
import type { Origin } from './rules/settings-parser.ts'
import { editToml, locateTomlKey, type TomlEditRefusal } from './rules/toml-edit.ts'
import { removeName } from '#kit/host/folders.ts'
import { isWritable, writeConfigFile, type ConfigFiles } from './config-files.ts'

type ConfigEditRefusal =
  | { readonly why: 'unknown' }
  | { readonly why: 'secret' }
  /** A variable or a settings page overrides every file. */
  | { readonly why: 'overruled'; readonly by: Origin }
  /** `must be a whole number from 1 to 65535, not "x"`. */
  | { readonly why: 'invalid'; readonly message: string }
  /** Somebody else changed it meanwhile; as a form shows what it is now. */
  | { readonly why: 'stale'; readonly present: string }
  | { readonly why: 'not-writable'; readonly paths: readonly string[] }
  | { readonly why: 'not-editable'; readonly path: string; readonly cause: TomlEditRefusal }

export interface ConfigEdited {
  /** `server.port` */
  readonly name: string
  readonly path: string
  /** Where the key is now; null when it was removed. */
  readonly line: number | null
}

export interface ConfigEdit {
  readonly section: string
  readonly key: string
  /** The value as a form's field holds it; an empty one removes the key. */
  readonly text: string
}

export type RefusedEdits = ReadonlyMap<string, ConfigEditRefusal>

/**
 * All of the edits or none. Files are read afresh, and only what reads back as exactly what was
 * asked for is written.
 */
export async function editConfig(
  table: SettingsTable,
  files: ConfigFiles,
  originOf: (section: string, key: string) => Origin | null,
  edits: readonly ConfigEdit[],
): Promise<Result<readonly ConfigEdited[], RefusedEdits>> {
  const refused = new Map<string, ConfigEditRefusal>()
  const texts = new Map(files.layers.map(({ path, text }) => [path, text]))
  const located: { readonly edit: ConfigEdit; readonly path: string }[] = []
  for (const edit of edits) {
    const { section, key, text } = edit
    const checked = checkEdit(findSetting(table, section, key), originOf(section, key), text)
    const changed = checked.ok ? await changeText(files, texts, edit, checked.value) : checked
    if (changed.ok) located.push({ edit, path: changed.value })
    else refused.set(`${section}.${key}`, changed.refusal)
  }
  if (refused.size > 0) return refuse(refused)
  await writeAll(files, texts)
  return accept(
    located.map(({ edit: { section, key }, path }) => ({
      name: `${section}.${key}`,
      path,
      line: locateTomlKey(texts.get(path) ?? '', { section, key }),
    })),
  )
}

/** Writes the files whose text changes. Where one cannot be written, those before it are as they were. */
async function writeAll(files: ConfigFiles, texts: ReadonlyMap<string, string>): Promise<void> {
  const written: string[] = []
  try {
    for (const [path, text] of texts) {
      if (text === textIn(files, path)) continue
      await writeConfigFile(path, text)
      written.push(path)
    }
  } catch (thrown) {
    for (const path of written) {
      const isNew = !files.layers.some((layer) => layer.path === path)
      await (isNew ? removeName(path) : writeConfigFile(path, textIn(files, path)))
    }
    throw thrown
  }
}

const textIn = ({ layers }: ConfigFiles, path: string): string =>
  layers.find((layer) => layer.path === path)?.text ?? ''

/** Returns which of `texts` it is in. */
async function changeText(
  files: ConfigFiles,
  texts: Map<string, string>,
  { section, key }: ConfigEdit,
  value: TomlValue | null,
): Promise<Result<string, ConfigEditRefusal>> {
  // The file that holds the key, else the first that can be written.
  const holder = findLayer(files.layers, section, key)
  const paths = holder === null ? files.paths : [holder.path]
  const path = await findWritable(paths)
  if (path === undefined) return refuse({ why: 'not-writable', paths })
  const edited = editToml(texts.get(path) ?? '', { section, key }, value)
  if (!edited.ok) return refuse({ why: 'not-editable', path, cause: edited.refusal })
  texts.set(path, edited.value)
  return accept(path)
}

/** The value to write; null: the key is to be removed. */
function checkEdit(
  row: Setting<unknown> | null,
  origin: Origin | null,
  text: string,
): Result<TomlValue | null, ConfigEditRefusal> {
  if (row === null || origin === null) return refuse({ why: 'unknown' })
  if (row.isKept) return refuse({ why: 'secret' })
  if (origin.by === 'environment' || origin.by === 'settings-page') {
    return refuse({ why: 'overruled', by: origin })
  }
  if (text.trim() === '') return accept(null)
  const parsed = row.parse(row.fromText(text))
  return parsed.ok
    ? accept(row.toToml(parsed.value))
    : refuse({ why: 'invalid', message: parsed.refusal })
}

async function findWritable(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) if (await isWritable(path)) return path
  return undefined
}

/** A form says by itself what has changed meanwhile. */
export function renderEditRefusal(
  refusal: Exclude<ConfigEditRefusal, { readonly why: 'stale' }>,
): string {
  switch (refusal.why) {
    case 'unknown':
      return 'no such setting'
    case 'secret':
      return 'it decides who may log in, which program runs, or which folders are served: change it in the configuration file'
    case 'overruled':
      return refusal.by.by === 'environment'
        ? `it is set by the environment variable ${refusal.by.variable}`
        : 'it is saved on a settings page, which overrides files'
    case 'invalid':
      return refusal.message
    case 'not-writable':
      return `no file can be written: ${refusal.paths.join(', ') || 'none is read'}`
    case 'not-editable':
      return `${refusal.path}: ${renderCause(refusal.cause)}`
  }
}

function renderCause(cause: TomlEditRefusal): string {
  switch (cause.why) {
    case 'not-toml':
      return `line ${cause.problem.line}, column ${cause.problem.column}: ${cause.problem.message}`
    case 'not-a-section':
      return 'its section is not a table there'
    case 'too-unusual':
      return 'it is written in a way that must be changed by hand'
  }
}
