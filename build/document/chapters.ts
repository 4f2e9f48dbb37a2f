/** The chapters of the documentation, in a reader's order: those of the PDF, and the site's navigation. */

interface Group {
  readonly title: string
  readonly pages: readonly string[]
}

/** For those who use it, then for those who run a server, then for those who change it. */
export const GROUPS: readonly Group[] = [
  { title: 'Write disks', pages: ['usb', 'wizard', 'cli', 'capture', 'image-format', 'board'] },
  {
    title: 'Boot from the network',
    pages: ['pxe', 'dhcp', 'boot-once', 'secure-boot', 'remote', 'demo'],
  },
  {
    title: 'Run a server',
    pages: [
      'server',
      'cache',
      'first-boot',
      'people',
      'notifications',
      'power',
      'appliance',
      'several-servers',
      'growing',
      'earlier-line',
    ],
  },
  {
    title: 'Reference',
    pages: ['settings', 'http-api', 'flash-jobs', 'library', 'performance', 'waterfall'],
  },
  { title: 'Contribute', pages: ['find-your-way', 'images', 'release'] },
]
const ORDER = GROUPS.flatMap(({ pages }) => pages)
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
