import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { addAxe, listViolations } from '#test/support/browser/axe.ts'
import { openContext, PASSWORD } from '#test/support/browser/browser.ts'
import { createSharedSite } from '#test/support/browser/shared.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser by keyboard alone')
const shared = createSharedSite(test)

/** The field has the focus by itself, a moment after the page is there. */
async function typePassword(page: Page) {
  await page.waitForFunction(() => document.activeElement?.getAttribute('name') === 'password')
  await page.keyboard.type(PASSWORD)
  await page.keyboard.press('Enter')
}

test('log in, find, pick, open, assign, arm, and back', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  const { keyboard } = page
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim() ?? '')
  for (const box of [1, 2, 3]) {
    await shared.site.boxes.boot(box)
    await shared.site.boxes.tellDisks(box)
  }
  await page.goto('/ui/machines')
  await typePassword(page)
  await page.waitForURL('**/ui/machines')

  await keyboard.press('?')
  await page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor()
  await keyboard.press('Escape')
  // The browser gives the focus back a moment after the dialog is gone.
  await page.waitForFunction(() => document.activeElement === document.body)

  await keyboard.press('j')
  await keyboard.press('j')
  assert.is(await focused(), macOf(2))
  await keyboard.press('x')
  await page.getByText('1 selected').waitFor()
  await keyboard.press('k')
  assert.is(await focused(), macOf(1))
  await keyboard.press('Escape')
  assert.is(await page.locator('.pick :checked').count(), 0)

  await keyboard.press('/')
  await keyboard.type('00:03')
  await keyboard.press('Enter')
  await page.waitForURL('**/ui/machines?q=00%3A03')
  await keyboard.press('g')
  await keyboard.press('n')
  await page.waitForURL('**/ui/netboot')
  await page.goBack()
  await page.waitForURL('**/ui/machines?q=00%3A03')
  await keyboard.press('j')
  await keyboard.press('a')
  await page.waitForURL(`**/ui/machines/${macOf(3)}#intent`)

  // The groups of radio buttons are reached by Tab and walked by the arrows.
  await page.getByRole('radio', { name: /^debian-13-generic-amd64/ }).focus()
  await keyboard.press('Space')
  await keyboard.press('Tab')
  await keyboard.press('Space')
  assert.is(await page.getByRole('radio', { name: /^Samsung SSD 980/ }).isChecked(), true)
  assert.is(await page.getByRole('radio', { name: /^Flash once/ }).isChecked(), true)
  await keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  await dialog.waitFor()
  const field = dialog.getByRole('textbox')
  assert.ok(await field.evaluate((each) => each === document.activeElement))
  await keyboard.type(serialOf(3).slice(-4))
  await keyboard.press('Enter')
  await page.getByText('Armed. Boot the machine').waitFor()
  assert.is((await shared.site.boxes.plan(3)).mode, 'flash')
  assert.equal(opened.complaints, [])
})

test('the palette finds and opens, keys lead to sections, and both leave fields alone', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  const { keyboard } = page
  await page.goto('/ui/dashboard')
  await typePassword(page)
  await page.waitForURL('**/ui/dashboard')
  await addAxe(opened.context)
  await page.reload()
  await keyboard.press('g')
  await keyboard.press('e')
  await page.waitForURL('**/ui/events')
  // There, `/` is the search of the page; where there is none, that of everything.
  await keyboard.press('/')
  await keyboard.type('gm?')
  assert.is(await page.locator('main #q').inputValue(), 'gm?')

  await keyboard.press('Control+k')
  const field = page.getByRole('combobox', { name: 'Search everything' })
  await keyboard.type(macOf(2).replaceAll(':', '').toUpperCase())
  const option = page.getByRole('option', { name: macOf(2) }).first()
  await option.waitFor()
  assert.is(await field.getAttribute('aria-activedescendant'), await option.getAttribute('id'))
  assert.equal(await listViolations(page), [])
  await keyboard.press('ArrowUp')
  assert.is(await option.getAttribute('aria-selected'), 'false')
  await keyboard.press('ArrowDown')
  await keyboard.press('Enter')
  await page.waitForURL(`**/ui/machines/${macOf(2)}`)

  await keyboard.press('/')
  await page.getByRole('group', { name: 'Recent' }).waitFor()
  assert.is(await page.locator('#palette [role=option]').first().textContent(), macOf(2))
  await keyboard.press('Escape')
  await page.waitForFunction(() => document.querySelector('dialog[open]') === null)

  await keyboard.press('?')
  await page.getByRole('button', { name: 'Switch single keys off' }).click()
  await page.waitForURL(`**/ui/machines/${macOf(2)}`)
  await keyboard.press('?')
  await keyboard.press('Control+k')
  await field.waitFor()
  assert.is(await page.getByRole('heading', { name: 'Keyboard shortcuts' }).count(), 0)
  assert.equal(opened.complaints, [])
})

test('a login says that it is sent, the first Tab offers to skip the navigation, and focus is always seen', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await page.goto('/ui/login')
  let sent = 0
  // A server that answers so leaves the page as it is.
  await page.route('**/ui/login', async (route) => {
    sent += 1
    await route.fulfill({ status: 204 })
  })
  await typePassword(page)
  await page.getByRole('button', { name: 'Logging in…' }).waitFor()
  await page.keyboard.press('Enter')
  await page.unroute('**/ui/login')
  assert.is(sent, 1)
  await page.reload()
  await typePassword(page)
  await page.waitForURL('**/ui/dashboard')
  await page.keyboard.press('Tab')
  assert.is(await page.getByText('Skip to content').isVisible(), true)
  await page.keyboard.press('Enter')
  assert.is(await page.evaluate(() => document.activeElement?.id), 'content')
  for (let at = 0; at < 6; at += 1) {
    await page.keyboard.press('Tab')
    const style = await page.evaluate(
      () => getComputedStyle(document.activeElement ?? document.body).outlineStyle,
    )
    assert.is(style, 'solid')
  }
})

test.run()
