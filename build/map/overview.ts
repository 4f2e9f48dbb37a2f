/** Renders the map of the repository: every folder, every file, and its first sentence. */

export interface MappedFile {
  /** Relative to the checkout. */
  readonly path: string
  readonly text: string
}

const OPENING = /^(?:#!.*\n)?\/\*\*((?:[^*]|\*(?!\/))*)\*\//

/** Returns the first sentence of a file's opening comment; empty when there is none. */
function parseOpening(text: string): string {
  const words = (OPENING.exec(text)?.[1] ?? '').replaceAll(/\s*\n\s*\*?\s*/g, ' ').trim()
  const [sentence = ''] = words.split(/(?<=\.)\s+(?=[A-Z`(])/, 1)
  return sentence.replace(/\.$/, '')
}

const TITLE = `# Map

Every file and what it is for, generated from the first sentence of each by \`npx pnpm docs:map\`. [architecture.md](architecture.md) explains how they belong together, [trips.md](trips.md) what happens when.
`

/** Renders folders and files in the order of their names. */
export function renderMap(files: readonly MappedFile[]): string {
  const folders = Map.groupBy(files, ({ path }) => folderOf(path))
  const names = [...folders.keys()].toSorted()
  return [TITLE, ...names.map((name) => renderFolder(name, folders.get(name) ?? []))].join('\n')
}

const folderOf = (path: string) => path.slice(0, path.lastIndexOf('/'))

function renderFolder(folder: string, files: readonly MappedFile[]): string {
  const lines = files
    .toSorted((one, other) => (one.path < other.path ? -1 : 1))
    .map(({ path, text }) => {
      const name = path.slice(folder.length + 1)
      return `- [${name}](../${path}): ${parseOpening(text)}`.trimEnd()
    })
  return `## ${folder}\n\n${lines.join('\n')}\n`
}
