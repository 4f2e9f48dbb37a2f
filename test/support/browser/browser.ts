/**
 * A real Chromium on the real server program: pages that must stay within their own walls. Debian builds it
 * without windows as well, which takes half of the processor time.
 */
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'
import { mkdir, utimes, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServerHome } from '../server/flasher-web.ts'
import { createBoxes, IMAGES } from '../server/web-machines.ts'

export const PASSWORD = 'a password for tests'

export const openBrowser = (): Promise<Browser> =>
  chromium.launch({
    executablePath: '/usr/bin/chromium-headless-shell',
    args: ['--no-sandbox', '--disable-lcd-text'],
  })

type CatalogImages = readonly { readonly [field: string]: unknown }[]

/** The program with a catalog and a live system, in a folder of its own. */
export async function startSite(
  more: Readonly<Record<string, string>> = {},
  images: CatalogImages = IMAGES,
) {
  const stack = new AsyncDisposableStack()
  try {
    const home = stack.use(await createServerHome())
    const cache = stack.use(await serveCatalog(images))
    await putLiveSystem(home.at('state/boot'))
    const env = {
      FLASHER_ADMIN_PASSWORD: PASSWORD,
      FLASHER_WITHCACHE_URL: cache.url,
      ...more,
    }
    const server = stack.use(await home.start([], env))
    const boxes = createBoxes(server.url)
    await boxes.waitForImages(images.length)
    return {
      home,
      url: server.url,
      boxes,
      stop: () => server[Symbol.asyncDispose](),
      start: () => home.start([], { ...env, FLASHER_SERVER_PORT: new URL(server.url).port }),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    }
  } catch (error) {
    await stack.disposeAsync()
    throw error
  }
}

export type WebSite = Awaited<ReturnType<typeof startSite>>

const SET = 'flasher-netboot-pc-x86_64-v1.4.0'

/** Files that nobody boots; old enough to count as copied whole. */
async function putLiveSystem(dir: string): Promise<void> {
  await mkdir(dir, { recursive: true })
  const before = new Date(Date.now() - 3_600_000)
  for (const [part, bytes] of [
    ['vmlinuz', 1_200_000],
    ['initrd', 3_400_000],
    ['squashfs', 9_000_000],
  ] as const) {
    await writeFile(join(dir, `${SET}.${part}`), Buffer.alloc(bytes))
    await utimes(join(dir, `${SET}.${part}`), before, before)
  }
}

/** What the server's catalog client asks for. */
async function serveCatalog(images: CatalogImages) {
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json')
    response.statusCode = request.url === '/catalog' ? 200 : 404
    response.end(JSON.stringify({ entries: images, last_error: null }))
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address: AddressInfo | string | null = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}

export type ContextOptions = Parameters<Browser['newContext']>[0]

/** A context that records whatever a page must not do. */
export async function openContext(
  browser: Browser,
  site: Pick<WebSite, 'url'>,
  options: ContextOptions = {},
) {
  const context: BrowserContext = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    baseURL: site.url,
    ...options,
  })
  // Long enough that a loaded machine decides no test.
  context.setDefaultTimeout(30_000)
  const complaints: string[] = []
  context.on('request', (request) => {
    const { origin } = new URL(request.url())
    if (origin !== site.url && !request.url().startsWith('data:')) {
      complaints.push(`asks elsewhere: ${request.url()}`)
    }
  })
  context.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') {
      complaints.push(`${message.type()}: ${message.text()}`)
    }
  })
  context.on('weberror', (error) => complaints.push(`script: ${error.error().message}`))
  return {
    context,
    complaints,
    [Symbol.asyncDispose]: () => context.close(),
  }
}

/** Chooses an action on the selected machines from the menu below the list. */
export async function chooseAction(page: Page, name: string): Promise<void> {
  const bar = page.locator('.bulk')
  await bar.getByText('Actions', { exact: true }).click()
  await bar.getByRole('button', { name, exact: true }).click()
}

/** Arms a machine that is done as it was armed before, from its page. */
export async function flashAgain(page: Page): Promise<void> {
  await page.getByText('Flash again…').click()
  await page.getByRole('button', { name: 'As before…' }).click()
}

export async function logIn(page: Page): Promise<void> {
  await page.goto('/ui/login')
  await page.getByLabel('Administrator password').fill(PASSWORD)
  await page.getByRole('button', { name: 'Log in' }).click()
  await page.waitForURL('**/ui/dashboard')
}
