/** Who imports what: every import line of the house's files, types' and `import('…')` among them. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, normalize } from 'node:path'

export interface Arrow {
  readonly from: string
  /** `to` is a path of ours; else it is what a package or Node is asked for. */
  readonly local: boolean
  readonly to: string
}

const IMPORT =
  /^(?:import|export)\b[^'\n]* from '(.+)'|^import '(.+)'|^\} from '(.+)'|\bimport\('(.+?)'\)/gm

/** Texts of the files below the checkout that the patterns name, by path, in order. */
export const readTexts = (patterns: readonly string[]): ReadonlyMap<string, string> =>
  new Map(
    globSync(patterns)
      .toSorted()
      .map((file) => [file, readFileSync(file, 'utf8')]),
  )

export const listArrows = (texts: ReadonlyMap<string, string>): readonly Arrow[] =>
  [...texts].flatMap(([from, text]) =>
    [...text.matchAll(IMPORT)].map(([, ...names]) => {
      const name = names.find(Boolean) ?? ''
      const local = name.startsWith('.')
      return { from, local, to: local ? normalize(`${dirname(from)}/${name}`) : name }
    }),
  )
