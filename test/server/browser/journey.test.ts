import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { chooseAction, logIn, openContext } from '#test/support/browser/browser.ts'
import { createSharedSite } from '#test/support/browser/shared.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const test = suite('the browser: from an unknown box to an armed one')
const shared = createSharedSite(test)

test('a wrong password is refused, the right one leads to the page that was asked for', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await page.goto('/ui/machines?q=rack-1')
  assert.match(page.url(), /\/ui\/login\?next=/)
  await page.getByLabel('Administrator password').fill('no such password')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.getByText('Wrong password.').waitFor()
  await page.getByLabel('Administrator password').fill('a password for tests')
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.waitForURL('**/ui/machines?q=rack-1')
})

test('a box appears, gets image and disk, is armed by its serial, and its row follows', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const { boxes } = shared.site
  const page = await opened.context.newPage()
  await logIn(page)
  await page.goto('/ui/machines')
  await page.getByText('No machines yet').waitFor()
  // News of the first machine replaces nothing that this page does not have.
  assert.is(await page.locator('[hx-select-oob]').count(), 0)

  // It appears by itself.
  await boxes.boot(1)
  const row = page.locator(`#m-${macOf(1).replaceAll(':', '-')}`)
  await row.getByText('discovered').waitFor()
  assert.is(await page.getByText('No machines yet').isVisible(), false)
  await boxes.tellDisks(1)

  await row.getByRole('link').click()
  await page.getByRole('radio', { name: /^debian-13-generic-amd64/ }).check()
  assert.is(await page.getByRole('radio', { name: /^Flash once/ }).isChecked(), false)
  await page.getByRole('radio', { name: /^Samsung SSD 980/ }).check()
  assert.is(await page.getByRole('radio', { name: /^Flash once/ }).isChecked(), true)
  await page.getByLabel('Labels').fill('rack-1, slot-01')
  await page.getByRole('button', { name: 'Review and arm…' }).click()

  // The question names both sides, and does not go on with anything else.
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Samsung SSD 980 500GB').waitFor()
  assert.match(
    await dialog.innerText(),
    /debian-13-generic-amd64\.img\.zst[\s\S]*412 MB[\s\S]*S5GXNX0T100001[\s\S]*500 GB, NVMe/,
  )
  const typed = dialog.getByRole('textbox')
  assert.ok(await typed.evaluate((field) => field === document.activeElement))
  await typed.fill('1234')
  await dialog.getByRole('button', { name: /^Arm/ }).click()
  await dialog.getByText('These are not the last characters').waitFor()
  await page.getByRole('textbox', { name: /Type the last 4/ }).fill(serialOf(1).slice(-4))
  await page.getByRole('button', { name: /^Arm/ }).click()
  await page.getByText('Armed. Boot the machine').waitFor()
  const plan = await boxes.plan(1)
  assert.is(plan.mode, 'flash')
  assert.is(plan.target_disk_serial, serialOf(1))

  // The row follows what the machine reports.
  await page.goto('/ui/machines')
  await row.getByText('slot-01').waitFor()
  await boxes.done(1)
  await row.getByText('done').waitFor()
  await boxes.fail(1, 'too late to count')
  assert.equal(opened.complaints, [])
})

test('a mode that was chosen by hand stays, and only what erases a disk is called armed', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await shared.site.boxes.boot(22)
  await shared.site.boxes.tellDisks(22)
  await logIn(page)
  await page.goto(`/ui/machines/${macOf(22)}`)
  await page.getByRole('radio', { name: /^Boot its disk/ }).check()
  await page.getByRole('radio', { name: /^debian-13-generic-amd64/ }).check()
  await page.getByRole('radio', { name: /^Samsung SSD 980/ }).check()
  assert.is(await page.getByRole('radio', { name: /^Boot its disk/ }).isChecked(), true)
  assert.is(await page.getByRole('button', { name: /arm/ }).count(), 0)
  await page.getByRole('button', { name: 'Save' }).last().click()
  await page.getByText('Saved, not armed. On network boot: Boot its disk.').waitFor()
  assert.is(await page.locator('#now').getAttribute('data-state'), 'ready')
  assert.equal(opened.complaints, [])
})

test('what was typed and refused is still there, with the reason', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  await shared.site.boxes.boot(2)
  await shared.site.boxes.tellDisks(2)
  const page = await opened.context.newPage()
  await logIn(page)
  await page.goto(`/ui/machines/${macOf(2)}`)
  await page.getByText('Other', { exact: true }).click()
  await page.getByRole('radio', { name: /^Flash always/ }).check()
  await page.getByLabel('Labels').fill('shelf 9')
  await page.getByRole('button', { name: 'Save' }).first().click()
  await page.getByText('Select the disk to flash.').first().waitFor()
  assert.is(await page.getByLabel('Labels').inputValue(), 'shelf 9')
  assert.is(await page.getByRole('radio', { name: /^Flash always/ }).isChecked(), true)
})

test('a disk and an image that went away stay picked, and say so', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await logIn(page)
  await shared.site.boxes.boot(3)
  await page.request.put(`/machines/${macOf(3)}`, {
    data: {
      boot_mode: 'flasher-flash-once',
      bty_image_ref: 'ab'.repeat(32),
      target_disk_serial: 'GONE-1',
    },
  })
  await shared.site.boxes.tellDisks(3)
  await page.goto(`/ui/machines/${macOf(3)}`)
  await page.getByText('(gone)').first().waitFor()
  await page.getByText('Edit name and labels').click()
  await page.getByLabel('Labels').fill('kept')
  await page.getByRole('button', { name: 'Save' }).first().click()
  await page.getByText('Saved.').waitFor()
  const machine = await (await page.request.get(`/machines/${macOf(3)}`)).json()
  assert.equal(
    [machine.labels, machine.bty_image_ref, machine.target_disk_serial],
    [['kept'], 'ab'.repeat(32), 'GONE-1'],
  )
})

test('many at once: what would be done, who is left out and why, and the count to type', async () => {
  await using opened = await openContext(shared.browser, shared.site)
  const page = await opened.context.newPage()
  await logIn(page)
  const [{ ref }] = await (await page.request.get('/images')).json()
  for (const box of [11, 12, 13]) {
    await shared.site.boxes.boot(box)
    await shared.site.boxes.tellDisks(box)
    await page.request.put(`/machines/${macOf(box)}`, {
      data: {
        labels: [`many-${box}`],
        bty_image_ref: ref,
        boot_mode: 'flasher-flash-once',
        target_disk_serial: box === 13 ? null : serialOf(box),
      },
    })
    await shared.site.boxes.done(box)
  }
  await page.goto('/ui/machines?q=many')
  await page.getByLabel('Select all on this page').check()
  await page.getByText('3 selected').waitFor()
  const dialog = page.getByRole('dialog')
  let sent = 0
  page.on('request', (request) => {
    if (request.url().endsWith('/ui/machines/bulk')) sent += 1
  })
  // Enter in the list chooses no action.
  await page.getByLabel('Select all on this page').press('Enter')
  await chooseAction(page, 'Arm…')
  await dialog.getByText('Arm 2 machines (1 skipped: no target disk selected)').waitFor()
  await dialog.getByRole('textbox').fill('2')
  await dialog.getByRole('button', { name: 'Arm (2)' }).click()
  await dialog.getByText('Armed 2 machines (1 skipped').waitFor()
  assert.is(sent, 2)
  await dialog.getByText('Disks that will be erased (2)').waitFor()
  assert.is(await dialog.getByText('Done.').count(), 0)
  await dialog.getByRole('link', { name: 'Back to machines' }).click()
  await page.waitForURL('**/ui/machines?q=many')
  assert.equal(opened.complaints, [])
})

test.run()
