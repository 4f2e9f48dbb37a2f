/** Finds the files and packages that a program consists of, by its import lines. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const IMPORT =
  /^\s*(?:import|export)\b[^'\n]* from '([^']+)'|^import '([^']+)'|^\} from '([^']+)'|\bimport\('([^']+)'\)/gm
/** Type imports load nothing at run time. */
const TYPES_ONLY = /^import type [^'{\n]* from '[^']+'$|^import type \{[^}]*\} from '[^']+'$/gm

interface Closure {
  /** Paths of our own files including the entries, sorted. */
  readonly files: readonly string[]
  /** Names of directly imported packages, sorted. */
  readonly packages: readonly string[]
}

/** Lists the specifiers that a module imports, without types. */
export const parseImports = (text: string): readonly string[] =>
  [...text.replaceAll(TYPES_ONLY, '').matchAll(IMPORT)].map(
    ([, ...names]) => names.find(Boolean) ?? '',
  )

/** Returns the package of a specifier: `hono` for `hono/html`, `@inquirer/select` for itself. */
export const packageOf = (specifier: string): string =>
  specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')

/** Follows imports from `entries` to all files and packages. Throws when a file does not exist. */
export function collectImports(
  entries: readonly string[],
  read: (path: string) => string = (path) => readFileSync(path, 'utf8'),
): Closure {
  const files = new Set(entries)
  const packages = new Set<string>()
  // Iteration includes what is added meanwhile.
  for (const file of files) {
    for (const name of parseImports(read(file))) {
      if (name.startsWith('.')) files.add(join(dirname(file), name))
      else if (!name.startsWith('node:')) packages.add(packageOf(name))
    }
  }
  return { files: [...files].toSorted(), packages: [...packages].toSorted() }
}
