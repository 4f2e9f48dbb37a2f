/** Catalog manifests from wherever they lie: a file or a web server. */
import { open } from 'node:fs/promises'
import { Fault, renderError } from '../core/fault.ts'
import { parseLocation, renderLocationRefusal, renderSafeUrl } from '../core/location.ts'
import { type Manifest, parseManifest, renderFlaw } from '../core/manifest.ts'
import { fetchDocument } from './http-documents.ts'
import type { Environment } from './shell.ts'

const MOST_BYTES = 4 * 1024 * 1024

/** A path or an http(s) URL. A Fault that names it where it cannot be had, or is no manifest. */
export async function readManifest(source: string, env: Environment): Promise<Manifest> {
  const { name, text } = await readSource(source, env)
  const manifest = parseManifest(text)
  if (manifest.ok) return manifest.value
  throw new Fault('input-invalid', `${name}: ${renderFlaw(manifest.refusal)}`)
}

async function readSource(source: string, env: Environment) {
  const location = parseLocation(source)
  if (!location.ok) throw new Fault('input-invalid', renderLocationRefusal(location.refusal))
  switch (location.value.kind) {
    case 'stdin':
      throw new Fault('input-invalid', 'a catalog is not read from standard input')
    case 'oras':
      throw new Fault('input-invalid', 'a catalog is not read from a registry')
    case 'file':
      return { name: source, text: await readFile(location.value.path) }
    case 'http': {
      const name = renderSafeUrl(source)
      const { target } = location.value
      const query = { target, name, env, mostBytes: MOST_BYTES, timeoutMs: 30_000, etag: null }
      const answer = await fetchDocument(query)
      return { name, text: answer.kind === 'new' ? answer.text : '' }
    }
  }
}

async function readFile(path: string): Promise<string> {
  try {
    await using handle = await open(path, 'r')
    const { size } = await handle.stat()
    if (size > MOST_BYTES) throw new Error(`it is larger than ${MOST_BYTES} bytes`)
    return await handle.readFile('utf8')
  } catch (cause) {
    throw new Fault('input-missing', `${path} cannot be read: ${renderError(cause)}`, { cause })
  }
}
