/** The documentation as a site, made by the program that images and the npm package use, and served as the server does. */
import { mkdtempSync } from 'node:fs'
import { glob, readdir, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import axe from 'axe-core'
import { H3, toNodeHandler } from 'h3'
import type { Page } from 'playwright-core'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { $ } from 'zx'
import { configure } from '#build/document/site.ts'
import { renderResponse } from '#kit/web/answers/answers.ts'
import { docsRoute } from '#server/routes/docs-site.ts'
import { openBrowser } from '#test/support/browser/browser.ts'

const test = suite('the documentation as a site')
const folder = mkdtempSync(join(tmpdir(), 'flasher-docs-'))
const site = join(folder, 'site')
const app = new H3().get('/docs/**', async (event) =>
  renderResponse(await docsRoute(site).handle(event), event),
)
const server = createServer(toNodeHandler(app))
let origin = ''

test.before(async () => {
  const program = ['build/programs/docs-site.ts', '--docs', 'docs', '--readme', 'README.md']
  await $({ quiet: true })`${process.execPath} ${program} --out ${site}`
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port }: Pick<AddressInfo, 'port'> = Object(server.address())
  origin = `http://127.0.0.1:${port}/docs/`
})
test.after(async () => {
  server.closeAllConnections()
  server.close()
  await rm(folder, { recursive: true })
})

test('each page of the navigation is there, and none has a script or a style of its own', async () => {
  const pages = (await readdir(site)).filter((name) => name.endsWith('.html'))
  const { themeConfig } = configure({ version: '1', source: 'docs', outDir: site })
  const links = JSON.stringify(themeConfig?.sidebar).matchAll(/"link":"\/([^"]+)"/g)
  const named = [...links].map(([, page]) => `${page}.html`)
  assert.ok(named.length > 20)
  assert.equal(
    named.filter((page) => !pages.includes(page)),
    [],
  )
  for (const page of pages) {
    const html = await readFile(join(site, page), 'utf8')
    assert.not.match(html, /<script(?![^>]* src=)|<style| style="| on[a-z]+="/, page)
    assert.not.match(html, /(src|href)="(https?:)?\/\/(?!example)[^"]*\.(js|css|woff2?)"/, page)
  }
})

test('pages of the server lead to sections that are there', async () => {
  const sources = await Array.fromAsync(glob('runtime/server/**/*.ts'))
  const texts = await Promise.all(sources.map((path) => readFile(path, 'utf8')))
  const links = texts.flatMap((text) => [...text.matchAll(/learn: '([^'#]+)#?([^']*)'/g)])
  assert.ok(links.length > 10)
  for (const [, page = '', anchor = ''] of links) {
    const html = await readFile(join(site, page), 'utf8')
    if (anchor !== '') assert.match(html, ` id="${anchor}"`, `${page}#${anchor}`)
  }
})

test('what is no file of the site is not served', async () => {
  for (const path of [
    'none.html',
    '%2e%2e%2fsecret',
    '..%2f..%2fetc%2fpasswd',
    'assets',
    'assets/',
  ]) {
    assert.is((await fetch(origin + path)).status, 404, path)
  }
  const page = await fetch(origin)
  assert.match(page.headers.get('content-security-policy') ?? '', "default-src 'self'")
  assert.not.match(page.headers.get('content-security-policy') ?? '', 'unsafe')
  const absent = docsRoute(join(folder, 'none'))
  const none = new H3().get('/docs/**', (event) => absent.handle(event))
  assert.match(await (await none.request('/docs/')).text(), 'npx pnpm build:docs')
})

test('a browser shows and searches it under the policy of pages, and reads it without scripts', async () => {
  const browser = await openBrowser()
  try {
    const said: string[] = []
    const listen = (page: Page) => {
      page.on('console', (message) => void said.push(message.text()))
      page.on('requestfailed', (request) => void said.push(request.url()))
      return page
    }
    for (const width of [1280, 390]) {
      const page = listen(await browser.newPage({ viewport: { width, height: 800 } }))
      await page.goto(`${origin}people.html`, { waitUntil: 'networkidle' })
      assert.is(await page.evaluate('document.documentElement.scrollWidth'), width)
      const { violations }: axe.AxeResults = Object(await page.evaluate(`${axe.source};axe.run()`))
      assert.equal(
        violations.map(({ id, nodes }) => [id, nodes[0]?.html]),
        [],
      )
      await page.close()
    }
    const page = listen(await browser.newPage())
    await page.goto(origin, { waitUntil: 'networkidle' })
    await page.click('.VPNavBarSearch button')
    await page.fill('#localsearch-input', 'redirect')
    await page.locator('.result', { hasText: 'People' }).first().click()
    await page.waitForURL('**/people.html**')
    assert.equal(said, [])
    const plain = await browser.newPage({ javaScriptEnabled: false })
    await plain.goto(`${origin}settings.html`)
    await plain.click('nav a[href="/docs/people.html"]')
    assert.match(await plain.locator('h1').innerText(), /^People/)
  } finally {
    await browser.close()
  }
})

test.run()
