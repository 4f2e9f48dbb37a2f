import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSeededRandom, KILLS } from '#test/support/seed.ts'
import { makeBootFolder } from '#test/support/server/boot-folder.ts'

const test = suite('boot files and kill -9')
const INSTALLER = join(import.meta.dirname, '../../support/server/boot-installer.ts')

/** The number of the last installation that was acknowledged before it was killed. */
async function runUntilKilled(dir: string, ms: number): Promise<number> {
  const child = spawn(process.execPath, [INSTALLER, dir], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    let last = -1
    for await (const line of createInterface(child.stdout)) {
      if (last < 0) void sleep(ms).then(() => child.kill('SIGKILL'))
      last = Number(line.slice('installed '.length))
    }
    return last
  } finally {
    child.kill('SIGKILL')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  }
}

test('killed at any moment, the set in force is whole: the last one, or the one that was under way', async () => {
  await using folder = await makeBootFolder()
  const random = createSeededRandom(3)
  for (let round = 0; round < KILLS; round += 1) {
    const last = await runUntilKilled(folder.dir, random() * 70)
    await using files = await folder.open()
    const set = files.active().x86_64
    assert.ok(set !== null)
    const texts = await Promise.all(
      [set.vmlinuz, set.initrd, set.squashfs].map((name) =>
        readFile(join(folder.dir, name), 'utf8'),
      ),
    )
    assert.is(new Set(texts).size, 1, texts.join(' '))
    assert.ok([last, last + 1].includes(Number(texts[0])), `${last}: ${texts.join(' ')}`)
    const left = (await folder.names()).filter((name) => /^\.(staged|install|upload)-/.test(name))
    assert.equal(left, [])
  }
})

test.run()
