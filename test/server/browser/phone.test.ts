/** A phone as the console: from the code on a machine's screen to its page, where two taps arm it. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { addAxe, listViolations } from '#test/support/browser/axe.ts'
import { openContext, PASSWORD, startSite } from '#test/support/browser/browser.ts'
import { createSharedBrowser } from '#test/support/browser/shared.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const PAGE = `/ui/machines/${macOf(1)}`

const test = suite('the browser: a phone')
const shared = createSharedBrowser(test)

test('the code leads to the page after the login, which arms in two taps and shows why it failed', async () => {
  await using site = await startSite()
  await site.boxes.boot(1)
  await site.boxes.tellDisks(1)
  const viewport = { width: 390, height: 844 }
  await using opened = await openContext(shared.browser, site, { viewport, hasTouch: true })
  await addAxe(opened.context)
  const page = await opened.context.newPage()
  await page.goto(`/M/${macOf(1).replaceAll(':', '').toUpperCase()}`)
  await page.getByLabel('Administrator password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Log in' }).tap()
  await page.waitForURL(`**${PAGE}`)
  const [image] = await (await page.request.get('/images')).json()
  const data = {
    boot_mode: 'flasher-flash-once',
    bty_image_ref: image.ref,
    target_disk_serial: serialOf(1),
  }
  await page.request.put(`/machines/${macOf(1)}`, { data })
  await site.boxes.boot(1)
  await site.boxes.done(1)

  await page.getByText('Flash again…').waitFor()
  await page.getByRole('button', { name: 'As before…' }).tap()
  await page.getByRole('textbox', { name: /Type the last 4/ }).fill(serialOf(1).slice(-4))
  await page.getByRole('button', { name: 'Arm this machine' }).tap()
  await page.getByText('Armed. Boot the machine').waitFor()
  assert.equal(await listViolations(page), [])

  // Nobody touches it from here on.
  const card = page.locator('#now')
  await site.boxes.boot(1)
  await site.boxes.report(1, { run: 'c0ffee00-0001', phase: 'write', mode: 'flash' })
  await card.getByText('running', { exact: true }).waitFor()
  await site.boxes.report(1, { run: 'c0ffee00-0001', phase: 'failed', reason: 'the disk is gone' })
  await site.boxes.fail(1, 'the disk is gone')
  await card.getByText('the disk is gone').waitFor()
  const wide = await page.evaluate(() => document.documentElement.scrollWidth)
  assert.ok(wide <= viewport.width, `${wide}`)
  assert.equal(opened.complaints, [])
})

test('what is no MAC leads nowhere', async () => {
  await using site = await startSite()
  for (const [path, status, location] of [
    ['/m/525400a10001', 303, PAGE],
    ['/m/52-54-00-A1-00-01', 303, PAGE],
    ['/m/52:54:00:a1:00:01', 303, PAGE],
    ['/m/525400a1000', 404, null],
    ['/m/..%2f..%2fetc', 404, null],
    ['/M/%2f%2fevil.example', 404, null],
  ] as const) {
    const answer = await fetch(`${site.url}${path}`, { redirect: 'manual' })
    assert.is(answer.status, status, path)
    assert.is(answer.headers.get('location'), location, path)
  }
})

test.run()
