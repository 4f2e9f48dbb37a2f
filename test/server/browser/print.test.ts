/** What the pages are on paper. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { execFileSync } from 'node:child_process'
import type { Page } from 'playwright-core'
import { addAxe, listViolations } from '#test/support/browser/axe.ts'
import { logIn, openContext } from '#test/support/browser/browser.ts'
import { createSharedSite } from '#test/support/browser/shared.ts'
import { macOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: on paper')
const shared = createSharedSite(test)

const countVisible = async (page: Page, selector: string) =>
  (await Promise.all((await page.locator(selector).all()).map((each) => each.isVisible()))).filter(
    Boolean,
  ).length

test('pages print what is known in dark letters, without navigation and buttons', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await logIn(page)
  await shared.site.boxes.boot(1)
  await shared.site.boxes.tellDisks(1)
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

test('labels fill sheets of A4, and a phone reads their codes', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  await addAxe(opened.context)
  const page = await opened.context.newPage()
  await logIn(page)
  const { request } = page
  for (let box = 1; box <= 49; box += 1) {
    const data = { name: `bench ${box}`, labels: ['lab', 'slot-7', 'rack-1'] }
    await request.put(`/machines/${macOf(box)}`, { data })
  }
  await shared.site.boxes.tellDisks(1)
  await page.goto('/ui/machines?q=bench')
  await page.getByText('More', { exact: true }).click()
  await page.getByRole('link', { name: 'Print labels' }).click()
  await page.getByText('This page has 48 labels').waitFor()
  const label = page.locator('.sticky-labels li').first()
  assert.is(
    (await label.innerText()).replace(/\s+/g, ' ').trim(),
    `bench 1 ${macOf(1)} S/N S3112341 rack-1 · slot-7 · lab`,
  )
  assert.equal(await listViolations(page), [])
  const picture = await label.screenshot({ scale: 'device' })
  const read = execFileSync('zbarimg', ['--quiet', '--raw', '-'], { input: picture })
  const code = read.toString().trim()
  assert.is(code, `${shared.site.url}/m/${macOf(1).replaceAll(':', '')}`.toUpperCase())
  await page.goto(code.replace(/^HTTP:/, 'http:'))
  await page.waitForURL(`**/ui/machines/${macOf(1)}`)
  await page.goto('/ui/machines/labels?q=bench')
  const pdf = (await page.pdf({ preferCSSPageSize: true })).toString('latin1')
  assert.is(pdf.match(/\/Type\s*\/Page\b(?!s)/g)?.length, 2)
  assert.match(pdf, /MediaBox\s*\[0 0 59[45][.\d]* 84[12][.\d]*\]/)
  await page.goto('/ui/machines/labels?q=bench&page=2')
  await page.getByText('49–49 of 49').waitFor()
  assert.equal(opened.complaints, [])
})

test.run()
