/** Many tabs of one browser: one stream for all of them, or two where there are no shared workers. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  logIn,
  openBrowser,
  openContext,
  startSite,
  type WebSite,
} from '#test/support/browser/browser.ts'
import { macOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: many tabs')
let browser: Browser
let site: WebSite
test.before(async () => {
  ;[browser, site] = await Promise.all([openBrowser(), startSite()])
  for (let box = 1; box <= 9; box++) await site.boxes.boot(box)
})
test.after(async () => {
  await browser.close()
  await site[Symbol.asyncDispose]()
})

async function countStreams(page: Page): Promise<number> {
  const metrics = await (await page.request.get('/metrics')).text()
  return Number(/^flasher_sse_clients (\d+)/m.exec(metrics)?.[1])
}

/** Waits for what happens within moments; nothing is decided by how long that took. */
async function eventually(isSo: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await isSo()); tries++) {
    if (tries > 200) throw new Error('it never came to be')
    await sleep(100)
  }
}

async function openTabs(context: BrowserContext, count: number): Promise<readonly Page[]> {
  const pages: Page[] = []
  for (let box = 1; box <= count; box++) {
    const page = await context.newPage()
    await page.goto(`/ui/machines/${macOf(box)}`)
    pages.push(page)
  }
  return pages
}

const failed = (page: Page) => page.locator('main').getByText('failed', { exact: true }).first()

test('nine tabs share one stream, and each follows its own machine', async () => {
  await using opened = await openContext(browser, site)
  const first = await opened.context.newPage()
  await logIn(first)
  await first.goto('/ui/machines')
  const tabs = await openTabs(opened.context, 9)
  for (const [at, tab] of tabs.entries()) {
    await site.boxes.fail(at + 1, 'no route to the image')
    await failed(tab).waitFor()
  }
  await first.getByText('failed', { exact: true }).first().waitFor()
  await eventually(async () => (await countStreams(first)) === 1)
  for (const tab of tabs) await tab.close()
  await first.goto('/ui/settings')
  await eventually(async () => (await countStreams(first)) === 0)
  assert.equal(opened.complaints, [])
})

test('a tab that was opened in the background follows once it is shown', async () => {
  await using opened = await openContext(browser, site)
  const page = await opened.context.newPage()
  await logIn(page)
  await page.goto('/ui/settings')
  await eventually(async () => (await countStreams(page)) === 0)
  const tab = await opened.context.newPage()
  await tab.addInitScript(() => {
    let isHidden = true
    Object.defineProperty(document, 'hidden', { get: () => isHidden })
    addEventListener('test:shown', () => {
      isHidden = false
      document.dispatchEvent(new Event('visibilitychange'))
    })
  })
  await tab.goto('/ui/machines')
  assert.is(await countStreams(page), 0)
  await site.boxes.boot(11)
  await tab.evaluate(() => dispatchEvent(new Event('test:shown')))
  await tab.locator(`#m-${macOf(11).replaceAll(':', '-')}`).waitFor()
  assert.is(await countStreams(page), 1)
})

test('without shared workers the two tabs that were shown last have a stream', async () => {
  await using opened = await openContext(browser, site)
  await opened.context.addInitScript(() => Reflect.deleteProperty(globalThis, 'SharedWorker'))
  const first = await opened.context.newPage()
  await logIn(first)
  const tabs = await openTabs(opened.context, 8)
  await eventually(async () => (await countStreams(first)) === 2)
  const last = tabs.at(-1)
  assert.ok(last)
  await site.boxes.fail(8, 'once more')
  await failed(last).waitFor()
  // The oldest follows again as soon as somebody turns to it.
  const [oldest] = tabs
  assert.ok(oldest)
  await oldest.evaluate(() => dispatchEvent(new Event('focus')))
  await site.boxes.fail(1, 'the cable was pulled')
  await oldest.getByText('the cable was pulled').first().waitFor()
  await eventually(async () => (await countStreams(first)) === 2)
  await first.goto('/ui/settings')
})

test('the stream ends with the session, and a new login is followed again', async () => {
  await using opened = await openContext(browser, site)
  const [first, other] = [await opened.context.newPage(), await opened.context.newPage()]
  await logIn(first)
  await other.goto('/ui/machines')
  await eventually(async () => (await countStreams(first)) === 1)
  await first.goto('/ui/account')
  await first.getByRole('button', { name: 'Log out' }).click()
  await first.waitForURL(/login/)
  await other
    .getByRole('status')
    .getByText(/connection/i)
    .waitFor()
  await logIn(first)
  await site.boxes.boot(12)
  await other.locator(`#m-${macOf(12).replaceAll(':', '-')}`).waitFor()
})

test.run()
