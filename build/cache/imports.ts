/** Which files and packages a program consists of, read off its import lines. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const IMPORT =
  /^\s*(?:import|export)\b[^'\n]* from '([^']+)'|^import '([^']+)'|^\} from '([^']+)'|\bimport\('([^']+)'\)/gm
/** A comment that names a file for its types imports nothing. */
const TYPES_ONLY = /^import type [^'{\n]* from '[^']+'$|^import type \{[^}]*\} from '[^']+'$/gm

interface Closure {
  /** Paths of our own files, the entries among them, sorted. */
  readonly files: readonly string[]
  /** Names of packages, without what they import themselves; sorted. */
  readonly packages: readonly string[]
}

/** What the text of a module imports, types left out. */
export const parseImports = (text: string): readonly string[] =>
  [...text.replaceAll(TYPES_ONLY, '').matchAll(IMPORT)].map(
    ([, ...names]) => names.find(Boolean) ?? '',
  )

/** `hono/html` is of `hono`, `@inquirer/select` its own. */
export const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

/** Follows imports from `entries`; `read` is given for tests. Throws where a file is not there. */
export function collectImports(
  entries: readonly string[],
  read: (path: string) => string = (path) => readFileSync(path, 'utf8'),
): Closure {
  const files = new Set(entries)
  const packages = new Set<string>()
  // A set that grows while it is walked is walked to its end.
  for (const file of files) {
    for (const name of parseImports(read(file))) {
      if (name.startsWith('.')) files.add(join(dirname(file), name))
      else if (!name.startsWith('node:')) packages.add(packageOf(name))
    }
  }
  return { files: [...files].toSorted(), packages: [...packages].toSorted() }
}
