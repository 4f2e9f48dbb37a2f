/** The static files of pages, ours and vendored ones: a closed list, read once, with versioned names, and their route. */
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { basename, dirname, extname, join } from 'node:path'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { chooseCoding, type Coding } from './rules/content-coding.ts'
import { z } from 'zod'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { brotliCompress, constants, createBrotliCompress, createGzip, gzip } from 'node:zlib'
import { answer } from './answers.ts'
import { refuse } from './faults.ts'
import type { Route } from './route.ts'

interface Asset {
  readonly bytes: Uint8Array<ArrayBuffer>
  /** Compressed at the first request, and kept. */
  encoded(coding: Coding): Promise<Uint8Array<ArrayBuffer>>
  readonly type: string
}

export type Assets = Awaited<ReturnType<typeof createAssets>>

const OURS = [
  'flasher.css',
  'flasher.js',
  'ages.js',
  'busy.js',
  'configuration.js',
  'keys.js',
  'news.js',
  'holding.js',
  'live.js',
  'live-worker.js',
  'palette.js',
  'streams.js',
  'selection.js',
  'theme.js',
  'uploads.js',
  'wall.js',
  'icon.svg',
] as const

/** Files of packages: nothing else of a package can be asked for. */
const VENDORED = {
  'htmx.org': ['dist/htmx.min.js'],
  'htmx-ext-sse': ['dist/sse.min.js'],
  idiomorph: ['dist/idiomorph-ext.min.js'],
  'open-props': ['open-props.min.css'],
} as const

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** Rejects where a package is not installed. */
export async function createAssets() {
  const vendored = await Promise.all(Object.entries(VENDORED).map(readPackage))
  const files = new Map<string, Asset>()
  const urls = new Map<string, string>()
  for (const { folder, name, bytes } of [...(await readOurs()), ...vendored.flat()]) {
    const type = TYPES[extname(name)] ?? 'application/octet-stream'
    files.set(`${folder}/${name}`, { bytes, type, encoded: keepEncoded(bytes) })
    urls.set(name, `/static/${folder}/${name}`)
  }
  return {
    /** Where a file of the list is served: `/static/htmx.org@2.0.11/htmx.min.js`. */
    url(name: string): string {
      const url = urls.get(name)
      if (url === undefined) throw new TypeError(`no asset is called ${name}`)
      return url
    },
    /** By the end of that address, `htmx.org@2.0.11/htmx.min.js`; null: not in the list. */
    find: (path: string): Asset | null => files.get(path) ?? null,
  }
}

function keepEncoded(bytes: Uint8Array) {
  const made = new Map<Coding, Promise<Uint8Array<ArrayBuffer>>>()
  return (coding: Coding) => {
    const kept = made.get(coding) ?? compress(bytes, coding, 'best')
    made.set(coding, kept)
    return kept
  }
}

/** Their folder is named by what is in all of them: they belong together. */
async function readOurs() {
  const base = new URL('../static/', import.meta.url)
  const bytes = await Promise.all(OURS.map((name) => readFile(new URL(name, base))))
  const digest = createHash('sha256')
  for (const each of bytes) digest.update(each)
  const folder = `flasher@${digest.digest('hex').slice(0, 12)}`
  return OURS.map((name, at) => ({ folder, name, bytes: bytes[at] ?? Buffer.alloc(0) }))
}

async function readPackage([pkg, paths]: readonly [string, readonly string[]]) {
  const manifest = findPackageJSON(pkg, import.meta.url)
  if (manifest === undefined) throw new TypeError(`the package ${pkg} is not installed`)
  const { version } = MANIFEST.parse(parseJson(await readFile(manifest, 'utf8')))
  return await Promise.all(
    paths.map(async (path) => ({
      folder: `${pkg}@${version}`,
      name: basename(path),
      bytes: await readFile(join(dirname(manifest), path)),
    })),
  )
}

const MANIFEST = z.object({ version: z.string() })

/** For what is made for one response: a page of 100 kB takes 2 ms, on a thread of its own. */
const QUICK = { br: 5, gzip: 6 } as const
const BEST = { br: 11, gzip: 9 } as const

const runBrotli = promisify(brotliCompress)
const runGzip = promisify(gzip)

/** At no compressor's defaults: brotli's takes a second for a page. */
const brotliOptions = (quality: number, sizeHint = 0) => ({
  params: {
    [constants.BROTLI_PARAM_QUALITY]: quality,
    [constants.BROTLI_PARAM_SIZE_HINT]: sizeHint,
  },
})

/** Compresses bytes in one piece; `best` takes much longer and is for what is kept. */
export const compress = (
  bytes: Uint8Array,
  coding: Coding,
  effort: 'quick' | 'best' = 'quick',
): Promise<Uint8Array<ArrayBuffer>> => {
  const level = (effort === 'best' ? BEST : QUICK)[coding]
  return coding === 'br'
    ? runBrotli(bytes, brotliOptions(level, bytes.byteLength))
    : runGzip(bytes, { level })
}

/** Compresses part by part; who stops reading ends what is compressed, too. */
export async function* compressParts(
  parts: AsyncIterable<Uint8Array>,
  coding: Coding,
): AsyncGenerator<Uint8Array> {
  const zip =
    coding === 'br'
      ? createBrotliCompress(brotliOptions(QUICK.br))
      : createGzip({ level: QUICK.gzip })
  // A failure reaches whoever reads the other end.
  pipeline(parts, zip).catch(() => {})
  yield* zip
}

const PREFIX = '/static/'

export const assetRoute = (assets: Assets): Route => ({
  method: 'GET',
  path: '/static/**',
  access: 'open',
  async handle(event) {
    const asset = assets.find(event.url.pathname.slice(PREFIX.length))
    if (asset === null) throw refuse(404, 'Not Found')
    const { coding } = chooseCoding(event.req.headers.get('accept-encoding'))
    const headers = {
      'content-type': asset.type,
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
    }
    if (coding === null) return answer(200, headers, asset.bytes)
    return answer(200, { ...headers, 'content-encoding': coding }, await asset.encoded(coding))
  },
})
