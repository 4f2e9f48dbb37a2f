/** A fresh install as in production: a server and a cache of their own, without image or live system. */
import { createSocket } from 'node:dgram'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { createServerHome } from '../server/flasher-web.ts'
import { findPort } from '../http/ports.ts'
import { startCache, type CacheProcess } from '../server/image-cache.ts'
import { logIn, PASSWORD, type ContextOptions } from './browser.ts'

export type FreshLab = Awaited<ReturnType<typeof startFreshLab>>

const TOKEN = 'what-server-and-cache-share'

/** `more`: settings of the server. */
export async function startFreshLab(more: Readonly<Record<string, string>> = {}) {
  const stack = new AsyncDisposableStack()
  try {
    const home = stack.use(await createServerHome())
    const env = {
      FLASHER_ADMIN_PASSWORD: PASSWORD,
      FLASHER_CACHE_PORT: String(await findPort()),
      FLASHER_CACHE_TOKEN: TOKEN,
    }
    let cache: CacheProcess = await startCache(home.at('state'), env)
    stack.defer(() => cache[Symbol.asyncDispose]())
    const server = stack.use(
      await home.start([], {
        FLASHER_ADMIN_PASSWORD: PASSWORD,
        FLASHER_WITHCACHE_URL: cache.base,
        FLASHER_WITHCACHE_TOKEN: TOKEN,
        ...more,
      }),
    )
    return {
      url: server.url,
      cacheUrl: cache.base,
      folder: home.at('state/cache'),
      bootFolder: home.at('state/boot'),
      /** Ends the cache as the kernel does when memory runs out. */
      killCache: () => cache.kill('SIGKILL'),
      async restartCache() {
        cache = await startCache(home.at('state'), env)
      },
      at: (name: string) => join(home.dir, name),
      [Symbol.asyncDispose]: () => stack.disposeAsync(),
    }
  } catch (error) {
    await stack.disposeAsync()
    throw error
  }
}

/** Answers every request with the first bytes of a file, from a loopback address that nobody else uses. */
export async function startTftpDaemon(address: string) {
  const socket = createSocket('udp4')
  socket.on('message', (_, from) => {
    const transfer = createSocket('udp4').unref()
    transfer.bind(0, address, () => {
      transfer.send(Buffer.from('\0\x03\0\x01MZ', 'latin1'), from.port, from.address)
    })
  })
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject).bind(69, address, resolve)
  })
  return {
    async [Symbol.asyncDispose]() {
      await new Promise<void>((resolve) => {
        socket.close(resolve)
      })
    },
  }
}

/** Two origins: the server and its cache. A page must ask no other. */
export async function openLab(browser: Browser, lab: FreshLab, options: ContextOptions = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    baseURL: lab.url,
    ...options,
  })
  context.setDefaultTimeout(60_000)
  const complaints: string[] = []
  context.on('request', (request) => {
    const { origin } = new URL(request.url())
    if (origin !== lab.url && origin !== lab.cacheUrl) complaints.push(`asks ${request.url()}`)
  })
  context.on('weberror', (error) => complaints.push(`script: ${error.error().message}`))
  const page = await context.newPage()
  await logIn(page)
  return { context, page, complaints, [Symbol.asyncDispose]: () => context.close() }
}

/** Opens the pages of the cache, which are on another port of the same host. */
export async function openImages(page: Page, lab: FreshLab): Promise<void> {
  await page.goto('/ui/cache')
  await page.waitForURL(`${lab.cacheUrl}/ui/dashboard`)
}
