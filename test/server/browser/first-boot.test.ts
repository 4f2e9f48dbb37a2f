/** First-boot templates as people use them: made, refused, assigned, previewed, removed; secrets are dots. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Browser, Page } from 'playwright-core'
import { addAxe, listViolations } from '../../support/browser/axe.ts'
import { logIn, openBrowser, openContext, startSite } from '../../support/browser/browser.ts'
import { macOf } from '../../support/server/web-machines.ts'

const KEY = 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIB ada@example'
const PATH = '/ui/first-boot'
const MACHINE = `/ui/machines/${macOf(1)}`

const test = suite('the browser: first-boot templates')
let browser: Browser
test.before(async () => {
  browser = await openBrowser()
})
test.after(() => browser.close())

async function create(page: Page) {
  await page.goto(PATH)
  await page.getByLabel('Name', { exact: true }).fill('web')
  await page.getByLabel('Host name').fill('{{nam}}')
  await page.getByLabel('Users').fill(`ada sudo\n${KEY}`)
  await page.getByLabel('Commands').fill('join {{secret.token}}')
  await page.getByLabel('Secrets', { exact: true }).fill('token=geheim-77')
  await page.getByRole('button', { name: 'Create template' }).click()
}

test('a template is refused, created, assigned, previewed and deleted', async () => {
  await using site = await startSite()
  await site.boxes.boot(1)
  await using opened = await openContext(browser, site)
  await addAxe(opened.context)
  const page = await opened.context.newPage()
  await logIn(page)
  await create(page)
  await page.getByText('{{nam}} is not a placeholder').waitFor()
  // A secret that was typed does not come back.
  assert.is(await page.getByLabel('Secrets', { exact: true }).inputValue(), 'token=')
  assert.is(await page.getByLabel('Users').inputValue(), `ada sudo\n${KEY}`)
  await page.getByLabel('Host name').fill('{{name}}')
  await page.getByLabel('Secrets', { exact: true }).fill('token=geheim-77')
  await page.getByRole('button', { name: 'Create template' }).click()
  await page.waitForURL(`**${PATH}/web`)
  assert.is(await page.getByLabel('Secrets', { exact: true }).inputValue(), 'token=••••••••')
  assert.equal(await listViolations(page), [])

  await page.goto(MACHINE)
  const card = page.locator('#first-boot')
  await card.getByLabel('Template').selectOption('web')
  await card.getByRole('button', { name: 'Assign' }).click()
  await card.getByText('the machine has no name').waitFor()
  await page.locator('#configuration').getByLabel('Name').fill('web-1')
  await page.getByRole('button', { name: 'Save' }).click()
  await card.getByText('Preview for this machine').click()
  await card.getByText('join ••••••••').first().waitFor()
  await card.getByText('this machine is not flashed without').waitFor()
  assert.equal(await listViolations(page), [])

  await page.goto(`${PATH}/web`)
  await page.getByText('In use by 1 machine').waitFor()
  await page.goto(MACHINE)
  await card.getByLabel('Template').selectOption('')
  await card.getByRole('button', { name: 'Assign' }).click()
  await page.goto(`${PATH}/web`)
  await page.getByRole('button', { name: 'Delete template' }).click()
  await page.getByText('Delete the template web?').waitFor()
  await page.locator('#question').getByRole('button', { name: 'Delete template' }).click()
  await page.waitForURL(`**${PATH}`)
  await page.getByText('No templates').waitFor()
})

test.run()
