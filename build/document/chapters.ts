/** The chapters of the documentation, in a reader's order. */

/** For those who use it, then for those who run a server, then for those who change it. */
const ORDER = [
  'usb',
  'wizard',
  'cli',
  'pxe',
  'remote',
  'server',
  'dhcp',
  'cache',
  'settings',
  'api',
  'earlier-line',
  'demo',
  'performance',
  'library',
  'find-your-way',
  'images',
  'release',
]
/** In their order, behind everything else. */
const DECISIONS = 'decisions/'

export interface Chapter {
  /** Unique; begins its anchors: `pxe`, `decisions-0001-ends-last`. */
  readonly id: string
  /** The path below the folder of documents. */
  readonly path: string
}

/**
 * Lists the chapters in their order; pages that have no place in it come before the decisions.
 *
 * @param paths are those of all Markdown files, below the folder of documents.
 */
export function listChapters(paths: readonly string[]): readonly Chapter[] {
  const names = paths.map((path) => path.replace(/\.md$/, ''))
  const decisions = names.filter((name) => name.startsWith(DECISIONS))
  const pages = names.filter((name) => !name.startsWith(DECISIONS))
  const known = ORDER.filter((name) => pages.includes(name))
  const others = pages.filter((name) => !ORDER.includes(name))
  return [...known, ...others.toSorted(), ...decisions.toSorted(compareDecisions)].map((name) => ({
    id: idOf(name),
    path: `${name}.md`,
  }))
}

/** The anchor of a chapter, by its path with or without `.md`. */
export const idOf = (path: string): string => path.replace(/\.md$/, '').replaceAll('/', '-')

/** The overview comes first. */
function compareDecisions(one: string, two: string): number {
  return Number(isDecision(one)) - Number(isDecision(two)) || (one < two ? -1 : 1)
}

const isDecision = (name: string) => !name.endsWith('/README')
