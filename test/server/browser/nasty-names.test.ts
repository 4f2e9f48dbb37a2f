import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { checkSchemes } from '#test/support/browser/axe.ts'
import { chooseAction } from '#test/support/browser/browser.ts'
import { createSiteLab } from '#test/support/browser/site-lab.ts'
import { settleNastyFleet } from '#test/support/server/nasty-fleet.ts'

const test = suite('the browser: lists of long, foreign and hostile names')
const MACHINES = 40
const { withPage } = createSiteLab(test, (page, site) =>
  settleNastyFleet(site, page.request, MACHINES),
)

/** A window of 1280 pixels at 200 % has 640 of its own. */
const WINDOWS = [
  ['1920', { viewport: { width: 1920, height: 1080 } }],
  ['1280', { viewport: { width: 1280, height: 800 } }],
  ['1280 at 200 %', { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2 }],
  ['390', { viewport: { width: 390, height: 844 } }],
] as const

const PAGES = ['/ui/machines', '/ui/machines?sort=disk', '/ui/machines?view=wall', '/ui/runs']

/** Texts of a selector that are cut off, in width or in height. */
const listCut = (page: Page, selector: string) =>
  page.locator(selector).evaluateAll((found) =>
    found.flatMap((each) => {
      const isCut =
        each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).overflow !== 'visible'
      return isCut ? [each.textContent] : []
    }),
  )

const isWide = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth)

for (const [name, options] of WINDOWS) {
  test(`no page scrolls sideways, and the disk that will be lost is shown whole, at ${name}`, () =>
    withPage(async (page) => {
      for (const path of PAGES) {
        await page.goto(path)
        assert.not(await isWide(page), path)
      }
      await page.goto('/ui/machines')
      assert.ok((await page.locator('.disk.whole').count()) > 10)
      assert.equal(await listCut(page, '.disk.whole, .disk.whole *'), [])
      assert.equal(await listCut(page, '#rows .state'), [])
      assert.is(await page.locator('main img').count(), 0)
    }, options))
}

test('a text that is shortened keeps its end, and is whole on hover and while it has the focus', () =>
  withPage(async (page) => {
    await page.goto('/ui/machines?q=integration')
    const row = page.locator('#rows tr').first()
    const link = row.locator('th > a')
    const full = await link.getAttribute('title')
    assert.is(await link.innerText(), full)
    assert.ok((await listCut(page, '#rows tr:first-child th bdi')).length > 0)
    await page.keyboard.press('j')
    assert.ok(await link.evaluate((each) => each === document.activeElement))
    assert.equal(
      await listCut(page, '#rows tr:first-child :is(th, td), #rows tr:first-child *'),
      [],
    )
    // Image and serial number end with what tells them apart.
    await page.goto('/ui/machines?q=-state:armed')
    assert.ok((await listCut(page, '#rows .middle > :first-child')).length > 0)
    const ends = page.locator('#rows .middle > :last-child')
    assert.equal(await listCut(page, '#rows .middle > :last-child'), [])
    assert.ok((await ends.count()) > 0)
  }))

test('on a phone rows are cards, with everything that a list can do', () =>
  withPage(async (page) => {
    await page.goto('/ui/machines')
    const card = page.locator('#rows tr').first()
    assert.is(await card.evaluate((each) => getComputedStyle(each).display), 'grid')
    // Names and states are whole; the card that somebody is at shows the rest.
    assert.equal(await listCut(page, '#rows .name > a, #rows .state, #rows .state *'), [])
    await card.locator('th > a').focus()
    const rest = '#rows tr:first-child :is(.will, .image, .disk, .will *, .image *, .disk *)'
    assert.equal(await listCut(page, rest), [])
    await page.getByLabel('Select all on this page').check()
    await page.getByText(`${MACHINES} selected`).waitFor()
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.getByRole('link', { name: 'Seen', exact: true }).click()
    await page.waitForURL('**sort=-seen')
    await page.getByRole('link', { name: /^Armed/ }).click()
    await page.waitForURL('**q=state%3Aarmed**')
    await page.getByText('Columns', { exact: true }).click()
    await page.getByRole('button', { name: 'Show these' }).waitFor()
    assert.not(await isWide(page))
  }, WINDOWS[3][1]))

test('axe finds nothing in menus and questions of lists, light or dark', async () => {
  for (const [name, options] of [WINDOWS[1], WINDOWS[3]]) {
    await withPage(async (page) => {
      await page.goto('/ui/machines?q=lab')
      for (const menu of ['Saved searches', 'Columns']) {
        await page.getByText(menu, { exact: true }).click()
        await checkSchemes(page, `${menu} ${name}`)
      }
      await page.keyboard.press('Escape')
      await page.getByLabel('Select all on this page').check()
      for (const action of ['Arm…', 'Assign image…', 'Set network boot…']) {
        await chooseAction(page, action)
        const dialog = page.getByRole('dialog')
        await dialog.waitFor()
        await checkSchemes(page, `${action} ${name}`)
        assert.not(await isWide(page))
        assert.equal(await listCut(page, '#question .losses *'), [])
        await dialog.getByRole('link', { name: 'Cancel' }).click()
      }
    }, options)
  }
})

test.run()
