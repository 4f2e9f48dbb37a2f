/** Changes one key in one configuration file, as its author would have. */
import type { Layer } from '../../core/config/layers.ts'
import { findLayer } from '../../core/config/layers.ts'
import { accept, refuse, type Result } from '../../core/foundation/result.ts'
import {
  findSetting,
  type Setting,
  type SettingsTable,
  type TomlValue,
} from '../../core/config/setting.ts'
import type { Origin } from '../../core/config/settings.ts'
import { editToml, locateTomlKey, type TomlEditRefusal } from '../../core/config/toml-edit.ts'
import { isWritable, writeConfigFile, type ConfigFiles } from './config-files.ts'

export type ConfigEditRefusal =
  | { readonly why: 'unknown' }
  | { readonly why: 'secret' }
  /** Something stronger than any file says it. */
  | { readonly why: 'overruled'; readonly by: Origin }
  /** `wants a whole number from 1 to 65535, not "x"`. */
  | { readonly why: 'invalid'; readonly message: string }
  | { readonly why: 'not-writable'; readonly paths: readonly string[] }
  | { readonly why: 'not-editable'; readonly path: string; readonly cause: TomlEditRefusal }

export interface ConfigEdited {
  readonly path: string
  /** Where the key is now; null when it was removed. */
  readonly line: number | null
  readonly isChanged: boolean
}

export interface ConfigEdit {
  readonly section: string
  readonly key: string
  /** As a form holds it; empty removes the key. */
  readonly text: string
}

/** `files`: as they are on disk now. Writes only what reads back as exactly what was asked for. */
export async function editConfig(
  table: SettingsTable,
  files: ConfigFiles,
  origin: Origin | null,
  { section, key, text }: ConfigEdit,
): Promise<Result<ConfigEdited, ConfigEditRefusal>> {
  const refusal = checkPlace(findSetting(table, section, key), origin)
  if (refusal !== null) return refuse(refusal)
  const value = parseValue(findSetting(table, section, key), text)
  if (!value.ok) return value
  const target = await chooseTarget(files, section, key)
  if (!target.ok) return target
  const { path, before } = target.value
  const edited = editToml(before, { section, key }, value.value)
  if (!edited.ok) return refuse({ why: 'not-editable', path, cause: edited.refusal })
  const isChanged = edited.value !== before
  if (isChanged) await writeConfigFile(path, edited.value)
  return accept({ path, line: locateTomlKey(edited.value, { section, key }), isChanged })
}

function checkPlace(row: Setting<unknown> | null, origin: Origin | null): ConfigEditRefusal | null {
  if (row === null || origin === null) return { why: 'unknown' }
  if (row.isSecret) return { why: 'secret' }
  const isOverruled = origin.by === 'environment' || origin.by === 'settings-page'
  return isOverruled ? { why: 'overruled', by: origin } : null
}

function parseValue(
  row: Setting<unknown> | null,
  text: string,
): Result<TomlValue | null, ConfigEditRefusal> {
  if (row === null || text.trim() === '') return accept(null)
  const parsed = row.parse(row.fromText(text))
  if (!parsed.ok) return refuse({ why: 'invalid', message: parsed.refusal })
  return accept(row.toToml(parsed.value))
}

/** The file that holds the key, else the first that can be written. */
async function chooseTarget(
  { layers, paths }: ConfigFiles,
  section: string,
  key: string,
): Promise<Result<{ readonly path: string; readonly before: string }, ConfigEditRefusal>> {
  const holder = findLayer(layers, section, key)
  const candidates = holder === null ? paths : [holder.path]
  for (const path of candidates) {
    if (await isWritable(path)) return accept({ path, before: textOf(layers, path) })
  }
  return refuse({ why: 'not-writable', paths: candidates })
}

const textOf = (layers: readonly Layer[], path: string) =>
  layers.find((layer) => layer.path === path)?.text ?? ''

/** For a page or a log: one clause. */
export function renderEditRefusal(refusal: ConfigEditRefusal): string {
  switch (refusal.why) {
    case 'unknown':
      return 'there is no such setting'
    case 'secret':
      return 'secrets are not changed here'
    case 'overruled':
      return refusal.by.by === 'environment'
        ? `it is set by the environment variable ${refusal.by.variable}`
        : 'it is saved on a settings page, which counts more than a file'
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
      return 'its section is no table there'
    case 'too-unusual':
      return 'it is written in a way that only its author can change'
  }
}
