/** The pages of batches in Chromium: ordered from the list, followed, paused, tried again; wide, narrow, dark and without scripts. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Browser, Page } from 'playwright-core'
import { addAxe, checkLooks } from '#test/support/browser/axe.ts'
import {
  chooseAction,
  logIn,
  openBrowser,
  openContext,
  startSite,
  type WebSite,
} from '#test/support/browser/browser.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: batches')
let browser: Browser
let site: WebSite
const RACK = [1, 2, 3, 4, 5]

test.before(async () => {
  ;[browser, site] = await Promise.all([openBrowser(), startSite()])
  await using opened = await openContext(browser, site)
  const page = await opened.context.newPage()
  await logIn(page)
  const [image] = await (await page.request.get('/images')).json()
  for (const box of RACK) {
    await site.boxes.boot(box)
    await site.boxes.tellDisks(box)
    const data = {
      name: `rack-03-${box}`,
      labels: ['rack-03'],
      bty_image_ref: image.ref,
      target_disk_serial: serialOf(box),
    }
    await page.request.put(`/machines/${macOf(box)}`, { data })
  }
})
test.after(async () => {
  await browser.close()
  await site[Symbol.asyncDispose]()
})

/** Arms all of them by the API; returns the address of the batch's page. */
async function arm(page: Page): Promise<string> {
  const data = {
    action: 'flash',
    q: 'label:rack-03',
    parameters: { boot_mode: 'flasher-flash-once' },
  }
  const { batch } = await (await page.request.post('/machines/bulk', { data })).json()
  return `/ui/batches/${batch}`
}

/** One is flashed, one fails, one writes; the others have not come. */
async function goOn(): Promise<void> {
  for (const box of [1, 2, 3]) {
    await site.boxes.boot(box)
    await site.boxes.plan(box)
  }
  await site.boxes.done(1)
  await site.boxes.fail(2, 'The disk ended too early.')
}

test('a batch says where its machines are, and what can be done', async () => {
  await using opened = await openContext(browser, site)
  const page = await opened.context.newPage()
  await logIn(page)
  const path = await arm(page)
  await page.goto(path)
  await page.getByText('5 machines, 5 not booted yet').waitFor()
  await goOn()
  await page.getByText('5 machines, 1 done, 1 failed, 1 in progress, 2 not booted yet').waitFor()
  const failed = new RegExp(`failed rack-03-2 .*${serialOf(2)}.*The disk ended too early\\.`)
  await page.getByRole('row', { name: failed }).waitFor()
  await page.goto('/ui/dashboard')
  await page.getByRole('link', { name: /to rack-03$/ }).click()
  await page.getByRole('button', { name: 'Pause' }).click()
  await page.getByText('Paused 2 machines.').waitFor()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('dialog').getByText('2 disks will be erased and flashed').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Resume' }).click()
  await page.getByText('Resumed 2 machines.').waitFor()
  await page.getByRole('button', { name: 'Retry failed (1)' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Retry failed' }).click()
  await page.getByText('Armed 1 machine again.').waitFor()
  await page.getByRole('button', { name: 'Disarm the rest (3)' }).click()
  await page.getByText('Disarmed 2 machines.').waitFor()
  assert.equal(opened.complaints, [])
})

test('fits wide and narrow, and axe finds nothing, light or dark', async () => {
  await using opened = await openContext(browser, site, { reducedMotion: 'reduce' })
  await addAxe(opened.context)
  const page = await opened.context.newPage()
  await logIn(page)
  const path = await arm(page)
  await goOn()
  for (const each of [path, '/ui/batches', '/ui/dashboard', '/ui/events']) {
    await page.goto(each)
    await checkLooks(page, each)
  }
})

test('works without scripts: disarmed from the list, and followed', async () => {
  await using opened = await openContext(browser, site, { javaScriptEnabled: false })
  const page = await opened.context.newPage()
  await logIn(page)
  await arm(page)
  await page.goto('/ui/machines?q=rack-03')
  await page.locator('input[name="all"]').check()
  await chooseAction(page, 'Disarm')
  await page.getByRole('button', { name: /^Disarm \(/ }).click()
  await page.getByRole('link', { name: 'Follow this batch' }).click()
  await page.getByRole('heading', { name: /^Disarm 5 machines: rack-03/ }).waitFor()
  assert.equal(opened.complaints, [])
})

test.run()
