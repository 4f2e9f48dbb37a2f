import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { chooseAction } from '#test/support/browser/browser.ts'
import { createSiteLab } from '#test/support/browser/site-lab.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: lists')
const { withPage } = createSiteLab(test, async (page, site) => {
  for (const box of [1, 2, 3, 4]) {
    await site.boxes.boot(box)
    await site.boxes.tellDisks(box)
  }
  const [{ ref }] = await (await page.request.get('/images')).json()
  for (const [box, name] of [
    [1, 'rack-10'],
    [2, 'Rack-2'],
    [3, 'rack-1'],
  ] as const) {
    await page.request.put(`/machines/${macOf(box)}`, {
      data: {
        name,
        boot_mode: 'flasher-flash-once',
        bty_image_ref: ref,
        target_disk_serial: serialOf(box),
      },
    })
  }
  await site.boxes.fail(3, 'no route to the image')
})

const namesOf = (page: Page) => page.locator('#rows th > a').allInnerTexts()

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? 'with a script' : 'without a script'

  test(`a click sorts, the next one reverses, and the search stays, ${how}`, () =>
    withPage(
      async (page) => {
        await page.goto('/ui/machines?q=rack')
        await page.getByRole('link', { name: 'Machine', exact: true }).click()
        await page.waitForURL('**/ui/machines?q=rack&sort=name')
        assert.equal(await namesOf(page), ['rack-1', 'Rack-2', 'rack-10'])
        const head = page.getByRole('columnheader', { name: /^Machine/ })
        assert.is(await head.getAttribute('aria-sort'), 'ascending')
        await head.getByRole('link').click()
        await page.waitForURL('**sort=-name')
        assert.is(await head.getAttribute('aria-sort'), 'descending')
        assert.equal(await namesOf(page), ['rack-10', 'Rack-2', 'rack-1'])
        // The newest come first, as nobody asks who was seen longest ago.
        await page.getByRole('link', { name: 'Seen', exact: true }).click()
        await page.waitForURL('**sort=-seen')
      },
      { javaScriptEnabled },
    ))

  test(`columns are chosen, remembered, and put back, ${how}`, () =>
    withPage(
      async (page) => {
        await page.goto('/ui/machines?sort=name')
        await page.getByText('Columns', { exact: true }).click()
        await page.getByLabel('Address', { exact: true }).check()
        await page.getByLabel('Image').uncheck()
        await page.getByRole('button', { name: 'Show these' }).click()
        await page.waitForURL('**/ui/machines?sort=name')
        await page.goto('/ui/machines')
        assert.is(await page.getByRole('columnheader', { name: 'Address' }).count(), 1)
        assert.is(await page.getByRole('columnheader', { name: 'Image' }).count(), 0)
        assert.is(await page.locator('#rows .ip').first().innerText(), '127.0.0.1')
        assert.is(await page.locator('#rows .image').count(), 0)
        await page.getByText('Columns', { exact: true }).click()
        await page.getByRole('button', { name: 'Reset' }).click()
        assert.is((await page.locator('#rows .image').count()) > 0, true)
        assert.is(await page.locator('#rows .ip').count(), 0)
      },
      { javaScriptEnabled },
    ))

  test(`a search is saved under any name, found again, and removed, ${how}`, () =>
    withPage(
      async (page) => {
        const evil = '"><img src=x onerror=alert(1)> 失敗'
        await page.goto('/ui/machines')
        await page.getByText('Saved searches', { exact: true }).click()
        await page.getByText('Search for something to save it here.').waitFor()
        await page.goto('/ui/machines?q=state:failed&sort=-name')
        await page.getByText('Saved searches', { exact: true }).click()
        await page.getByLabel('Save this search as').fill(evil)
        await page.getByRole('button', { name: 'Save', exact: true }).click()
        await page.goto('/ui/machines')
        await page.getByText('Saved searches', { exact: true }).click()
        assert.is(await page.locator('main img').count(), 0)
        await page.getByRole('link', { name: evil }).click()
        await page.waitForURL('**/ui/machines?q=state%3Afailed&sort=-name')
        assert.equal(await namesOf(page), ['rack-1'])
        await page.getByText('Saved searches', { exact: true }).click()
        await page.getByRole('button', { name: `Remove ${evil}` }).click()
        await page.getByText('Saved searches', { exact: true }).click()
        await page.getByText('No saved searches in this browser.').waitFor()
      },
      { javaScriptEnabled },
    ))

  test(`an image is found for many machines, and none is taken by mistake, ${how}`, () =>
    withPage(
      async (page) => {
        const image = javaScriptEnabled ? 'fedora-43' : 'ubuntu-26.04'
        await page.goto('/ui/machines')
        await page.getByLabel('Select rack-10').check()
        await page.getByLabel('Select Rack-2').check()
        await chooseAction(page, 'Assign image…')
        const question = page.locator('#question')
        await question.getByText('Assign image: 2 machines').waitFor()
        assert.is(await question.getByRole('radio', { checked: true }).count(), 0)
        assert.is(await question.getByRole('radio', { name: /^tools-bundle/ }).count(), 0)
        await question.getByRole('searchbox', { name: 'Find an image' }).fill(image)
        await question.getByRole('button', { name: 'Find' }).click()
        await question
          .getByRole('radio', { name: /^debian/ })
          .first()
          .waitFor({ state: 'hidden' })
        await question.getByRole('radio', { name: image }).check()
        await question.getByRole('button', { name: 'Assign image (2)' }).click()
        await question.getByText('2 disks will be erased and flashed').waitFor()
        for (const box of [1, 2]) await question.getByText(serialOf(box)).waitFor()
        await question.getByRole('textbox').fill('2')
        await question.getByRole('button', { name: 'Assign image (2)' }).click()
        await question.getByText('Assigned the image to 2 machines.').waitFor()
      },
      { javaScriptEnabled },
    ))
}

test('quick filters are counted, the active one is marked, and counts follow the machines', () =>
  withPage(async (page, site) => {
    await page.goto('/ui/machines')
    const views = page.getByRole('navigation', { name: 'Views' })
    const active = () => views.locator('[aria-current]').innerText()
    assert.match(await active(), /^All\s+4$/)
    await views.getByRole('link', { name: /^Discovered/ }).click()
    assert.match(await active(), /^Discovered\s+1$/)
    await site.boxes.boot(5)
    await views.getByText(/^All\s+5$/).waitFor()
    await views.getByText(/^Discovered\s+2$/).waitFor()
  }))

test('what is open looks so: section, quick filter and saved search', () =>
  withPage(async (page) => {
    for (const q of ['state:failed', 'rack']) {
      await page.goto(`/ui/machines?q=${q}`)
      await page.getByText('Saved searches', { exact: true }).click()
      await page.getByLabel('Save this search as').fill(q)
      await page.getByRole('button', { name: 'Save', exact: true }).click()
      await page.locator('.menu li a', { hasText: q }).waitFor({ state: 'attached' })
    }
    await page.goto('/ui/machines?q=state:armed')
    const weigh = (selector: string) =>
      page
        .locator(selector)
        .evaluateAll((found) => found.map((each) => getComputedStyle(each).fontWeight))
    assert.equal(await weigh('.side nav [aria-current]'), ['600'])
    assert.equal(await weigh('.views [aria-current]'), ['600'])
    assert.not((await weigh('.views :not([aria-current]):not(.count)')).includes('600'))
    await page.goto('/ui/machines?q=state:failed')
    assert.equal(await weigh('.tools .menu li a[aria-current]'), ['600'])
    assert.equal(await weigh('.tools .menu li a:not([aria-current])'), ['400'])
  }))

test('a term that is not understood is named, with what may be meant', () =>
  withPage(async (page) => {
    await page.goto('/ui/machines?q=rack+stat:failed')
    const note = page.getByRole('status').filter({ hasText: 'is not a filter' })
    assert.is(await note.innerText(), 'stat:failed is not a filter. Did you mean state:failed?')
    await note.getByRole('link', { name: 'state:failed' }).click()
    await page.waitForURL('**/ui/machines?q=rack+state%3Afailed')
    assert.equal(await namesOf(page), ['rack-1'])
    assert.is(await page.getByText('Did you mean').count(), 0)
    await page.goto('/ui/machines?q=is:looked seen:yesterday <b>x:y')
    await page.getByText('is:looked finds nothing. Did you mean is:locked?').waitFor()
    await page.getByText('seen:yesterday is not a time.').waitFor()
  }))

test('live rows have the columns of the page', () =>
  withPage(async (page, site) => {
    await page.goto('/ui/machines?columns=name.arch&q=is:discovered')
    await site.boxes.boot(30)
    const row = page.locator(`#m-${macOf(30).replaceAll(':', '-')}`)
    await row.waitFor()
    assert.equal(
      await row.locator('td, th').evaluateAll((cells) => cells.map(({ className }) => className)),
      ['pick', 'name', 'arch'],
    )
  }))

test('a menu is left by Escape, which gives the focus back, and by a click elsewhere', () =>
  withPage(async (page) => {
    await page.goto('/ui/machines')
    const menu = page.locator('.menu', { hasText: 'Columns' })
    await menu.locator('summary').focus()
    await page.keyboard.press('Enter')
    await menu.getByLabel('Address').focus()
    await page.keyboard.press('Escape')
    assert.is(await menu.evaluate((each: HTMLDetailsElement) => each.open), false)
    assert.is(await page.evaluate(() => document.activeElement?.textContent), 'Columns')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1 }).click()
    assert.is(await menu.evaluate((each: HTMLDetailsElement) => each.open), false)
  }))

test.run()
