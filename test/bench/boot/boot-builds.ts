/** How long the builder takes from nothing, and after a change of a program: as a whole command, in a copy of the checkout. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CHECKOUT, readEpoch } from '#build/facts.ts'
import type { Level } from '#build/steps/step.ts'
import { copyCheckout } from '#build/twice.ts'

const CHANGED = 'runtime/kit/net/rules/mac.ts'

/** Seconds. Packages are fetched anew, the cache is removed at the end. */
export async function measureBuilds(level: Level, say: (line: string) => void) {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-bench-build-'))
  try {
    const checkout = join(folder, 'checkout')
    copyCheckout(CHECKOUT, checkout)
    const env = {
      ...process.env,
      FLASHER_BUILD_CACHE: join(folder, 'cache'),
      SOURCE_DATE_EPOCH: String(readEpoch(CHECKOUT, 'dev', process.env)),
    }
    const build = async () => {
      const start = performance.now()
      const argv = ['build/images.ts', '--level', level]
      const child = spawn(process.execPath, argv, {
        cwd: checkout,
        env,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
      child.stdout.setEncoding('utf8').on('data', (text: string) => say(text.trimEnd()))
      await once(child, 'close')
      if (child.exitCode !== 0) throw new Error(`build:images ended with ${child.exitCode}`)
      return (performance.now() - start) / 1000
    }
    const cold = await build()
    await appendFile(join(checkout, CHANGED), '\nexport const changedForTheBenchmark = true\n')
    return { cold, warm: await build() }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
