import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Browser } from 'playwright-core'
import { addAxe, listViolations } from '../../support/browser/axe.ts'
import { openBrowser } from '../../support/browser/browser.ts'
import { openLab, startFreshLab } from '../../support/browser/fresh-lab.ts'

const test = suite('the browser: the pages of the first run')
let browser: Browser
test.before(async () => {
  browser = await openBrowser()
})
test.after(async () => {
  await browser.close()
})

const NAMES = [
  'debian-13.img.zst',
  'Ubuntu 24.04 サーバー — mit Ümläuten und einem sehr langen Namen für die Werkstatt.qcow2',
  `fedora-${'very-long-name-without-a-space-'.repeat(6)}x86_64.img.xz`,
  'عربي-صورة.img.gz',
]

test('axe finds nothing on these pages, and nothing is wider than the screen', async () => {
  await using lab = await startFreshLab()
  // Colours that change take no time.
  await using opened = await openLab(browser, lab, { reducedMotion: 'reduce' })
  await addAxe(opened.context)
  const { page } = opened
  for (const isFresh of [true, false]) {
    if (!isFresh) for (const name of NAMES) await writeFile(join(lab.folder, name), name)
    for (const path of ['/ui/cache', '/ui/dashboard', '/ui/netboot']) {
      await page.goto(path)
      if (!isFresh && path === '/ui/cache') await page.locator('.badge.done').nth(3).waitFor()
      for (const width of [1280, 390]) {
        for (const colorScheme of ['light', 'dark'] as const) {
          await page.setViewportSize({ width, height: 844 })
          await page.emulateMedia({ colorScheme })
          const where = `${path} ${width} ${colorScheme}`
          assert.equal(await listViolations(page), [], where)
          const wide = await page.evaluate(() => document.documentElement.scrollWidth)
          assert.ok(wide <= width, `${where} is ${wide} wide`)
        }
      }
    }
  }
  assert.equal(opened.complaints, [])
})

test.run()
