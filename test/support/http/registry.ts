/** Debian's OCI registry on loopback, empty at its start, and images put into it by plain requests. */
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Certificate } from './hostile-server.ts'
import { until } from '../server/image-cache.ts'
import { findPort } from './ports.ts'

export interface TestRegistry extends AsyncDisposable {
  /** `127.0.0.1:port`. */
  readonly host: string
  readonly folder: string
}

/** The user `lab` with the password `images`, as htpasswd would write it with bcrypt. */
const HTPASSWD = 'lab:$2y$04$abcdefghijklmnopqrstuuL618pFU4mmFS7YJGdVo56VtjNvjz6iu\n'
export const CREDENTIALS = { user: 'lab', password: 'images' }
const BASIC = `Basic ${Buffer.from('lab:images').toString('base64')}`

export interface TestRegistryOptions {
  /** Wants a user and a password. */
  readonly locked?: boolean
  /** Takes nothing new. */
  readonly readOnly?: boolean
  /** Speaks TLS with this, and nothing else. */
  readonly certificate?: Certificate
  /** Offers what that one holds. */
  readonly over?: TestRegistry
}

export async function startRegistry(options: TestRegistryOptions = {}): Promise<TestRegistry> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-registry-'))
  const host = `127.0.0.1:${await findPort()}`
  await writeFile(join(folder, 'htpasswd'), HTPASSWD)
  await writeFile(join(folder, 'cert.pem'), options.certificate?.cert ?? '')
  await writeFile(join(folder, 'key.pem'), options.certificate?.key ?? '')
  await writeFile(join(folder, 'config.yml'), JSON.stringify(configOf(folder, host, options)))
  const child = spawn('docker-registry', ['serve', join(folder, 'config.yml')], { stdio: 'ignore' })
  const ended = once(child, 'exit')
  const close = async () => {
    child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  try {
    await until(async () => {
      if (child.exitCode !== null) throw new Error('the registry did not start')
      // One that speaks TLS answers this, too, with a refusal.
      const answer = await fetch(`http://${host}/v2/`).catch(() => null)
      return answer !== null
    })
    return { host, folder, [Symbol.asyncDispose]: close }
  } catch (thrown) {
    await close()
    throw thrown
  }
}

const configOf = (folder: string, host: string, options: TestRegistryOptions) => ({
  version: 0.1,
  log: { level: 'error' },
  storage: {
    filesystem: { rootdirectory: join(options.over?.folder ?? folder, 'data') },
    ...(options.readOnly === true ? { maintenance: { readonly: { enabled: true } } } : {}),
  },
  http: {
    addr: host,
    ...(options.certificate === undefined
      ? {}
      : { tls: { certificate: join(folder, 'cert.pem'), key: join(folder, 'key.pem') } }),
  },
  ...(options.locked === true
    ? { auth: { htpasswd: { realm: 'lab', path: join(folder, 'htpasswd') } } }
    : {}),
})

export const digestOf = (bytes: Buffer | string): string =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`

export interface PushedFile {
  readonly bytes: Buffer
  readonly title?: string
  readonly mediaType?: string
}

const IMAGE = 'application/vnd.oci.image.manifest.v1+json'
const INDEX = 'application/vnd.oci.image.index.v1+json'

/** Returns the manifest's digest. */
export async function pushImage(
  { host }: TestRegistry,
  reference: string,
  files: readonly PushedFile[],
): Promise<string> {
  const [repository = '', tag = ''] = reference.split(':')
  const config = await pushBlob(host, repository, Buffer.from('{}'))
  const layers = []
  for (const { bytes, title, mediaType = 'application/octet-stream' } of files) {
    layers.push({
      mediaType,
      ...(await pushBlob(host, repository, bytes)),
      ...(title === undefined ? {} : { annotations: { 'org.opencontainers.image.title': title } }),
    })
  }
  return putManifest(host, repository, tag, {
    schemaVersion: 2,
    mediaType: IMAGE,
    config: { mediaType: 'application/vnd.oci.empty.v1+json', ...config },
    layers,
  })
}

/** An index of images that are there already, by architecture. */
export async function pushIndex(
  { host }: TestRegistry,
  reference: string,
  images: Readonly<Record<string, string>>,
): Promise<string> {
  const [repository = '', tag = ''] = reference.split(':')
  const manifests = []
  for (const [architecture, digest] of Object.entries(images)) {
    const answer = await fetch(`http://${host}/v2/${repository}/manifests/${digest}`, {
      headers: { authorization: BASIC, accept: IMAGE },
    })
    const size = (await answer.arrayBuffer()).byteLength
    manifests.push({ mediaType: IMAGE, digest, size, platform: { architecture, os: 'linux' } })
  }
  return putManifest(host, repository, tag, { schemaVersion: 2, mediaType: INDEX, manifests })
}

async function pushBlob(host: string, repository: string, bytes: Buffer) {
  const digest = digestOf(bytes)
  const begun = await fetch(`http://${host}/v2/${repository}/blobs/uploads/`, {
    method: 'POST',
    headers: { authorization: BASIC },
  })
  const place = new URL(begun.headers.get('location') ?? '', `http://${host}`)
  place.searchParams.set('digest', digest)
  const put = await fetch(place, {
    method: 'PUT',
    headers: { authorization: BASIC, 'content-type': 'application/octet-stream' },
    body: new Uint8Array(bytes),
  })
  if (put.status !== 201) throw new Error(`blob: HTTP ${put.status}: ${await put.text()}`)
  return { digest, size: bytes.length }
}

async function putManifest(
  host: string,
  repository: string,
  tag: string,
  manifest: Readonly<Record<string, unknown>> & { readonly mediaType: string },
): Promise<string> {
  const body = JSON.stringify(manifest)
  const put = await fetch(`http://${host}/v2/${repository}/manifests/${tag}`, {
    method: 'PUT',
    headers: { authorization: BASIC, 'content-type': manifest.mediaType },
    body,
  })
  if (put.status !== 201) throw new Error(`manifest: HTTP ${put.status}: ${await put.text()}`)
  return digestOf(body)
}
