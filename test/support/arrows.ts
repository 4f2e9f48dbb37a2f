/** Who imports what: every import line of the house's files, types' and `import('…')` among them. */
import { globSync, readFileSync } from 'node:fs'
import { resolveImport } from '#build/cache/imports.ts'

export interface Arrow {
  readonly from: string
  /** `to` is a path of ours; else it is what a package or Node is asked for. */
  readonly local: boolean
  readonly to: string
  /** As the file has it. */
  readonly said: string
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
      const path = resolveImport(from, name)
      return { from, local: path !== null, to: path ?? name, said: name }
    }),
  )
