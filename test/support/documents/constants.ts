/** The value of a constant, read from the text of the file that has it: most limits are exported to nobody. */
import { readFileSync } from 'node:fs'

/**
 * The number that `name` has in `file`: `const NAME = 4 * 1024 * 1024`, `name: 30_000,` or `NAME=5` in a script.
 * Products and powers of numbers and of constants of the same file are computed.
 */
export function numberIn(file: string, name: string): number {
  const text = readFileSync(file, 'utf8')
  const [, written] =
    new RegExp(
      `^\\s*(?:export )?(?:(?:const|let) )?${name}(?:: \\w+)?\\s*[=:]\\s*([^,;\\n]+?),?$`,
      'm',
    ).exec(text) ?? []
  if (written === undefined) throw new Error(`${file} has no ${name}`)
  return written
    .split(' * ')
    .map((factor) => powerOf(factor.trim(), file))
    .reduce((product, factor) => product * factor, 1)
}

function powerOf(factor: string, file: string): number {
  const [base = '', power] = factor.split(' ** ')
  const number = /^[\d_.]+$/.test(base) ? Number(base.replaceAll('_', '')) : numberIn(file, base)
  return power === undefined ? number : number ** Number(power)
}
