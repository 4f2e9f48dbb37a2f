/** Everything that the tests hold against a page, as one question: what is wrong with this text of it, and who finds that. */
import { renderReference } from '../../../runtime/server/current/rules/settings-reference.ts'
import { renderGrowth } from '../../bench/growth.ts'
import { DHCP_DOCUMENT, renderDhcpDocument } from '../dhcp-document.ts'
import { checkFences } from './checked-fences.ts'
import { listWrongNumbers } from './figures.ts'
import { listWrongBytes } from './frame-page.ts'
import { checkLimits, compareFigures, type ByHand } from './held-figures.ts'
import { LIMITS } from './limits.ts'
import { compareMeasured, type Measured } from './measured.ts'
import { listWrongScreens } from './screens.ts'

export const FINDERS = ['code', 'name', 'record', 'script', 'block', 'list by hand'] as const
export type Finder = (typeof FINDERS)[number]

export interface Held {
  readonly byHand: ByHand
  readonly measured: ReadonlyMap<string, Measured>
  readonly screens: ReadonlyMap<string, string>
}

const MADE: Readonly<Record<string, () => string>> = {
  'docs/settings.md': renderReference,
  [DHCP_DOCUMENT]: renderDhcpDocument,
}

/** Pages of which a part is worked out. */
const CHECKED: Readonly<Record<string, (text: string) => boolean>> = {
  'docs/growing.md': isGrowth,
  'docs/image-format.md': (text) => listWrongBytes(text).length === 0,
}

/** Pages that are made as a whole. */
export const MADE_PAGES: readonly string[] = Object.keys(MADE)

/** Who finds something wrong with `text` as that of `page`; nobody where it is as it should be. */
export function findMistakes(page: string, text: string, held: Held): ReadonlySet<Finder> {
  const made = MADE[page]
  if (made !== undefined) return new Set(made() === text ? [] : ['script'])
  const { wrong, rest } = checkLimits(page, text, LIMITS)
  const { extra, gone } = compareFigures(page, rest, held.byHand)
  const records = [...held.measured].filter(([, record]) => record.page === page)
  const found: Record<Finder, boolean> = {
    code: wrong.length > 0,
    // What is said anew is no name that is known, and nobody vouched for it.
    name: extra.length > 0 && gone.length === 0,
    record:
      records.some(([name, record]) => compareMeasured(name, record, text).length > 0) ||
      listWrongScreens(text, held.screens).length > 0,
    script: CHECKED[page]?.(text) === false,
    block: checkFences(page, text).length > 0,
    'list by hand': gone.length > 0 || listWrongNumbers(text).length > 0,
  }
  return new Set(FINDERS.filter((finder) => found[finder]))
}

const plain = (text: string) => text.replaceAll(/-{3,}/g, '---').replaceAll(/\s+/g, ' ').trim()

function isGrowth(page: string): boolean {
  return [...renderGrowth()].every(([name, text]) => {
    const [, rest = ''] = page.split(`<!-- bench:${name} -->`)
    return plain(rest.split(`<!-- /bench:${name} -->`)[0] ?? '') === plain(text)
  })
}
