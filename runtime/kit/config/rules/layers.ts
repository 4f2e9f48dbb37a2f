/** Layers of configuration files: the first file that holds a key wins. */
import { locateTomlKey, locateTomlSection } from './toml-edit.ts'
import { isTable } from './toml.ts'

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
