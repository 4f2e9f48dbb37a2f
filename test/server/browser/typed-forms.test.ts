/** A save after the session ended: what was typed is shown again after the login, to the same person, with and without scripts. */
import type { BrowserContext, Page } from 'playwright-core'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  chooseAction,
  logIn,
  openContext,
  PASSWORD,
  startSite,
} from '#test/support/browser/browser.ts'
import { createSharedBrowser } from '#test/support/browser/shared.ts'
import { macOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: a session ends under a form')
const shared = createSharedBrowser(test)

const endSession = (context: BrowserContext) => context.clearCookies({ name: 'flasher-token' })

async function logInAgain(page: Page): Promise<void> {
  await page.getByText('You were logged out').waitFor()
  await page.locator('input[name=password]').fill(PASSWORD)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByText('What you typed is here again').waitFor()
}

for (const javaScriptEnabled of [true, false]) {
  const how = javaScriptEnabled ? 'with scripts' : 'without scripts'
  test(`a machine's fields come back as they were typed, ${how}`, async () => {
    await using site = await startSite()
    await site.boxes.boot(1)
    await using opened = await openContext(shared.browser, site, { javaScriptEnabled })
    const page = await opened.context.newPage()
    await logIn(page)
    const path = `/ui/machines/${macOf(1)}`
    const name = page.locator('input[name=name]')
    const save = () => page.locator('button[form=configuration]').click()
    await page.goto(path)
    await name.fill('typed-here')
    await endSession(opened.context)
    await save()
    await logInAgain(page)
    assert.is(await name.inputValue(), 'typed-here')
    const other = await opened.context.newPage()
    await other.goto(path)
    assert.is(await other.locator('input[name=name]').inputValue(), '')
    await save()
    await page.waitForURL(`**${path}**`)
    await other.goto(path)
    assert.is(await other.locator('input[name=name]').inputValue(), 'typed-here')
  })
}

test('a question comes back with its machines, not answered', async () => {
  await using site = await startSite()
  await site.boxes.boot(1)
  await using opened = await openContext(shared.browser, site, { javaScriptEnabled: false })
  const page = await opened.context.newPage()
  await logIn(page)
  await page.goto('/ui/machines')
  await page.locator('input[name=macs]').first().check()
  await chooseAction(page, 'Delete…')
  await page.locator('input[name=sure]').fill('1')
  await endSession(opened.context)
  await page.getByRole('button', { name: /^Delete/ }).click()
  await logInAgain(page)
  await page.getByText(macOf(1)).first().waitFor()
  assert.is(await page.locator('input[name=sure]').inputValue(), '')
  await page.locator('input[name=sure]').fill('1')
  await page.getByRole('button', { name: /^Delete/ }).click()
  await page.getByText('It reappears as discovered').waitFor()
})

test.run()
