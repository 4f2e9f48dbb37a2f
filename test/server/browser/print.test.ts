/** What the pages are on paper. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Browser, Page } from 'playwright-core'
import {
  logIn,
  openBrowser,
  openContext,
  startSite,
  type WebSite,
} from '../../support/browser/browser.ts'
import { macOf } from '../../support/server/web-machines.ts'

const test = suite('the browser: on paper')
let browser: Browser
let site: WebSite
test.before(async () => {
  ;[browser, site] = await Promise.all([openBrowser(), startSite()])
})
test.after(async () => {
  await browser.close()
  await site[Symbol.asyncDispose]()
})

const countVisible = async (page: Page, selector: string) =>
  (await Promise.all((await page.locator(selector).all()).map((each) => each.isVisible()))).filter(
    Boolean,
  ).length

test('pages print what is known in dark letters, without navigation and buttons', async () => {
  await using opened = await openContext(browser, site)
  const page = await opened.context.newPage()
  await logIn(page)
  await site.boxes.boot(1)
  await site.boxes.tellDisks(1)
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
  for (const path of [
    '/ui/dashboard',
    '/ui/machines',
    `/ui/machines/${macOf(1)}`,
    '/ui/runs',
    '/ui/events',
  ]) {
    await page.goto(new URL(path, page.url()).href)
    const shown = await countVisible(page, 'button, .button, .side, [type=checkbox]')
    assert.is(shown, 0, path)
    assert.ok(await page.locator('h1').isVisible(), path)
    const back = await page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    assert.is(back, 'rgb(255, 255, 255)', path)
  }
  await page.goto(new URL('/ui/machines', page.url()).href)
  assert.ok(await page.locator('tbody tr').first().isVisible())
})

test.run()
