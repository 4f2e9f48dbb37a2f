/** Which exports no other file imports. */
import type { Arrow } from './arrows.ts'

const EXPORT =
  /^export (?:declare )?(?:async )?(?:const|let|function\*?|class|interface|type) (\w+)/gm
/** For users of the npm package, and what `bin/line.ts` loads by the line's name. */
const PUBLIC = /^runtime\/(library\/|(server\/\w+|flasher\/commands)\/programs\.ts)/

/**
 * `file: name` of each export that no file among the importers mentions.
 * A mention by name counts however the file was imported: by name, as a namespace or with `import()`.
 */
export function listUnusedExports(
  texts: ReadonlyMap<string, string>,
  arrows: readonly Arrow[],
  textOf: (file: string) => string,
): readonly string[] {
  const importers = Map.groupBy(arrows, ({ to }) => to)
  return [...texts].flatMap(([file, text]) => {
    if (PUBLIC.test(file)) return []
    const around = [...new Set((importers.get(file) ?? []).map(({ from }) => textOf(from)))]
    const names = [...text.matchAll(EXPORT)].map(([, name = '']) => name)
    return names
      .filter((name) => !around.some((other) => new RegExp(`\\b${name}\\b`).test(other)))
      .map((name) => `${file}: ${name}`)
  })
}
