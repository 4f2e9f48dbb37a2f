/** Which figures of a page are held, and by what: by a limit of the code, or by the list of those that nothing here knows. */
import { listFigures, type Figure } from './figures.ts'
import type { Limit } from './limits.ts'

/** By page, by reason: phrases, one for each time that the page says it. */
export type ByHand = Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>

const WORDS = 'zero one two three four five six seven eight nine ten eleven twelve'.split(' ')
const MORE: Readonly<Record<string, number>> = {
  fifteen: 15,
  sixteen: 16,
  twenty: 20,
  thirty: 30,
  fifty: 50,
  sixty: 60,
  hundred: 100,
}
const NUMBER = String.raw`(\d[\d,.]*\d|\d|[a-z]+)`

function valueOf(word: string): number {
  const at = WORDS.indexOf(word)
  return at >= 0 ? at : (MORE[word] ?? Number(word.replaceAll(',', '')))
}

/** What speaks against the limits of a page, and the page with those numbers taken out that they hold. */
export function checkLimits(
  page: string,
  text: string,
  limits: readonly Limit[],
): { readonly wrong: readonly string[]; readonly rest: string } {
  const wrong: string[] = []
  let rest = text
  for (const { says, are } of limits.filter((limit) => limit.page === page)) {
    const pattern = new RegExp(says.split('{}').map(patternOf).join(NUMBER), 'g')
    let times = 0
    rest = rest.replaceAll(pattern, (whole: string, ...found: readonly unknown[]) => {
      times += 1
      const values = are()
      const said = found.slice(0, values.length).map(String)
      if (JSON.stringify(said.map(valueOf)) !== JSON.stringify(values)) {
        wrong.push(
          `${page} says “${whole.replaceAll(/\s+/g, ' ')}”, and the code has ${values.join(', ')}`,
        )
      }
      // The words around them are those of the row, which are compared as well.
      return whole.replaceAll(/\d/g, '#')
    })
    if (times === 0) {
      wrong.push(
        `${page} no longer says “${says}”: change that row of test/support/documents/limits.toml, or take it out`,
      )
    }
  }
  return { wrong, rest }
}

const patternOf = (text: string) =>
  text
    .split(' ')
    .map(RegExp.escape)
    .join(String.raw`\s+`)

export interface Unheld {
  /** What no row holds. */
  readonly extra: readonly Figure[]
  /** What rows name and the page does not say, or not as often. */
  readonly gone: readonly string[]
}

/** Compares the figures of a page with the list of those held by hand, each as often as it is said. */
export function compareFigures(page: string, text: string, byHand: ByHand): Unheld {
  const left = new Map<string, number>()
  for (const phrase of Object.values(byHand[page] ?? {}).flat()) {
    left.set(phrase, (left.get(phrase) ?? 0) + 1)
  }
  const extra = listFigures(text).filter(({ phrase }) => {
    const times = left.get(phrase) ?? 0
    if (times > 0) left.set(phrase, times - 1)
    return times === 0
  })
  return { extra, gone: [...left].flatMap(([phrase, times]) => Array(times).fill(phrase)) }
}
