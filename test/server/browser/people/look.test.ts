/** Who may only look is shown no field that no button sends, on any page, and reads what is assigned. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Page } from 'playwright-core'
import { EXPECTED } from '#test/support/people/expected-routes.ts'
import { logIn, openContext } from '#test/support/browser/browser.ts'
import { createSharedSite } from '#test/support/browser/shared.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: who may only look')
const shared = createSharedSite(test)

const THEIRS = 'a password of their own'

/** Box 1 has an image and a disk, and lea may look. */
test.before(async () => {
  const { browser, site } = shared
  await site.boxes.boot(1)
  await site.boxes.tellDisks(1)
  await using administrator = await openContext(browser, site)
  const page = await administrator.context.newPage()
  await logIn(page)
  await page.goto('/ui/people/add')
  await page.getByLabel('Name').fill('lea')
  await page.getByLabel('Role').selectOption('look')
  await page.getByLabel('Password').fill(THEIRS)
  await page.getByRole('button', { name: 'Add person' }).click()
  await page.getByText('lea was added.').waitFor()
  await page.goto(`/ui/machines/${macOf(1)}`)
  await page.getByRole('radio', { name: /^debian-13-generic-amd64/ }).check()
  await page.getByRole('radio', { name: /^Samsung SSD 980/ }).check()
  await page.getByRole('radio', { name: /^Boot its disk/ }).check()
  await page.getByRole('button', { name: 'Save' }).last().click()
  await page.getByText('Saved').first().waitFor()
})

async function openAsLea() {
  const opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await page.goto('/ui/login')
  await page.getByLabel('Name').fill('lea')
  await page.getByLabel('Password').fill(THEIRS)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.waitForURL('**/ui/dashboard')
  return { page, [Symbol.asyncDispose]: () => opened[Symbol.asyncDispose]() }
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
  await using lea = await openAsLea()
  const { page } = lea
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
  await using lea = await openAsLea()
  const { page } = lea
  await page.goto(`/ui/machines/${macOf(1)}`)
  const card = page.locator('#intent')
  const text = await card.innerText()
  for (const part of ['debian-13-generic-amd64', serialOf(1), 'Boot its disk']) {
    assert.ok(text.includes(part), `${part} in ${text}`)
  }
  assert.is(await card.locator('input').count(), 0)
})

test.run()
