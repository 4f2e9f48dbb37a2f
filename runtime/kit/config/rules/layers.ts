/** Layers of configuration files: the first file that holds a key wins. */
import { locateTomlKey, locateTomlSection, isTable } from './toml.ts'

export interface ConfigLayer {
  readonly path: string
  readonly text: string
  readonly values: Readonly<Record<string, unknown>>
}

/** A place in a file that no setting knows; `key` null: the section itself. */
interface Stray {
  readonly layer: ConfigLayer
  readonly section: string
  readonly key: string | null
}

/** `layers` with the winner first. Null: none holds it. */
export const findLayer = (
  layers: readonly ConfigLayer[],
  section: string,
  key: string,
): ConfigLayer | null => layers.find((layer) => valueIn(layer, section, key) !== undefined) ?? null

/** Undefined: nothing. */
export function valueIn({ values }: ConfigLayer, section: string, key: string): unknown {
  const keys = Object.hasOwn(values, section) ? values[section] : undefined
  return isTable(keys) && Object.hasOwn(keys, key) ? keys[key] : undefined
}

export const listStrays = (
  layers: readonly ConfigLayer[],
  isKnown: (section: string, key: string | null) => boolean,
): readonly Stray[] =>
  layers.flatMap((layer) =>
    Object.entries(layer.values).flatMap(([section, keys]): readonly Stray[] => {
      if (!isTable(keys) || !isKnown(section, null)) return [{ layer, section, key: null }]
      return Object.keys(keys)
        .filter((key) => !isKnown(section, key))
        .map((key) => ({ layer, section, key }))
    }),
  )

/** `/etc/flasher/flasher.toml:12`, or the path alone. */
export function renderKeyLocation(
  { path, text }: ConfigLayer,
  section: string,
  key: string | null,
): string {
  const line =
    key === null ? locateTomlSection(text, section) : locateTomlKey(text, { section, key })
  return line === null ? path : `${path}:${line}`
}

// Lists the places of configuration files (docs/decisions/0014): the one that is named, or the usual ones.

export interface ConfigPath {
  readonly kind: 'file' | 'folder'
  readonly path: string
  /** Somebody named it, so that it must be there. */
  readonly isNamed: boolean
}

interface ConfigPaths {
  /** The winner first. `kind` of named ones is still to be looked up. */
  readonly configPaths: readonly ConfigPath[]
  /** Whether `<state_dir>/flasher.toml` comes last. */
  readonly withStateFile: boolean
}

export const CONFIG_FILE = 'flasher.toml'

/**
 * `named`: what `--config` said, in its order. Else `FLASHER_CONFIG_FILE` and `FLASHER_CONFIG_DIR`.
 * `systemDir`: `/etc/flasher`.
 */
export function decideConfigPaths(
  named: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  systemDir: string,
): ConfigPaths {
  const variables = [env['FLASHER_CONFIG_FILE'], env['FLASHER_CONFIG_DIR']]
  const paths = named.length > 0 ? named : variables.flatMap((path) => path || [])
  if (paths.length > 0) {
    const configPaths = paths.map((path) => ({ kind: 'file', path, isNamed: true }) as const)
    return { configPaths, withStateFile: false }
  }
  return {
    configPaths: [
      { kind: 'folder', path: `${systemDir}/conf.d`, isNamed: false },
      { kind: 'file', path: `${systemDir}/${CONFIG_FILE}`, isNamed: false },
    ],
    withStateFile: true,
  }
}
