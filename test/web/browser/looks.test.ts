import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Browser } from 'playwright-core'
import { addAxe, listViolations } from '../../support/browser/axe.ts'
import {
  logIn,
  openBrowser,
  openContext,
  startSite,
  type WebSite,
} from '../../support/browser/browser.ts'
import { disksOf, macOf } from '../../support/server/web-machines.ts'

const test = suite('the browser: access for all, no stray requests, hostile texts')
let browser: Browser
let site: WebSite
test.before(async () => {
  ;[browser, site] = await Promise.all([openBrowser(), startSite()])
  for (const box of [1, 2]) {
    await site.boxes.boot(box)
    await site.boxes.tellDisks(box)
  }
  await site.boxes.fail(2, 'no route to the image')
})
test.after(async () => {
  await browser.close()
  await site[Symbol.asyncDispose]()
})

const PAGES = [
  '/ui/dashboard',
  '/ui/machines',
  '/ui/machines?view=wall',
  '/ui/machines?q=nothing',
  `/ui/machines/${macOf(1)}`,
  '/ui/runs',
  '/ui/netboot',
  '/ui/backups',
  '/ui/events',
  '/ui/events?kind=machine.discovered&from=2026-01-02&to=2026-01-01',
  '/ui/settings',
  '/ui/settings?q=flash',
  '/ui/settings?q=nothing',
  '/ui/account',
  '/ui/no-such-page',
]

for (const colorScheme of ['light', 'dark'] as const) {
  test(`axe finds nothing, ${colorScheme}`, async () => {
    await using opened = await openContext(browser, site, { colorScheme })
    await addAxe(opened.context)
    const page = await opened.context.newPage()
    await page.goto('/ui/login')
    assert.equal(await listViolations(page), [], 'login')
    await logIn(page)
    for (const path of PAGES) {
      await page.goto(path)
      assert.equal(await listViolations(page), [], `${path} ${colorScheme}`)
    }
    // What is folded away is read too.
    await page.goto(`/ui/machines/${macOf(1)}`)
    await page.evaluate(() =>
      document.querySelectorAll('details').forEach((each) => (each.open = true)),
    )
    assert.equal(await listViolations(page), [], 'unfolded')
    assert.equal(
      opened.complaints.filter((each) => !each.includes('404')),
      [],
    )
  })
}

test('on a narrow screen nothing is wider than it', async () => {
  await using opened = await openContext(browser, site, { viewport: { width: 390, height: 844 } })
  const page = await opened.context.newPage()
  await logIn(page)
  for (const path of PAGES) {
    await page.goto(path)
    const [wide, room] = await page.evaluate(() => [
      document.documentElement.scrollWidth,
      document.documentElement.clientWidth,
    ])
    assert.ok((wide ?? 0) <= (room ?? 0), `${path} is ${wide} wide`)
  }
})

test('whatever a box says stays text', async () => {
  await using opened = await openContext(browser, site)
  const page = await opened.context.newPage()
  await logIn(page)
  const evil = '"><img src=x onerror=alert(1)><script>alert(2)</script>\u202e${7*7}'
  await site.boxes.boot(9)
  const [first, ...others] = disksOf(9)
  await site.boxes.tellDisks(9, [
    { ...first, model: evil.slice(0, 120), serial: evil.slice(0, 60), vendor: evil.slice(0, 60) },
    ...others,
  ])
  await site.boxes.fail(9, evil)
  let dialogs = 0
  page.on('dialog', (dialog) => {
    dialogs += 1
    void dialog.dismiss()
  })
  for (const path of [...PAGES.slice(0, 3), `/ui/machines/${macOf(9)}`, '/ui/events']) {
    await page.goto(path)
    assert.is(await page.locator('img').count(), 0, path)
    assert.is(await page.locator('main script').count(), 0, path)
  }
  await page.goto(`/ui/machines?q=${encodeURIComponent(evil)}&error=${encodeURIComponent(evil)}`)
  assert.is(await page.locator('main img').count(), 0)
  assert.is(await page.getByRole('searchbox').inputValue(), evil)
  assert.is(dialogs, 0)
  assert.equal(opened.complaints, [])
})

test.run()
