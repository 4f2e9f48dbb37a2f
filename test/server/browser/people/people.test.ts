/** The pages of people in Chromium: somebody is added, refused, changed, logs in, and is removed; narrow, dark, and without scripts. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { addAxe, checkWidth, listViolations } from '#test/support/browser/axe.ts'
import { logIn, openContext, startSite } from '#test/support/browser/browser.ts'
import { createSharedBrowser } from '#test/support/browser/shared.ts'

const test = suite('the browser: people')
const shared = createSharedBrowser(test)

const THEIRS = 'a password of their own'

/** Has axe look at the page, and sees whether anything is wider than it. */
async function check(page: Page): Promise<void> {
  assert.equal(await listViolations(page), [])
  await checkWidth(page, page.url())
}

/** Adds otto, who operates the lab, after a password that is refused. */
async function addOtto(page: Page, look: () => Promise<void>): Promise<void> {
  await page.goto('/ui/people')
  await page.getByText('No people yet').waitFor()
  await look()
  await page.getByRole('link', { name: 'Add a person' }).click()
  await page.getByLabel('Name').fill('Otto Maier')
  await page.getByLabel('Role').selectOption('operate')
  await page.getByLabel('Scope').fill('lab')
  await page.getByLabel('Password').fill(THEIRS)
  await page.getByRole('button', { name: 'Add person' }).click()
  await page.getByText('Enter a name of lowercase letters').waitFor()
  assert.is(await page.getByLabel('Scope').inputValue(), 'lab')
  await look()
  await page.getByLabel('Name').fill('otto')
  await page.getByLabel('Password').fill(THEIRS)
  await page.getByRole('button', { name: 'Add person' }).click()
  await page.getByText('otto was added.').waitFor()
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? 'with scripts, on a phone' : 'without scripts'
  test(`somebody is added, changed and removed, ${how}`, async () => {
    await using site = await startSite()
    const viewport = javaScriptEnabled ? { width: 390, height: 844 } : { width: 1280, height: 800 }
    await using opened = await openContext(shared.browser, site, { javaScriptEnabled, viewport })
    if (javaScriptEnabled) await addAxe(opened.context)
    const page = await opened.context.newPage()
    const look = async () => {
      if (javaScriptEnabled) await check(page)
    }
    await logIn(page)
    await addOtto(page, look)
    const row = page.getByRole('row').filter({ hasText: 'otto' })
    assert.match(await row.innerText(), /Operator[^]*lab[^]*password[^]*none recorded[^]*Active/)
    await look()
    await row.getByRole('link', { name: 'Change otto' }).click()
    assert.is(await page.getByLabel('Scope').inputValue(), 'lab')
    await look()
    await page.getByLabel('Scope').fill('läb')
    await page.getByRole('button', { name: 'Save role and scope' }).click()
    await page.getByText('Labels have letters').waitFor()
    await page.getByLabel('Role').selectOption('look')
    await page.getByLabel('Scope').fill('')
    await page.getByRole('button', { name: 'Save role and scope' }).click()
    await page.getByText('Role and scope of otto saved').waitFor()
    assert.match(await row.innerText(), /Viewer[^]*all machines/)
    await row.getByRole('link', { name: 'Change otto' }).click()
    await page.getByLabel('New password').fill('another password of theirs')
    await page.getByRole('button', { name: 'Set password' }).click()
    await page.getByText('Password of otto changed').waitFor()
    await row.getByRole('link', { name: 'Change otto' }).click()
    await page.getByRole('button', { name: 'Remove…' }).click()
    await page.getByRole('heading', { name: 'Remove otto?' }).waitFor()
    await look()
    await page.getByRole('button', { name: 'Remove person' }).click()
    await page.getByText('otto was removed.').waitFor()
    assert.equal(opened.complaints, [])
  })
}

test('after a wrong password the name stays, and the next one is typed at once', async () => {
  await using site = await startSite()
  await using administrator = await openContext(shared.browser, site, {})
  const first = await administrator.context.newPage()
  await logIn(first)
  await addOtto(first, async () => {})
  await using opened = await openContext(shared.browser, site, {})
  const page = await opened.context.newPage()
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute('name'))
  await page.goto('/ui/login')
  assert.is(await focused(), 'username')
  for (const name of ['otto', 'administrator']) {
    await page.getByLabel('Name').fill(name)
    await page.getByLabel('Password').fill('a wrong one')
    await page.getByRole('button', { name: 'Log in' }).click()
    await page.locator('#password-error').waitFor()
    assert.is(await page.getByLabel('Name').inputValue(), name)
    assert.is(await focused(), 'password', name)
  }
  await page.getByLabel('Name').fill('otto')
  await page.getByLabel('Password').fill(THEIRS)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.waitForURL('**/ui/dashboard')
  await first.goto('/ui/people')
  assert.match(await first.getByRole('row').filter({ hasText: 'otto' }).innerText(), /s ago|now/)
})

test.run()
