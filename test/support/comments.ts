/**
 * Finds comments that begin without a subject: `Of a disk.`, `As the server sends it.`
 *
 * `node test/support/comments.ts [checkout]` counts them by room, with `--list` it prints each.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Comment {
  readonly file: string
  /** The number of its first line, from 1. */
  readonly line: number
  /** Its words in one line, without slashes and asterisks. */
  readonly text: string
}

/** A block, lines of comments below each other, or a comment behind code. */
const COMMENT = /\/\*\*([^]*?)\*\/|((?:^[ \t]*\/\/(?! @).*\n)+)|(?<=[\s,({[;])\/\/(?! @) (.*)/gm

/** Words with which a sentence begins whose subject is missing, or comes only behind a comma. */
const OPENERS = new Set(
  `of as by from for in on at with without below above beside besides behind between among until since
  to through per than like after before along against beyond within instead also never always both not
  so only once again later else mostly rather internal lower longer shorter larger smaller more less
  far just still already made called loaded refused aborted kept sent taken given set written found
  asked signed stored sorted counted shown used needed meant left checked limited measured compared
  copied moved`
    .trim()
    .split(/\s+/),
)
/** What makes a phrase of these the subject: `Only the first counts.`, `Both ends wait.` */
const QUANTIFIERS =
  /^(?:only|both|not|more|less|never|also) [`\w]+(?: [\w`./-]+)* (?:is|are|has|have|can|may|must|does|do|counts?|stays?|[a-z]+s)\b/i

export function listComments(file: string, source: string): readonly Comment[] {
  return [...source.matchAll(COMMENT)].flatMap(
    ({ 0: whole, 1: block, 2: lines, 3: tail, index }) => {
      const text = (block ?? lines ?? tail ?? '')
        .replaceAll(/^[ \t]*(?:\*|\/\/)[ \t]?/gm, '')
        .replaceAll(/\s+/g, ' ')
        .trim()
      const line = source.slice(0, index).split('\n').length + (/^\s*\n/.exec(whole)?.length ?? 0)
      return text === '' ? [] : [{ file, line, text }]
    },
  )
}

/** Whether the first sentence has no subject. Commas and colons divide what is left out from what is said. */
export function hasNoSubject(text: string): boolean {
  const [sentence = ''] = text.split(/(?<=[a-z0-9`)”"][.;])\s/)
  const [word = ''] = /^[A-Za-z]+/.exec(sentence) ?? []
  if (!OPENERS.has(word.toLowerCase())) return false
  if (QUANTIFIERS.test(sentence)) return false
  // `Of secrets that people chose: looked up only for …` has none behind the colon either.
  return word.toLowerCase() === 'of' || !/[,:] ["`\w]/.test(sentence)
}

export function findComments(checkout: string, patterns: readonly string[]): readonly Comment[] {
  const files = patterns.flatMap((pattern) => globSync(pattern, { cwd: checkout })).toSorted()
  return files.flatMap((file) => listComments(file, readFileSync(join(checkout, file), 'utf8')))
}

if (import.meta.main) {
  const [checkout = '.'] = process.argv.slice(2).filter((word) => !word.startsWith('--'))
  const comments = findComments(checkout, ['{appliance,build,runtime,test}/**/*.ts'])
  const bad = comments.filter(({ text }) => hasNoSubject(text))
  if (process.argv.includes('--list')) {
    for (const { file, line, text } of bad) console.log(`${file}:${line}: ${text}`)
  }
  const roomOf = ({ file }: Comment) => file.split('/').slice(0, 2).join('/')
  const rooms = Object.entries(Object.groupBy(bad, roomOf))
  for (const [room, found = []] of rooms) console.log(`${room}: ${found.length}`)
  console.log(`${bad.length} of ${comments.length} comments begin without a subject`)
}
