/** The screens of programs that pages show, as `pnpm docs:session` recorded them in a terminal. */
import { readFileSync, writeFileSync } from 'node:fs'
import { z } from 'zod'

const RECORD = 'docs/pictures/screens.json'
const SCREEN = /<!-- screen: (.+?) -->[^]*?<!-- end -->/g

/** What each screen showed, by its name. */
export const readScreens = (): ReadonlyMap<string, string> =>
  new Map(
    Object.entries(
      z.record(z.string(), z.string()).parse(JSON.parse(readFileSync(RECORD, 'utf8'))),
    ),
  )

/** Records what was seen; whoever shows none of it loses nothing. */
export const writeScreens = (screens: ReadonlyMap<string, string>): void =>
  writeFileSync(RECORD, `${JSON.stringify(Object.fromEntries(screens), null, 2)}\n`)

/** Each screen goes between its markers: `<!-- screen: disk -->`, a block, `<!-- end -->`. */
export const showScreens = (page: string, screens: ReadonlyMap<string, string>): string =>
  page.replaceAll(SCREEN, (whole, name: string) => {
    const screen = screens.get(name)
    return screen === undefined
      ? whole
      : `<!-- screen: ${name} -->\n\n\`\`\`text\n${screen}\n\`\`\`\n\n<!-- end -->`
  })
