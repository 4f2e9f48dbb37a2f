/** Checks what a registry holds of a blob: its size, its digest, and pieces of its bytes. */
import type { RegistryEntrance } from './registry-entrance.ts'
import { isLater, type RegistryReply, type RegistryRequests } from './registry-requests.ts'
import { blobUrlOf } from './rules/oras.ts'

/** A piece of a blob as it was sent, to be compared with what the registry holds. */
export interface BlobSample {
  readonly at: number
  readonly bytes: Buffer
}

interface WantedBlob {
  /** `sha256:` and 64 hexadecimal digits. */
  readonly digest: string
  readonly sizeBytes: number
}

export interface BlobChecks {
  /**
   * Tells whether the blob is there. Rejects with a Fault `digest-mismatch` where the registry says
   * another size or digest.
   */
  hasBlob(blob: WantedBlob): Promise<boolean>
  /**
   * Compares pieces of a blob with what the registry sends of it. False: it sends no ranges, so
   * that nothing was compared. Rejects with a Fault `digest-mismatch` where it sends other bytes.
   */
  compare(blob: WantedBlob, samples: readonly BlobSample[]): Promise<boolean>
}

interface Place extends Pick<RegistryEntrance, 'base' | 'repository' | 'access'> {
  readonly requests: RegistryRequests
}

const NOT_FOR_HEAD: ReadonlySet<number> = new Set([400, 401, 403, 405])

/** What cannot be of the blob, in words; null: nothing. */
function findLie({ digest, sizeBytes }: WantedBlob, { headers }: RegistryReply): string | null {
  const found = Number(headers['content-length'] ?? sizeBytes)
  const said = String(headers['docker-content-digest'] ?? digest)
  if (found === sizeBytes && said === digest) return null
  return `it has ${found} bytes as ${said} where ${digest} has ${sizeBytes}`
}

export function createBlobChecks({ base, repository, access, requests }: Place): BlobChecks {
  const urlOf = ({ digest }: WantedBlob) => blobUrlOf(base, repository, digest)

  function judge(blob: WantedBlob, reply: RegistryReply): boolean | null {
    const { status } = reply
    if (status === 404) return false
    // It led to where the blob lies: addresses that are signed for GET refuse HEAD.
    const isElsewhere = URL.parse(reply.url)?.origin !== URL.parse(base)?.origin
    if (isElsewhere && NOT_FOR_HEAD.has(status)) return true
    if (isLater(reply)) return null
    if (status !== 200) throw requests.refused(reply, 'to look for a blob')
    const lie = findLie(blob, reply)
    if (lie === null) return true
    throw requests.lies(lie)
  }

  async function readBack({ digest }: WantedBlob, { at, bytes }: BlobSample) {
    const range = `bytes=${at}-${at + bytes.length - 1}`
    // A redirect leads to a storage that is not told who asks.
    const answer = await access.fetch(
      { url: blobUrlOf(base, repository, digest), authorization: null },
      { method: 'GET', headers: { range } },
    )
    const { status, headers, target } = answer
    const reply: RegistryReply = { status, headers, url: target.url, text: '' }
    if (status !== 206) {
      answer.drop()
      return reply
    }
    let seen = 0
    for await (const chunk of answer.body()) {
      const isSame = chunk.equals(bytes.subarray(seen, seen + chunk.length))
      if (!isSame) throw requests.lies(`it sends other bytes of ${digest} than it was sent`)
      seen += chunk.length
    }
    if (seen === bytes.length) return reply
    throw requests.lies(`it sends ${seen} bytes of ${digest} where ${bytes.length} were asked for`)
  }

  /** A failure that passes does not cost an upload of hours. */
  const compareOne = (blob: WantedBlob, sample: BlobSample): Promise<boolean> =>
    requests.insist(
      () => readBack(blob, sample),
      (reply) => {
        const { status } = reply
        if (status === 206 || status === 200) return status === 206
        if (isLater(reply)) return null
        throw requests.failed(`HTTP ${status} when ${blob.digest} was read back`)
      },
    )

  return {
    hasBlob: (blob) =>
      requests.insist(
        () => requests.once(urlOf(blob), { method: 'HEAD' }),
        (reply) => judge(blob, reply),
      ),
    async compare(blob, samples) {
      for (const sample of samples) if (!(await compareOne(blob, sample))) return false
      return true
    },
  }
}
