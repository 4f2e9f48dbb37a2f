import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Browser } from 'playwright-core'
import { addAxe, checkLooks } from '#test/support/browser/axe.ts'
import { openBrowser } from '#test/support/browser/browser.ts'
import { openLab, startFreshLab } from '#test/support/browser/fresh-lab.ts'
import { makeBytes } from '#test/support/collect.ts'
import { pipeThrough } from '#test/support/disk/compressed.ts'
import { openWorkshop } from '#test/support/disk/qcow2-image.ts'

const test = suite('the browser: the pages of the first run')
let browser: Browser
test.before(async () => {
  browser = await openBrowser()
})
test.after(async () => {
  await browser.close()
})

const DISK = makeBytes(4096)

/** What is no image of its format would not be offered. */
async function dropImages(folder: string) {
  await using workshop = await openWorkshop()
  const files = {
    'debian-13.img.zst': pipeThrough(['zstd', '-q', '-c'], DISK),
    'Ubuntu 24.04 サーバー — mit Ümläuten und einem sehr langen Namen für die Werkstatt.qcow2':
      await readFile(await workshop.create('1M')),
    [`fedora-${'very-long-name-without-a-space-'.repeat(6)}x86_64.img.xz`]: pipeThrough(
      ['xz', '-c'],
      DISK,
    ),
    'عربي-صورة.img.gz': gzipSync(DISK),
  }
  for (const [name, bytes] of Object.entries(files)) await writeFile(join(folder, name), bytes)
}

test('axe finds nothing on these pages, and nothing is wider than the screen', async () => {
  await using lab = await startFreshLab()
  // Colours that change take no time.
  await using opened = await openLab(browser, lab, { reducedMotion: 'reduce' })
  await addAxe(opened.context)
  const { page } = opened
  for (const isFresh of [true, false]) {
    if (!isFresh) await dropImages(lab.folder)
    for (const path of ['/ui/cache', '/ui/dashboard', '/ui/netboot']) {
      await page.goto(path)
      if (!isFresh && path === '/ui/cache') await page.locator('.badge.done').nth(3).waitFor()
      await checkLooks(page, path)
    }
  }
  assert.equal(opened.complaints, [])
})

test.run()
