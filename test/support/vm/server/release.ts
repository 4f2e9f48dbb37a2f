/** A release folder with the next version of the appliance, served as the release site serves it. */
import { createHash } from 'node:crypto'
import { createReadStream, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { once } from 'node:events'
import { pipeline } from 'node:stream/promises'
import type { Arch } from '#appliance/appliance.ts'
import { serverUpdate } from '#appliance/assets.ts'

interface ReleaseSite extends AsyncDisposable {
  readonly port: number
  /** Paths that were asked for. */
  readonly requests: readonly string[]
}

interface ReleaseFiles {
  readonly arch: Arch
  readonly version: string
  readonly kernel: string
  readonly initrd: string
  readonly squashfs: string
}

export async function serveRelease({
  arch,
  version,
  ...files
}: ReleaseFiles): Promise<ReleaseSite> {
  const names = serverUpdate(arch, version)
  const paths = new Map([
    [names.kernel, files.kernel],
    [names.initrd, files.initrd],
    [names.squashfs, files.squashfs],
  ])
  const sums = [...paths]
    .map(([name, path]) => {
      const digest = createHash('sha256').update(readFileSync(path)).digest('hex')
      return `${digest}  ${name}\n`
    })
    .join('')
  const requests: string[] = []
  const tagged = `/releases/download/v${version}/`
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    requests.push(path)
    const name = path.slice(path.lastIndexOf('/') + 1)
    const file = paths.get(name)
    if (path.startsWith('/releases/latest/download/')) {
      response.writeHead(302, { location: tagged + name }).end()
    } else if (path === `${tagged}SHA256SUMS`) {
      response.end(sums)
    } else if (file === undefined || !path.startsWith(tagged)) {
      response.writeHead(404).end()
    } else {
      response.writeHead(200, { 'content-length': statSync(file).size })
      // A guest that gives up ends the answer, too.
      pipeline(createReadStream(file), response).catch(() => {})
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  return {
    port: address.port,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
