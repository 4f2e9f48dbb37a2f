/** pnpm bench:fits: of each image on each firmware, whether the answer before a flash is what QEMU does. */
import { mkdtempDisposableSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import {
  type Firmware,
  IMAGES,
  isWrong,
  ON_ARM,
  ON_PC,
  preparePairs,
} from '#test/support/vm/boot-pairs.ts'

const { values } = parseArgs({ options: { only: { type: 'string', default: '' } } })
const folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-bench-fits-'))
const AT_ONCE = 2

const count = { wrong: 0, unknown: 0, pairs: 0 }
const isAsked = new RegExp(values.only)
const firmwaresOf = (name: string): readonly Firmware[] =>
  /^for (arm64|all)/.test(name) ? [...ON_PC, ...ON_ARM] : ON_PC
const pairs = Object.keys(IMAGES)
  .flatMap((name) => firmwaresOf(name).map((firmware) => [name, firmware] as const))
  .filter((pair) => isAsked.test(pair.join(' on ')))

try {
  const hold = preparePairs(folder.path)
  const next = pairs.values()
  const work = async () => {
    for (const [name, firmware] of next) {
      const began = performance.now()
      const pair = await hold(name, firmware)
      const { verdict, boots } = pair
      count.pairs += 1
      if (isWrong(pair)) count.wrong += 1
      if (verdict.answer === 'unknown') count.unknown += 1
      const seconds = Math.round((performance.now() - began) / 1000)
      const cells = [name, firmware, verdict.answer, boots ? 'started' : 'did not start']
      const sign = isWrong(pair) ? 'WRONG' : `${seconds} s`
      process.stdout.write(`| ${[...cells, sign].join(' | ')} |\n`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, work))
} finally {
  folder.remove()
}
process.stdout.write(`${JSON.stringify(count)}\n`)
process.exitCode = count.wrong > 0 ? 1 : 0
