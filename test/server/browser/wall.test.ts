/** The wall: hundreds of machines on one screen, rack by rack, live, to select and act on. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { listViolations } from '#test/support/browser/axe.ts'
import { chooseAction } from '#test/support/browser/browser.ts'
import { createSiteLab } from '#test/support/browser/site-lab.ts'

const test = suite('the browser: the wall')
const WHOLE = '/ui/machines?view=wall&screen=whole'
const macOf = (at: number) =>
  `52:54:00:b0:${Math.floor(at / 256)
    .toString(16)
    .padStart(2, '0')}:${(at % 256).toString(16).padStart(2, '0')}`

/** Forty slots in each rack; slot 7 of each is free. */
async function settle({ request }: Page, from: number, to: number): Promise<void> {
  const put = (at: number) =>
    request.put(`/machines/${macOf(at)}`, {
      data: dataOf(at, at % 3 === 0 ? 'flasher-tui' : 'ipxe-exit'),
    })
  for (let at = from; at < to; at += 10) {
    const batch = Array.from({ length: Math.min(10, to - at) }, (_, step) => put(at + step))
    for (const answer of await Promise.all(batch)) assert.is(answer.status(), 200)
  }
}

const dataOf = (at: number, boot_mode: string) => ({
  name: `node-${at}`,
  labels: [`rack-${Math.floor(at / 39) + 1}`, `slot-${slotOf(at)}`],
  boot_mode,
})

const slotOf = (at: number) => (at % 39 < 6 ? (at % 39) + 1 : (at % 39) + 2)

const { withPage } = createSiteLab(test, (page) => settle(page, 0, 300))

/** Notes the machines of all tiles that anything changes from now on. */
const watchTiles = (page: Page) =>
  page.evaluate(() => {
    const touched = new Set<string>()
    Object.assign(globalThis, { touched })
    const watch = new MutationObserver((changes) => {
      for (const { target } of changes) {
        const tile = target instanceof Element ? target.closest('.t') : null
        touched.add(tile?.querySelector('input')?.value ?? String(target.nodeName))
      }
    })
    const wall = document.querySelector('.wall')
    if (wall !== null) watch.observe(wall, { subtree: true, childList: true, attributes: true })
  })

const heightOf = (page: Page) => page.evaluate(() => document.documentElement.scrollHeight)

for (const colorScheme of ['light', 'dark'] as const) {
  test(`300 machines are on one screen of 1280 by 800 without navigation, ${colorScheme}`, () =>
    withPage(
      async (page) => {
        await page.goto(WHOLE)
        assert.is(await page.locator('.t.pick').count(), 300)
        assert.ok((await heightOf(page)) <= 800, `${await heightOf(page)}`)
        assert.is(await page.locator('.side').isVisible(), false)
        // Free slots are there, and the racks in their order.
        assert.is(await page.locator('.rack').first().locator('.free').count(), 1)
        const racks = await page.locator('.rack h2').allInnerTexts()
        assert.equal(
          racks,
          [1, 2, 3, 4, 5, 6, 7, 8].map((rack) => `rack-${rack}`),
        )
        assert.equal(await listViolations(page), [])
        await page.getByRole('link', { name: 'Show the navigation' }).click()
        assert.is(await page.locator('.side').isVisible(), true)
        assert.equal(await listViolations(page), [])
      },
      { colorScheme },
    ))
}

test('a tile is selected by click and by keyboard, opened by Enter, and acted on', () =>
  withPage(async (page) => {
    await page.goto(WHOLE)
    await page.getByLabel('node-0, slot 1: opens the wizard').check()
    await page.getByText('1 selected').waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Space')
    await page.getByText('2 selected').waitFor()
    assert.ok(await page.getByLabel('node-1, slot 2: boots its disk').isChecked())
    await chooseAction(page, 'Lock')
    await page.getByRole('dialog').getByText('node-1').waitFor()
    await page.getByRole('link', { name: 'Cancel' }).click()
    await page.getByLabel('node-0, slot 1: opens the wizard').focus()
    await page.keyboard.press('ArrowRight')
    await page.keyboard.press('Enter')
    await page.waitForURL(`**/ui/machines/${macOf(5)}`)
  }))

test('the wall follows fifty machines at once', () =>
  withPage(async (page) => {
    await page.goto(WHOLE)
    for (let at = 0; at < 50; at += 1) {
      const data = dataOf(at, 'flasher-inventory')
      assert.is((await page.request.put(`/machines/${macOf(at)}`, { data })).status(), 200)
    }
    const listing = page.getByLabel(/^node-[1-4]?\d, slot \d+: lists its disks$/)
    await listing.nth(49).waitFor({ state: 'attached' })
  }))

test('a machine that changes its state neither moves its tile nor loads the page again', () =>
  withPage(async (page) => {
    const fail = { status: 'failed', reason: 'no route' }
    await page.request.post(`/pxe/${macOf(60)}/status`, { data: fail })
    await page.goto('/ui/machines?view=wall')
    await page.evaluate(() => Object.assign(globalThis, { isSame: true }))
    await page.request.post(`/pxe/${macOf(61)}/status`, { data: fail })
    const data = dataOf(62, 'flasher-inventory')
    await page.request.put(`/machines/${macOf(62)}`, { data })
    await page.getByLabel(/^node-62, .*: lists its disks/).waitFor({ state: 'attached' })
    assert.is(await page.evaluate(() => Reflect.get(globalThis, 'isSame')), true)
  }))

test('without scripts tiles are selected and acted on as well', () =>
  withPage(
    async (page) => {
      await page.goto('/ui/machines?view=wall')
      await page.getByLabel(/^node-100, slot/).check()
      await chooseAction(page, 'Lock')
      await page.locator('#question').getByText('node-100').waitFor()
    },
    { javaScriptEnabled: false },
  ))

test('1,000 machines are on one screen of 1920 by 1080, in 60 kB at most; what changes is changed alone', () =>
  withPage(
    async (page, site) => {
      await settle(page, 300, 1000)
      await page.goto(WHOLE)
      assert.is(await page.locator('.t.pick').count(), 1000)
      assert.ok((await heightOf(page)) <= 1080, `${await heightOf(page)}`)
      const [cookie] = await page.context().cookies()
      const sent = await fetch(`${site.url}${WHOLE}`, {
        headers: { cookie: `${cookie?.name}=${cookie?.value}`, 'accept-encoding': 'gzip' },
      })
      const length = Number(sent.headers.get('content-length'))
      assert.ok(length > 0 && length <= 60_000, `${length} bytes`)
      await watchTiles(page)
      // None of them was changed by the tests above.
      const changed = Array.from({ length: 50 }, (_, step) => 50 + 19 * step)
      for (const at of changed) {
        const data = dataOf(at, 'flasher-inventory')
        await page.request.put(`/machines/${macOf(at)}`, { data })
      }
      const last = page.locator(`.t:has([value="${macOf(changed.at(-1) ?? 0)}"]) input`)
      await page.waitForFunction(
        (input) => input?.getAttribute('aria-label')?.endsWith('lists its disks') === true,
        await last.elementHandle(),
      )
      // The work is that of the tiles that changed, not of all that are there.
      const touched = await page.evaluate((): string[] => [...Reflect.get(globalThis, 'touched')])
      assert.equal(touched.toSorted(), changed.map(macOf))
      // What is beyond them is on the next page, also with large tiles.
      await settle(page, 1000, 1002)
      await page.goto('/ui/machines?view=wall')
      await page.getByText('The wall shows 1,000 machines at a time').waitFor()
      await page.getByRole('link', { name: 'Next' }).click()
      await page.waitForURL('**page=2**')
      await page.getByRole('link', { name: 'Large tiles' }).click()
      await page.locator('.large').waitFor()
      assert.equal(await page.locator('.t bdi').allInnerTexts(), ['node-1000', 'node-1001'])
    },
    { viewport: { width: 1920, height: 1080 } },
  ))

test.run()
