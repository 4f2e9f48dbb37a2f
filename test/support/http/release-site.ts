/** A site that hosts releases, on loopback, and what goes wrong with it. */
import type { ServerResponse } from 'node:http'
import { ipxeFile, RELEASE_MANIFEST } from '#appliance/assets.ts'
import { TRIO } from '#fleet/boot/rules/boot-set.ts'
import { partName, sha256 } from '../server/boot-folder.ts'
import { makeBytes } from '../collect.ts'
import { sendFile, startHostileServer, type Answer, type FileBehaviour } from './hostile-server.ts'

export const REPOSITORY = 'example/project'

export interface SiteOptions {
  readonly version?: string
  /** The path below which the files lie. */
  readonly folder?: string
  /** Files that are not what the manifest says; null: that are missing. */
  readonly changed?: Readonly<Record<string, Buffer | string | null>>
  /** Other text than the manifest that fits. */
  readonly manifest?: (text: string) => string
  /** The first answer with bytes of a file ends after so many of them. */
  readonly cut?: { readonly name: string; readonly after: number }
  /** This file begins and never ends. */
  readonly stall?: string
  readonly bytes?: number
  /** Whether `latest/download/<name>` answers 302 to the folder of the newest tag. */
  readonly redirects?: boolean
  /** Where the JSON API says which tag is the newest, and what it says instead of that. */
  readonly api?: string
  readonly apiText?: string
}

export async function startReleaseSite(options: SiteOptions = {}) {
  const { version = '1.2.3', bytes = 200_000 } = options
  const tag = `v${version}`
  const folder = options.folder ?? `/${REPOSITORY}/releases/download/${tag}/`
  const ipxe = ipxeFile('x86_64', version)
  const files = new Map<string, Buffer>(
    [...TRIO.map((part) => partName(version, part)), ipxe].map((name, at) => [
      name,
      makeBytes(bytes + at, at + 1 + Number(version.replaceAll('.', ''))),
    ]),
  )
  const lines = TRIO.map((part) => partName(version, part)).map(
    (name) => `${sha256(files.get(name) ?? '')}  ${name}\n`,
  )
  const made = renderManifest(version, files)
  files.set(partName(version, 'sha256'), Buffer.from(lines.join('')))
  files.set(RELEASE_MANIFEST, Buffer.from(options.manifest?.(made) ?? made))
  for (const [name, content] of Object.entries(options.changed ?? {})) {
    if (content === null) files.delete(name)
    else files.set(name, Buffer.from(content))
  }
  let held = 0
  let cuts = 0

  /** Sends the beginning, and no more. */
  function stall(file: Buffer, response: ServerResponse) {
    held += 1
    response.writeHead(200, { 'content-length': file.length, etag: '"one"' })
    response.write(file.subarray(0, 1000))
  }
  function behave(name: string): FileBehaviour {
    if (options.cut?.name !== name || cuts > 0) return {}
    cuts += 1
    return { cutAfter: options.cut.after }
  }
  /** What tells which tag is the newest; false: something else was asked for. */
  function answerLatest(url: string, name: string, response: ServerResponse): boolean {
    const isLatest = url.startsWith(`/${REPOSITORY}/releases/latest/download/`)
    if (options.redirects === true && isLatest) {
      response.writeHead(302, { location: `${folder}${name}` }).end()
      return true
    }
    if (url !== options.api) return false
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(options.apiText ?? JSON.stringify({ id: 1, tag_name: tag, assets: [] }))
    return true
  }
  const answer: Answer = (request, response) => {
    const { url = '', method, headers } = request
    const name = url.slice(url.lastIndexOf('/') + 1)
    if (answerLatest(url, name, response)) return
    const file = url.startsWith(folder) ? files.get(name) : undefined
    const isBody = method === 'GET' && headers.range !== 'bytes=0-0'
    if (file === undefined) response.writeHead(404).end()
    else if (isBody && name === options.stall) stall(file, response)
    else sendFile(file, request, response, isBody ? behave(name) : {})
  }
  const server = await startHostileServer(answer)
  return {
    ...server,
    tag,
    version,
    files,
    ipxe,
    cuts: () => cuts,
    held: () => held,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

function renderManifest(version: string, files: ReadonlyMap<string, Buffer>): string {
  const tables = [...files].map(
    ([name, content]) =>
      `[[artifacts]]\nname = "${name}"\nsize = ${content.length}\nsha256 = "${sha256(content)}"\n`,
  )
  return [
    '# what belongs to the release',
    `version = "${version}"`,
    `tag = "v${version}"`,
    'released = "2026-01-02T03:04:05Z"',
    '',
    ...tables,
  ].join('\n')
}
