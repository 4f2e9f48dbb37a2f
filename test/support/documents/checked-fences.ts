/** What speaks against the fenced blocks of a page: who tries them, and whether they are what they say they are. */
import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { parseToml } from '../../../runtime/kit/config/rules/toml.ts'
import { parseSettings } from '../../../runtime/server/current/rules/settings.ts'
import { listArrows } from '../arrows.ts'
import { listMistakes } from './commands.ts'
import { listFences, type Fence } from './fences.ts'

/** Checked here: such a block needs nobody who tries it. Text is shown to be read. */
const CHECKED: ReadonlySet<string> = new Set(['json', 'toml', 'text'])

/** One sentence for each mistake, with the place and what the writer does about it. */
export const checkFences = (page: string, text: string): readonly string[] =>
  listFences(text).flatMap((fence) => {
    const mistakes = [...checkMark(page, fence), ...checkText(fence)]
    return mistakes.map((mistake) => `${page}:${fence.line}: ${mistake}`)
  })

function checkMark(page: string, { language, mark }: Fence): readonly string[] {
  if (language === '') return ['the fence names no language: what is only read is `text`']
  if (mark === null) {
    return CHECKED.has(language)
      ? []
      : [
          'nobody tries this block. In the line before its fence goes <!-- run: test/….test.ts -->, the test that runs it (readBlocks in test/support/docs.ts), or <!-- by hand: why no test can -->',
        ]
  }
  if (mark.is === 'by-hand') return mark.because.length > 8 ? [] : ['the reason says too little']
  if (!existsSync(mark.by)) return [`there is no ${mark.by}`]
  const name = basename(page)
  const near = [mark.by, ...importsOf(mark.by)]
  return near.some((file) => readFileSync(file, 'utf8').includes(name))
    ? []
    : [`${mark.by} does not read ${name}`]
}

const importsOf = (file: string) =>
  listArrows(new Map([[file, readFileSync(file, 'utf8')]]))
    .filter(({ local }) => local)
    .map(({ to }) => to)

function checkText({ language, text }: Fence): readonly string[] {
  if (language === 'sh') return listMistakes(text)
  if (language === 'json') return checkJson(text)
  return language === 'toml' ? checkToml(text) : []
}

function checkJson(text: string): readonly string[] {
  try {
    JSON.parse(text)
    return []
  } catch (thrown) {
    return [String(thrown)]
  }
}

function checkToml(text: string): readonly string[] {
  const parsed = parseToml(text)
  if (!parsed.ok) return [parsed.refusal.message]
  const layers = [{ path: 'the block', text, values: parsed.value }]
  const { problems } = parseSettings({ env: {}, saved: {}, layers })
  return problems.map(({ where, message }) => `${where}: ${message}`)
}
