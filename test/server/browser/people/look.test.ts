/** Who may only look is shown no field that no button sends, on any page, and reads what is assigned. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { EXPECTED } from '#test/support/people/expected-routes.ts'
import { logIn, openContext, startSite } from '#test/support/browser/browser.ts'
import { createSharedBrowser } from '#test/support/browser/shared.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: who may only look')
const shared = createSharedBrowser(test)

const THEIRS = 'a password of their own'

async function addLea(page: Page) {
  await page.goto('/ui/people/add')
  await page.getByLabel('Name').fill('lea')
  await page.getByLabel('Role').selectOption('look')
  await page.getByLabel('Password').fill(THEIRS)
  await page.getByRole('button', { name: 'Add person' }).click()
  await page.getByText('lea was added.').waitFor()
}

async function logInAsLea(page: Page) {
  await page.goto('/ui/login')
  await page.getByLabel('Name').fill('lea')
  await page.getByLabel('Password').fill(THEIRS)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.waitForURL('**/ui/dashboard')
}

/** Fields that can be seen and filled in, in forms that have no button that can be seen. */
const listFields = (page: Page) =>
  page.evaluate(() => {
    return [...document.querySelectorAll<HTMLFormElement>('main form[method="post"]')].flatMap(
      (form) => {
        const elements = [...form.elements]
        const hasButton = elements.some(
          (each) => each instanceof HTMLButtonElement && each.checkVisibility(),
        )
        const fields = elements.filter(
          (each) => !(each instanceof HTMLButtonElement) && each.checkVisibility(),
        )
        return hasButton || fields.length === 0 ? [] : [form.getAttribute('action') ?? '']
      },
    )
  })

test('no page shows a field without a button', async () => {
  await using site = await startSite()
  await using administrator = await openContext(shared.browser, site, {})
  const first = await administrator.context.newPage()
  await site.boxes.boot(1)
  await site.boxes.tellDisks(1)
  await logIn(first)
  await addLea(first)
  await using opened = await openContext(shared.browser, site, {})
  const page = await opened.context.newPage()
  await logInAsLea(page)
  const paths = [...EXPECTED.server].flatMap(([name, { need }]) => {
    const isShown = need === 'read' && name.startsWith('GET /ui/')
    return isShown && !/:(id|name|run)|\/(cache|images|boot|compare)/.test(name)
      ? [name.slice('GET '.length)]
      : []
  })
  const found: string[] = []
  for (const path of paths) {
    await page.goto(path.replace(':mac', macOf(1)))
    for (const form of await listFields(page)) found.push(`${path}: ${form}`)
  }
  assert.ok(paths.length > 10, `${paths.length}`)
  assert.equal(found, [])
})

test('the page of a machine says in words what is assigned', async () => {
  await using site = await startSite()
  await using administrator = await openContext(shared.browser, site, {})
  const first = await administrator.context.newPage()
  await site.boxes.boot(1)
  await site.boxes.tellDisks(1)
  await logIn(first)
  await addLea(first)
  await first.goto(`/ui/machines/${macOf(1)}`)
  await first.getByRole('radio', { name: /^debian-13-generic-amd64/ }).check()
  await first.getByRole('radio', { name: /^Samsung SSD 980/ }).check()
  await first.getByRole('radio', { name: /^Boot its disk/ }).check()
  await first.getByRole('button', { name: 'Save' }).click()
  await first.getByText('Saved').first().waitFor()
  await using opened = await openContext(shared.browser, site, {})
  const page = await opened.context.newPage()
  await logInAsLea(page)
  await page.goto(`/ui/machines/${macOf(1)}`)
  const card = page.locator('#intent')
  const text = await card.innerText()
  for (const part of ['debian-13-generic-amd64', serialOf(1), 'Boot its disk']) {
    assert.ok(text.includes(part), `${part} in ${text}`)
  }
  assert.is(await card.locator('input').count(), 0)
})

test.run()
