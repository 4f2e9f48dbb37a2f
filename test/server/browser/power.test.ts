/** The power of machines as people use it: a BMC that is set, asked, doubted and forgotten; one machine and many. */
import { setTimeout as wait } from 'node:timers/promises'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { Locator, Page } from 'playwright-core'
import { addAxe, checkWidth, listViolations } from '#test/support/browser/axe.ts'
import {
  chooseAction,
  logIn,
  openContext,
  startSite,
  type ContextOptions,
} from '#test/support/browser/browser.ts'
import { createSharedBrowser } from '#test/support/browser/shared.ts'
import { makeAuthority } from '#test/support/http/authority.ts'
import { makeFolder } from '#test/support/server/image-cache.ts'
import { startRedfish, BMC_USER } from '#test/support/power/redfish-fake.ts'
import { macOf, serialOf } from '#test/support/server/web-machines.ts'

const MACHINE = `/ui/machines/${macOf(1)}`

const test = suite('the browser: power')
const shared = createSharedBrowser(test)

/** Two machines, each with a BMC that nobody set yet, and a page of one who is logged in. */
async function openLab(options: ContextOptions = {}) {
  const stack = new AsyncDisposableStack()
  const { certificate } = await makeAuthority(stack.use(await makeFolder()).path)
  const [one, two] = [stack.use(await startRedfish(certificate)), stack.use(await startRedfish())]
  const site = stack.use(
    await startSite({ FLASHER_POWER_NETWORKS: '127.0.0.0/8', FLASHER_POWER_STAGGER: '0' }),
  )
  for (const box of [1, 2]) {
    await site.boxes.boot(box)
    await site.boxes.tellDisks(box)
  }
  const { context, complaints } = stack.use(await openContext(shared.browser, site, options))
  if (options.javaScriptEnabled !== false) await addAxe(context)
  const page = await context.newPage()
  await logIn(page)
  const setOther = async (outlet: string | null) => {
    const data = { way: 'redfish', address: two.address, outlet, credential: BMC_USER }
    const answer = await page.request.put(`/machines/${macOf(2)}/power`, { data })
    assert.is(answer.status(), 200)
  }
  return {
    site,
    one,
    two,
    page,
    card: page.locator('#power'),
    complaints,
    setOther,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** Fills the form of the BMC and saves it. */
async function setBmc(
  card: Locator,
  address: string,
  more: Readonly<Record<string, string>> = {},
  button = 'Save',
) {
  const form = card.locator('form', { has: card.page().getByLabel('Address') })
  if (!(await form.isVisible())) await card.getByText(/^(?:Set|Change) its BMC$/).click()
  const fields = { Address: address, User: BMC_USER.user, Password: BMC_USER.password, ...more }
  if ('Shared outlet' in fields) await form.getByText('Advanced', { exact: true }).click()
  for (const [label, text] of Object.entries(fields)) {
    await form.getByLabel(label, { exact: true }).fill(text)
  }
  await form.getByRole('button', { name: button }).click()
}

async function check(page: Page, name: string) {
  assert.equal(await listViolations(page), [], name)
  const size = page.viewportSize() ?? { width: 1280, height: 800 }
  for (const width of [1280, 390]) {
    await page.setViewportSize({ width, height: 900 })
    await checkWidth(page, `${name} at ${width}`)
  }
  await page.setViewportSize(size)
}

test('a BMC is set, its certificate pinned, and the machine turned on, off and booted from the network', async () => {
  await using lab = await openLab({ reducedMotion: 'reduce' })
  const { page, card, one } = lab
  await lab.setOther('pdu-1/7')
  await page.goto(MACHINE)
  await setBmc(card, 'not an address')
  await card.getByText('Must be a host name or IP address').waitFor()
  assert.is(await card.getByLabel('Password').inputValue(), '')
  await check(page, 'refused')
  await setBmc(card, '192.0.2.1', {}, 'Test')
  await card.getByText('The test failed: 192.0.2.1 is outside').waitFor()
  await setBmc(card, one.address, { 'Shared outlet': 'pdu-1/7' }, 'Test')
  await card
    .getByText(
      /^It answers: off\. Model: Contoso\. Firmware: 2\.5\. Certificate: [0-9a-f]{11}…[0-9a-f]{11}\. It can turn on, turn off, boot from the network, boot over HTTP, boot a virtual CD\. Nothing is saved yet\.$/,
    )
    .waitFor()
  assert.not.match(await page.content(), BMC_USER.password)
  assert.equal(
    await page.request.get(`/machines/${macOf(1)}/power`).then((got) => got.status()),
    404,
  )
  await check(page, 'tested')
  // What was typed for the test is saved, the password too.
  await card.getByRole('button', { name: 'Save' }).click()
  // Nobody loads the page again.
  await card.getByText(/^Off, seen/).waitFor()
  await card.getByText('only this one is accepted').waitFor()
  assert.match(
    (await card.locator('code').nth(1).textContent()) ?? '',
    /^[0-9a-f]{11}…[0-9a-f]{11}$/,
  )
  assert.not.match(await page.content(), BMC_USER.password)
  await check(page, 'off')

  await card.getByRole('button', { name: 'Turn on from network' }).click()
  await page.getByText('Requested. The result appears here').waitFor()
  await card.getByText(/^On, seen/).waitFor()
  assert.is(one.state.isOn, true)
  assert.is(one.state.boot['BootSourceOverrideTarget'], 'Pxe')
  await page.locator('#facts').getByText('Was turned on').waitFor()

  await card.getByRole('button', { name: 'Turn off…' }).click()
  const question = page.getByRole('dialog')
  await question.getByText('share the outlet').waitFor()
  await question.getByRole('link', { name: macOf(2) }).waitFor()
  await check(page, 'question')
  await question.getByRole('button', { name: 'Turn off' }).click()
  await card.getByText(/^Off, seen/).waitFor()
  assert.is(one.state.isOn, false)

  await card.getByRole('button', { name: 'Forget certificate' }).click()
  await page.getByText('The next one from the BMC will be trusted').waitFor()
  await card.getByText('No certificate yet').waitFor()
  await card.getByRole('button', { name: 'Forget BMC…' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Forget BMC' }).click()
  await card.getByText('Connect a BMC').waitFor()
  assert.equal(lab.complaints, [])
})

test('a disk that is being written is asked about twice, and a failure says what to do', async () => {
  await using lab = await openLab({ reducedMotion: 'reduce' })
  const { page, card, one, site } = lab
  one.state.isOn = true
  await page.goto(MACHINE)
  await setBmc(card, one.address)
  await card.getByText(/^On, seen/).waitFor()
  await site.boxes.report(1, { run: 'c0ffee00-0001', phase: 'write', mode: 'flash' })

  const question = page.getByRole('dialog')
  await card.getByRole('button', { name: 'Restart from network…' }).click()
  await question.getByText('A disk is being written').waitFor()
  await question.getByRole('button', { name: 'Continue…' }).click()
  await question.getByText('Cut the power while a disk is being written?').waitFor()
  await check(page, 'twice')
  assert.equal(
    one.asked.filter((each) => each.includes('Reset')),
    [],
  )
  await question.getByRole('button', { name: 'Cut the power anyway' }).click()
  await page.locator('#facts').getByText('Was restarted').waitFor()

  await setBmc(card, '192.0.2.1')
  await card.getByText('is outside the networks of your BMCs').waitFor()
  await check(page, 'failed')
  // A password goes to no other address.
  await setBmc(card, one.address, { Password: '' })
  await card.getByText('Enter the password as well').waitFor()
  assert.equal(lab.complaints, [])
})

test('who flashes can have the machine booted at once', async () => {
  await using lab = await openLab({ reducedMotion: 'reduce' })
  const { page, card, one } = lab
  await lab.setOther('pdu-1/7')
  await page.goto(MACHINE)
  await setBmc(card, one.address, { 'Shared outlet': 'pdu-1/7' })
  await card.getByText(/^Off, seen/).waitFor()
  await page.getByRole('radio', { name: /^fedora-43-server/ }).check()
  await page.getByRole('radio', { name: /^Samsung SSD 980/ }).check()
  await page.getByRole('button', { name: 'Review and arm…' }).click()
  const question = page.getByRole('dialog')
  await question.getByRole('textbox', { name: /Type the last 4/ }).fill(serialOf(1).slice(-4))
  await question.getByLabel('Turn it on, or restart it, from the network now').check()
  await question.getByText('At the same outlet').waitFor()
  await check(page, 'flash')
  await question.getByRole('button', { name: 'Arm this machine' }).click()
  await card.getByText(/^On, seen/).waitFor()
  assert.is(one.state.isOn, true)
  assert.is((await lab.site.boxes.plan(1)).mode, 'flash')
  assert.equal(lab.complaints, [])
})

test('many are previewed, counted and turned on and off, one after the other', async () => {
  await using lab = await openLab({ reducedMotion: 'reduce' })
  const { page, two, setOther } = lab
  await setOther(null)
  await page.goto('/ui/machines')
  const ask = async (choice: string, isEven = false) => {
    await page.getByLabel('Select all on this page').check()
    await chooseAction(page, 'Power…')
    await question.getByRole('radio', { name: choice }).check()
    if (isEven) await question.getByLabel('Also cut the power of machines').check()
    await question.getByRole('button', { name: 'Preview' }).click()
  }
  const question = page.getByRole('dialog')
  await ask('Turn on from network Machines')
  await question.getByText('Turn on from network: 1 machine (1 skipped: no BMC').waitFor()
  await check(page, 'bulk')
  await question.getByRole('button', { name: 'Turn on from network (1)' }).click()
  await question.getByText('Each result is an event').waitFor()
  await waitFor(() => two.state.isOn)

  const run = { run: 'c0ffee00-0002', mode: 'flash' } as const
  await lab.site.boxes.report(2, { ...run, phase: 'write' })
  await page.goto('/ui/machines')
  await ask('Turn off Running systems', true)
  await question.getByRole('button', { name: 'Turn off (1)' }).waitFor()
  await question.getByText(`A disk is being written: ${macOf(2)}`).waitFor()
  await lab.site.boxes.report(2, { ...run, phase: 'failed' })

  await page.goto('/ui/machines')
  await ask('Turn off Running systems')
  await question.getByRole('textbox', { name: /Type 1/ }).fill('2')
  await question.getByRole('button', { name: 'Turn off (1)' }).click()
  await question.getByText('Type 1 to continue').waitFor()
  await question.getByRole('textbox', { name: /Type 1/ }).fill('1')
  await question.getByRole('button', { name: 'Turn off (1)' }).click()
  await waitFor(() => !two.state.isOn)
  await question.getByRole('link', { name: 'Events' }).click()
  await page.waitForURL('**/ui/events**')
  const event = page.getByText('was turned off').first()
  for (let tries = 0; tries < 100 && (await event.count()) === 0; tries += 1) {
    await wait(100)
    await page.reload()
  }
  await event.waitFor()
  assert.equal(lab.complaints, [])
})

async function waitFor(isSo: () => boolean) {
  for (let tries = 0; tries < 300 && !isSo(); tries += 1) await wait(100)
  assert.ok(isSo())
}

test('everything works without scripts', async () => {
  await using lab = await openLab({ javaScriptEnabled: false })
  const { page, card, one } = lab
  await page.goto(MACHINE)
  await setBmc(card, one.address)
  const see = async (text: RegExp) => {
    for (let tries = 0; tries < 100 && (await card.getByText(text).count()) === 0; tries += 1) {
      await wait(100)
      await page.goto(MACHINE)
    }
    await card.getByText(text).waitFor()
  }
  await see(/^Off, seen/)
  await card.getByRole('button', { name: 'Turn on', exact: true }).click()
  await page.getByText('Requested.').waitFor()
  await see(/^On, seen/)
  await card.getByRole('button', { name: 'Turn off…' }).click()
  await page.getByRole('button', { name: 'Turn off', exact: true }).click()
  await see(/^Off, seen/)
  assert.is(one.state.isOn, false)
})

test('a server without networks for power shows the field for them, and nothing else of it', async () => {
  await using site = await startSite()
  await site.boxes.boot(1)
  await using opened = await openContext(shared.browser, site)
  const page = await opened.context.newPage()
  await logIn(page)
  await page.goto(MACHINE)
  await page.locator('#facts').waitFor()
  assert.is(await page.locator('#power').getByRole('button').count(), 0, 'it is folded')
  await page.getByText('Off: allow the network of your BMCs').click()
  await page.locator('#power').getByRole('button', { name: 'Allow' }).waitFor()
  await page.goto('/ui/machines')
  assert.is(await page.locator('option[value=power]').count(), 0)
})

test.run()
