/** The page that fills a stick, in Chromium, with the browser's private file system in place of a stick. */
import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { BrowserContext, Page } from 'playwright-core'

interface StickSite extends AsyncDisposable {
  /** On the loopback address, which browsers trust as they trust HTTPS. */
  readonly url: string
  readonly port: number
}

/** What the page has in place of the picker: a folder of the private file system. */
const PICKER = `
window.showDirectoryPicker = async () => {
  const root = await navigator.storage.getDirectory()
  return await root.getDirectoryHandle('stick', { create: true })
}`

/**
 * Serves the page, an empty one at `/empty`, whose scripts may connect, and takes files at
 * `/save/…` into `folder`.
 */
export async function serveStickPage(page: string, folder: string): Promise<StickSite> {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '/')
    if (path.startsWith('/save/')) {
      const place = join(folder, path.slice('/save/'.length))
      mkdir(dirname(place), { recursive: true })
        .then(() => pipeline(request, createWriteStream(place)))
        .then(
          () => response.end('saved'),
          () => response.writeHead(500).end(),
        )
      return
    }
    response.setHeader('content-type', 'text/html')
    if (path === '/') createReadStream(page).pipe(response)
    else response.end('<!doctype html><link rel="icon" href="data:,">')
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/`,
    port,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => {
        server.close(resolve)
      })
    },
  }
}

/** Opens the page with a folder of the private file system behind its picker. */
export async function openStickPage(context: BrowserContext, site: StickSite): Promise<Page> {
  const page = await context.newPage()
  await page.addInitScript(PICKER)
  await page.goto(site.url)
  return page
}

/** Copies what lies on the stand-in of a stick to the folder of the site; resolves to its paths. */
export async function saveStick(
  context: BrowserContext,
  site: StickSite,
): Promise<readonly string[]> {
  const page = await context.newPage()
  await page.goto(`${site.url}empty`)
  const paths: readonly string[] = await page.evaluate(`(async () => {
    const saved = []
    async function save(folder, at) {
      for await (const [name, handle] of folder.entries()) {
        if (handle.kind === 'directory') await save(handle, at + name + '/')
        else {
          const body = await handle.getFile()
          const answer = await fetch('/save/' + encodeURIComponent(at + name), { method: 'POST', body })
          if (!answer.ok) throw new Error(at + name)
          saved.push(at + name)
        }
      }
    }
    const root = await navigator.storage.getDirectory()
    await save(await root.getDirectoryHandle('stick', { create: true }), '')
    return saved.sort()
  })()`)
  await page.close()
  return paths
}
