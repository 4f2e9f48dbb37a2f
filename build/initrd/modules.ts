/** Selects the kernel modules of an initrd, and filters the tables by which `modprobe` finds them. */

/** The tables of a tree's `lib/modules/<release>`, as text. */
interface ModuleTables {
  readonly dep: string
  readonly softdep: string
  readonly alias: string
}

/** Shell-like patterns on paths below `kernel/`: `*` stands for anything, `/` too. */
export interface ModuleChoice {
  readonly take: readonly string[]
  /** Not selected by a pattern, only as a dependency. */
  readonly leave: readonly string[]
}

interface ChosenModules {
  /** Paths as in `modules.dep`, sorted: `kernel/drivers/net/virtio_net.ko`. */
  readonly paths: readonly string[]
  /** The tables, reduced to these modules. */
  readonly tables: ModuleTables
  /** Patterns that match no module: the kernel has moved them, or the list has a typo. */
  readonly idle: readonly string[]
}

/** Selects what matches, with its dependencies and soft dependencies. */
export function chooseModules(tables: ModuleTables, { take, leave }: ModuleChoice): ChosenModules {
  const needs = parseDependencies(tables.dep)
  const pathOf = new Map([...needs.keys()].map((path) => [nameOf(path), path]))
  const softly = parseSoftDependencies(tables.softdep)
  const isLeft = matcher(leave)
  const wanted = [...needs.keys()].filter((path) => !isLeft(shorten(path)))
  const isTaken = matcher(take)
  const chosen = new Set<string>()
  const todo = wanted.filter((path) => isTaken(shorten(path)))
  for (let path = todo.pop(); path !== undefined; path = todo.pop()) {
    if (chosen.has(path)) continue
    chosen.add(path)
    const beside = (softly.get(nameOf(path)) ?? []).flatMap((name) => pathOf.get(name) ?? [])
    todo.push(...(needs.get(path) ?? []), ...beside)
  }
  const paths = [...chosen].toSorted()
  const idle = take.filter((pattern) => !wanted.some((path) => matcher([pattern])(shorten(path))))
  return { paths, tables: filterTables(tables, paths, needs), idle }
}

/**
 * Returns the kernel's name of a module: `virtio_net` for `kernel/drivers/net/virtio-net.ko`, as
 * the kernel replaces hyphens.
 */
export const nameOf = (path: string): string =>
  path
    .slice(path.lastIndexOf('/') + 1)
    .replace(/\.ko$/, '')
    .replaceAll('-', '_')

const shorten = (path: string) => path.replace(/^kernel\//, '')

function matcher(patterns: readonly string[]): (path: string) => boolean {
  const sources = patterns.map((pattern) =>
    pattern.replaceAll(/[.+?^${}()|[\]\\]/g, String.raw`\$&`).replaceAll('*', '.*'),
  )
  const any = new RegExp(`^(?:${sources.join('|')})$`)
  return (path) => patterns.length > 0 && any.test(path)
}

/** `path: path path` */
function parseDependencies(text: string): ReadonlyMap<string, readonly string[]> {
  return new Map(
    linesOf(text).map((line) => {
      const [path = '', needed = ''] = line.split(':')
      return [path, needed.split(' ').filter(Boolean)]
    }),
  )
}

/** `softdep name pre: name name post: name`, several lines for a name allowed. */
function parseSoftDependencies(text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  for (const line of linesOf(text)) {
    const [keyword, name = '', ...words] = line.split(/\s+/)
    if (keyword !== 'softdep') continue
    const names = words.filter((word) => !word.endsWith(':')).map(nameOf)
    found.set(nameOf(name), [...(found.get(nameOf(name)) ?? []), ...names])
  }
  return found
}

function filterTables(
  { softdep, alias }: ModuleTables,
  paths: readonly string[],
  needs: ReadonlyMap<string, readonly string[]>,
): ModuleTables {
  const names = new Set(paths.map(nameOf))
  const keep = (text: string, whose: (words: readonly string[]) => string | undefined) =>
    join(linesOf(text).filter((line) => names.has(nameOf(whose(line.split(/\s+/)) ?? ''))))
  return {
    dep: join(paths.map((path) => [`${path}:`, ...(needs.get(path) ?? [])].join(' '))),
    softdep: keep(softdep, ([keyword, name]) => (keyword === 'softdep' ? name : undefined)),
    alias: keep(alias, ([keyword, , name]) => (keyword === 'alias' ? name : undefined)),
  }
}

const linesOf = (text: string) => text.split('\n').filter((line) => line !== '')
const join = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join('')
