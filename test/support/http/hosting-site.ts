/** Serves release folders as hosting sites do: below their tags, by a redirect for the newest, behind another host name. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { sendFile, startHostileServer, type FileBehaviour } from './hostile-server.ts'
import { REPOSITORY } from './release-site.ts'

/** `tag-last`: `releases/download/<tag>/`; `tag-first`: `releases/<tag>/download/`. */
export const FORMS = ['tag-last', 'tag-first'] as const
type Form = (typeof FORMS)[number]

/** What is wrong with one file. */
interface Trouble {
  /** How the name of the file ends. */
  readonly name: string
  /** `loop`: redirected to itself; `stall`: its headers come and no byte of it. */
  readonly kind: 'missing' | 'truncated' | 'wrong' | 'loop' | 'stall'
}

interface HostingOptions {
  /** The newest one comes last. */
  readonly releases: readonly { readonly path: string; readonly tag: string }[]
  readonly form?: Form
  /** The path of the repository; empty: the site has only one. */
  readonly repository?: string
  readonly trouble?: Trouble
}

export async function startHosting(options: HostingOptions) {
  const { releases, form = 'tag-last', repository = REPOSITORY, trouble } = options
  const root = repository === '' ? '/releases' : `/${repository}/releases`
  const pathOf = (tag: string) =>
    form === 'tag-last' ? `${root}/download/${tag}/` : `${root}/${tag}/download/`
  const files = new Map<string, Buffer>()
  for (const { path, tag } of releases) {
    for (const name of await readdir(path)) {
      files.set(`${pathOf(tag)}${name}`, readFileSync(join(path, name)))
    }
  }
  const newest = releases.at(-1)?.tag ?? ''
  const latest = `${root}/latest/download/`

  const server = await startHostileServer((request, response) => {
    const { url = '' } = request
    if (url.startsWith(latest)) {
      redirect(response, `${pathOf(newest)}${url.slice(latest.length)}`)
    } else if (url === `/repos/${REPOSITORY}/releases/latest`) {
      const body = JSON.stringify({ id: 7, tag_name: newest, assets: [] })
      response.writeHead(200, { 'content-type': 'application/json' }).end(body)
    } else if (files.has(url)) redirect(response, `/storage${url}?key=1`)
    else answerFile(request, response)
  })

  const troubleOf = (url: string) =>
    trouble !== undefined && url.endsWith(trouble.name) ? trouble.kind : 'none'

  /** The bytes lie at an address of their own, which the hosting's redirects to. */
  function answerFile(request: IncomingMessage, response: ServerResponse) {
    const { url = '' } = request
    const asked = url.replace(/^\/storage/, '').replace(/\?.*$/, '')
    const kind = troubleOf(asked)
    const file = kind === 'missing' ? undefined : files.get(asked)
    if (kind === 'loop') redirect(response, url)
    else if (file === undefined) response.writeHead(404).end()
    else sendFile(CHANGES[kind]?.(file) ?? file, request, response, kind === 'stall' ? STALL : {})
  }

  return { ...server, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

const STALL: FileBehaviour = { stallAfter: 0 }

const CHANGES: Readonly<Record<string, (file: Buffer) => Buffer>> = {
  truncated: (file) => file.subarray(0, file.length - 100),
  wrong: (file) => Buffer.concat([file.subarray(0, -1), Buffer.from('~')]),
}

const redirect = (response: ServerResponse, location: string) => {
  response.writeHead(302, { location }).end()
}
