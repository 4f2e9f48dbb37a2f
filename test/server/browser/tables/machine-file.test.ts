/** Machines as CSV and back in a real browser: with and without scripts, wide and on a phone. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { checkWidth, listViolations } from '#test/support/browser/axe.ts'
import { createSiteLab } from '#test/support/browser/site-lab.ts'
import { macOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: names and labels from a file')
const lab = createSiteLab(test, async (page) => {
  for (const box of [1, 2]) {
    const data = { name: `bench ${box}`, labels: ['lab', `slot-${box}`] }
    await page.request.put(`/machines/${macOf(box)}`, { data })
  }
})

/** axe needs scripts: where a page has none, only its width is looked at. */
async function look(page: Page, hasScripts: boolean) {
  if (hasScripts) assert.equal(await listViolations(page), [])
  await checkWidth(page, page.url())
}

for (const [width, javaScriptEnabled] of [
  [1280, true],
  [390, true],
  [390, false],
] as const) {
  test(`there and back at ${width} pixels, ${javaScriptEnabled ? 'with' : 'without'} scripts`, () =>
    lab.withPage(
      async (page) => {
        await page.goto('/ui/machines?q=bench')
        const downloading = page.waitForEvent('download')
        await page.getByText('More', { exact: true }).click()
        await page.getByRole('link', { name: 'Download as CSV' }).click()
        const table = await readFile(await (await downloading).path(), 'utf8')
        assert.match(table, new RegExp(`${macOf(1)},bench 1,[^\\n]*,,1,`))
        await page.goto('/ui/machines')
        await page.getByText('More', { exact: true }).click()
        await page.getByRole('link', { name: 'Import CSV' }).click()
        await look(page, javaScriptEnabled)
        const changed = table
          .replace(/bench 1,(?:lab|".*?"),/, `bench 1,"lab, ${width}-${javaScriptEnabled}",`)
          .replace(macOf(2), 'x')
        const file = { name: 'machines.csv', mimeType: 'text/csv', buffer: Buffer.from(changed) }
        await page.getByLabel('File').setInputFiles(file)
        await page.getByRole('button', { name: 'Preview' }).click()
        await page.getByText('1 line will change a machine.').waitFor()
        await page.getByText('"x" is not a MAC address').waitFor()
        await look(page, javaScriptEnabled)
        await page.getByRole('button', { name: 'Change 1 machine' }).click()
        await page.getByText('1 machine was changed.').waitFor()
        await look(page, javaScriptEnabled)
        await page.getByRole('link', { name: 'This batch, with Undo' }).click()
        await page.getByRole('button', { name: /Undo/ }).waitFor()

        await page.goto('/ui/machines/file')
        await page.getByLabel('Or paste the table').fill('name\nx')
        await page.getByRole('button', { name: 'Preview' }).click()
        await page.getByText('The first line must name the column "mac"').waitFor()
        await look(page, javaScriptEnabled)
      },
      { javaScriptEnabled, viewport: { width, height: 800 } },
    ))
}

test.run()
