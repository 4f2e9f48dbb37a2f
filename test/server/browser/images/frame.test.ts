/** The pages of the cache have the side bar of its server: the same links and counts at the same places, and its search. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { openImages, openLab, startFreshLab } from '#test/support/browser/fresh-lab.ts'
import { createSharedBrowser } from '#test/support/browser/shared.ts'

const test = suite('the browser: the frame of the cache')
const shared = createSharedBrowser(test)

/** Each link with its count and its place. */
const readSide = (page: Page) =>
  page.locator('.side a:visible, .side input:visible').evaluateAll((all) =>
    all.map((each) => {
      const { left, top, width } = each.getBoundingClientRect()
      return [each.textContent.trim(), left, top, width].join(' ')
    }),
  )

for (const width of [1280, 390]) {
  test(`nothing of it moves between server and cache at ${width}`, async () => {
    await using lab = await startFreshLab()
    await using opened = await openLab(shared.browser, lab, { viewport: { width, height: 800 } })
    const { page } = opened
    const body = new URLSearchParams({ password: 'wrong' })
    assert.is((await fetch(`${lab.url}/ui/login`, { method: 'POST', body })).status, 401)
    await page.goto('/ui/channels')
    const before = await readSide(page)
    assert.match(before.join(), 'Events1')
    await openImages(page, lab)
    assert.equal(await readSide(page), before)
    await page.goto(`${lab.cacheUrl}/ui/find?q=machines`)
    await page.waitForURL(`${lab.url}/ui/find?q=machines`)
    assert.equal(opened.complaints, [])
  })
}

test.run()
