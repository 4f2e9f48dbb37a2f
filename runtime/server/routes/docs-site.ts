/** GET /docs/: the documentation as a site, open to all. `/docs/api` is a page of its own. */
import type { H3Event } from 'h3'
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { systemCodeOf } from '#kit/foundation/fault.ts'
import { openServed } from '#kit/host/served-files.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { answerFile } from '#kit/web/answers/file-answer.ts'
import type { Route } from '#kit/web/answers/route.ts'

export const DOCS_PATH = '/docs/'
/** Where `build:docs` makes it in a checkout, and where packages and images have it. */
const FOLDER = fileURLToPath(new URL('../../../dist/docs', import.meta.url))
const ABSENT =
  'this installation has no documentation; in a checkout, build it with `npx pnpm build:docs`'

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
}
const TEXT = 'text/plain; charset=utf-8'
/** How long a listing is good for names that it lacks, in milliseconds. */
const LIST_MS = 5000
/** The names of these have a digest of what they hold. */
const KEPT = 'public, max-age=31536000, immutable'

type FileRoute = Route & { handle(event: H3Event): Promise<Answer> }

export function docsRoute(folder: string = FOLDER): FileRoute {
  let listed: ReadonlySet<string> | null = null
  let listedAt = -Infinity
  /** It may be made anew while the server runs. */
  async function list(name: string): Promise<ReadonlySet<string> | null> {
    if (listed?.has(name) === true || performance.now() - listedAt < LIST_MS) return listed
    listedAt = performance.now()
    return (listed = await listFiles(folder))
  }
  return {
    method: 'GET',
    path: '/docs/**',
    access: 'open',
    async handle(event: H3Event) {
      const name = event.url.pathname.slice(DOCS_PATH.length) || 'index.html'
      const files = await list(name)
      if (files === null) throw refuse(404, ABSENT)
      const place = path.join(folder, name)
      const file = files.has(name)
        ? await openServed(path.dirname(place), path.basename(place))
        : null
      if (file === null) throw refuse(404, 'Not Found')
      const headers = {
        'content-type': TYPES[path.extname(name)] ?? TEXT,
        'content-disposition': 'inline',
        'cache-control': name.startsWith('assets/') ? KEPT : 'no-cache',
      }
      return (await answerFile(event, name, { ...file, headers })).answer
    },
  }
}

/** Their paths; null: the folder is not there. */
async function listFiles(folder: string): Promise<ReadonlySet<string> | null> {
  try {
    return new Set(await readdir(folder, { recursive: true }))
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return null
    throw error
  }
}
