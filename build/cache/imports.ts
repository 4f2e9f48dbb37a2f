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

/** `#kit/*.ts` and its kind: where package.json says that a room's files lie. */
const ROOMS: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
).imports

/**
 * Returns the path of ours that a specifier in the file `from` stands for; null for a package and for Node.
 * Throws where it names a room that package.json does not know.
 */
export function resolveImport(from: string, name: string): string | null {
  if (name.startsWith('.')) return join(dirname(from), name)
  if (!name.startsWith('#')) return null
  for (const [pattern, target] of Object.entries(ROOMS)) {
    const [head = '', tail = ''] = pattern.split('*')
    if (!name.startsWith(head) || !name.endsWith(tail)) continue
    const rest = name.slice(head.length, name.length - tail.length)
    return join(target.replace('*', () => rest))
  }
  throw new Error(`${from} imports ${name}: package.json has no such room in "imports"`)
}

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
      const path = resolveImport(file, name)
      if (path !== null) files.add(path)
      else if (!name.startsWith('node:')) packages.add(packageOf(name))
    }
  }
  return { files: [...files].toSorted(), packages: [...packages].toSorted() }
}
