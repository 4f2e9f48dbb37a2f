/** Writes to a repository of an OCI registry: blobs in chunks, and manifests, which are read back. */
import { createHash } from 'node:crypto'
import { Fault } from '#kit/foundation/fault.ts'
import { describeFailure } from '../rules/network-failure.ts'
import { beginUpload, type BlobUpload } from './blob-upload.ts'
import { createBlobChecks, type BlobChecks } from './blob-checks.ts'
import {
  createEntrances,
  isTlsUnknown,
  PLAIN_REGISTRY,
  type RegistryEntrance,
  type RegistryOptions,
} from './registry-entrance.ts'
import { createRegistryRequests, isLater, type RegistryRequests } from './registry-requests.ts'
import { EMPTY_CONFIG } from './rules/empty-config.ts'
import { IMAGE_MANIFEST } from './rules/image-manifest.ts'
import { MANIFEST_TYPES } from './rules/oras-manifest.ts'
import { locatorOf, manifestUrl, type OrasRef } from './rules/oras.ts'
import { parseRegistryError } from './rules/upload-answer.ts'

export interface RepositoryWriter extends BlobChecks {
  /** Begins a blob; `onSent` hears how many of its bytes were sent so far. */
  upload(onSent: (bytes: number) => void): Promise<BlobUpload>
  hasManifest(): Promise<boolean>
  putConfig(): Promise<void>
  /**
   * Stores the manifest under the version of the reference, reads it back and returns its digest;
   * null: the registry misses a blob that it names.
   */
  putManifest(text: string): Promise<string | null>
}

/**
 * It is given back when nothing is written any more. All of it rejects with a Fault whose message
 * names the repository.
 */
export function createRegistryWriter(options: RegistryOptions) {
  const entrances = createEntrances(options)
  return {
    /** Enters the repository of a reference, in which the reference's version will be stored. */
    async open(ref: OrasRef): Promise<RepositoryWriter> {
      const name = `${ref.host}/${ref.repository}`
      try {
        // The answer does not matter: a registry without the repository answers 404.
        const entrance = await entrances.enter(ref, 'pull,push', async ({ base, access }) => {
          const answer = await access.fetch(
            { url: `${base}/v2/`, authorization: null },
            { method: 'GET' },
          )
          answer.drop()
        })
        const requests = createRegistryRequests(entrance, name)
        return createRepositoryWriter({ ...entrance, ref, requests })
      } catch (thrown) {
        options.signal.throwIfAborted()
        const failure = describeFailure(thrown)
        if (failure === null) throw thrown
        const hint = failure.hint ?? (isTlsUnknown(thrown) ? PLAIN_REGISTRY : undefined)
        throw new Fault('upstream-failed', `${name}: ${failure.reason}`, { hint, cause: thrown })
      }
    },
    [Symbol.asyncDispose]: () => entrances[Symbol.asyncDispose](),
  }
}

type Place = Pick<RegistryEntrance, 'base' | 'repository' | 'access'> & {
  readonly ref: OrasRef
  readonly requests: RegistryRequests
}

function createRepositoryWriter(place: Place): RepositoryWriter {
  const { base, repository, requests } = place
  const blobs = createBlobChecks(place)
  const url = `${base}/v2/${repository}/blobs/uploads/`
  const upload: RepositoryWriter['upload'] = (onSent) => beginUpload({ requests, url, onSent })
  return {
    ...blobs,
    upload,
    async putConfig() {
      const { digest, size: sizeBytes } = EMPTY_CONFIG.descriptor
      if (await blobs.hasBlob({ digest, sizeBytes })) return
      const sent = await upload(() => undefined)
      const isSent = (await sent.send(Buffer.from(EMPTY_CONFIG.bytes))) === 'sent'
      const isStored = () => blobs.hasBlob({ digest, sizeBytes })
      if (isSent && (await sent.finish(digest, isStored)) === 'sent') return
      throw requests.failed('the registry lost an upload of two bytes')
    },
    hasManifest: () =>
      requests.insist(
        () => requests.once(manifestUrlOf(place), MANIFEST_HEAD),
        (reply) => {
          if (reply.status === 200) return true
          if (reply.status === 404) return false
          if (isLater(reply)) return null
          throw requests.refused(reply, 'to look for a manifest')
        },
      ),
    putManifest: (text) => putManifest(place, text),
  }
}

const MANIFEST_HEAD = { method: 'HEAD', headers: { accept: MANIFEST_TYPES.join(', ') } } as const

const manifestUrlOf = ({ base, repository, ref }: Place) =>
  manifestUrl(base, repository, locatorOf(ref.version))

async function putManifest(place: Place, text: string): Promise<string | null> {
  const { requests } = place
  const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`
  const body = Buffer.from(text)
  const headers = { 'content-type': IMAGE_MANIFEST }
  const url = manifestUrlOf(place)
  const isStored = await requests.insist(
    () => requests.once(url, { method: 'PUT', headers, body }),
    (reply) => {
      if (reply.status === 201) return true
      if (isLater(reply)) return null
      if (MISSING.has(parseRegistryError(reply.text).code)) return false
      throw requests.refused(reply, 'the manifest')
    },
  )
  if (!isStored) return null
  const read = await requests.insist(
    () => requests.once(url, { method: 'GET', headers: { accept: IMAGE_MANIFEST } }),
    (reply) => (isLater(reply) ? null : reply),
  )
  if (read.status === 200 && read.text === text) return digest
  const shown = read.status === 200 ? 'another manifest' : `HTTP ${read.status}`
  throw requests.lies(`it answers ${shown} where ${digest} was stored`)
}

/** What registries call a blob that was there a moment ago, and is collected. */
const MISSING: ReadonlySet<string> = new Set(['MANIFEST_BLOB_UNKNOWN', 'BLOB_UNKNOWN'])
