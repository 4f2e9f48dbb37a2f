/** The cache's own pages in a browser: the keys of the server's, the search of images, and errors as pages. */
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createSharedBrowser } from '#test/support/browser/shared.ts'
import { makeFolder, PASSWORD, serveCache } from '#test/support/server/image-cache.ts'

const test = suite('cache: keys and errors')
const shared = createSharedBrowser(test)

async function open(base: string) {
  const context = await shared.browser.newContext()
  const page = await context.newPage()
  await page.goto(`${base}/ui/login`)
  await page.getByRole('textbox').fill(PASSWORD)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.waitForURL('**/ui/dashboard')
  return { page, [Symbol.asyncDispose]: () => context.close() }
}

test('the keys do on the pages of the cache what they do on those of the server', async () => {
  await using folder = await makeFolder()
  const serverUrl = 'http://flasher.invalid'
  await using served = await serveCache(folder.path, { serverUrl })
  await served.cache.add({ src: 'https://images.invalid/debian-13.img.zst' })
  await using opened = await open(served.base)
  const { page } = opened
  await page.keyboard.press('/')
  const search = page.locator('main #q')
  assert.is(await search.evaluate((field) => field === document.activeElement), true)
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k')
  // The search of everything is the server's.
  const everything = page.locator('#find')
  assert.is(await everything.evaluate((field) => field === document.activeElement), true)
  await everything.blur()
  await page.keyboard.press('?')
  await page.getByRole('dialog').getByText('Go to Machines').waitFor()
  await page.keyboard.press('Escape')
  await page.goto(`${served.base}/ui/keys`)
  await page.keyboard.press('g')
  await page.keyboard.press('i')
  await page.waitForURL('**/ui/dashboard')
  const asked = page.waitForRequest((request) => request.url().startsWith(serverUrl))
  await page.keyboard.press('g')
  await page.keyboard.press('m')
  assert.is((await asked).url(), `${serverUrl}/ui/cache/back?to=%2Fui%2Fmachines`)
})

test('keys are switched off on the page that lists them, without a script', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  await using opened = await open(served.base)
  const { page } = opened
  await page.goto(`${served.base}/ui/keys`)
  await page.getByRole('button', { name: 'Switch' }).click()
  await page.waitForURL('**/ui/dashboard')
  assert.is(await page.locator('body[data-keys]').count(), 0)
})

test('an error that a browser meets is a page in words, with the navigation', async () => {
  await using folder = await makeFolder()
  await using served = await serveCache(folder.path)
  await using opened = await open(served.base)
  const { page } = opened
  for (const path of ['/ui/nothing', '/nothing', '/ui/remove?name=none', '/ui/add']) {
    const answer = await page.goto(`${served.base}${path}`)
    assert.is(answer?.status(), path === '/ui/add' ? 405 : 404, path)
    const title = path === '/ui/add' ? 'Not possible here' : 'Not found'
    await page.getByRole('heading', { name: title, level: 1 }).waitFor()
    await page.getByRole('navigation').getByRole('link', { name: 'Images' }).waitFor()
    await page.getByRole('link', { name: 'Go to Images' }).waitFor()
  }
  const cookies = await page.context().cookies()
  const cookie = cookies.map(({ name, value }) => `${name}=${value}`).join('; ')
  const headers = { cookie, accept: 'text/html' }
  const large = await fetch(`${served.base}/ui/add`, {
    method: 'POST',
    headers: { ...headers, referer: `${served.base}/ui/dashboard` },
    body: new URLSearchParams({ src: 'x'.repeat(2 ** 20) }),
  })
  assert.is(large.status, 413)
  const text = await large.text()
  assert.match(text, '<h1>Too large</h1>')
  assert.match(text, /href="\/ui\/dashboard"\s*>Back to the form</)
  const foreign = await fetch(`${served.base}/ui/add`, {
    method: 'POST',
    headers: { ...headers, origin: 'http://evil.example', referer: 'http://evil.example/ui/x' },
    body: new URLSearchParams({ src: 'x' }),
  })
  assert.is(foreign.status, 403)
  const refused = await foreign.text()
  assert.match(refused, /<h1[^>]*>Not allowed</)
  assert.not.match(refused, 'Back to the form')
  const program = await fetch(`${served.base}/nothing`)
  assert.match(program.headers.get('content-type') ?? '', 'json')
})

test.run()
