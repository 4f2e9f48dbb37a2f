/** Finds out whether an object of a bucket can be read, and signs its address for whoever shall read it. */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Environment } from '#kit/host/shell.ts'
import { createHttpClient } from '../http-client.ts'
import { createRemote } from '../http-remote.ts'
import { findOtherSize } from '../rules/open-source.ts'
import { createS3Client, presign } from './s3-client.ts'
import type { S3Access } from './rules/s3-access.ts'

interface ObjectOptions {
  readonly env: Environment
  readonly signal: AbortSignal
  readonly stallMs: number
  readonly retryMs: number
  readonly access: S3Access
  readonly now: () => Date
  /** How long the address is valid. */
  readonly seconds: number
}

/**
 * Returns the signed address of a canonical `s3://bucket/key`. A refusal says in a clause why there
 * is none; rejects with a Fault where the object is unavailable.
 */
export async function findOpenObject(
  { env, signal, stallMs, retryMs, access, now, seconds }: ObjectOptions,
  source: string,
  wanted: { readonly sizeBytes: number | null },
): Promise<Result<string, string>> {
  await using http = createHttpClient({ env, signal, stallMs })
  const client = createS3Client({ client: http, access, source, now })
  const { target, explain } = client
  const looked = { name: source, target, client, signal, retryMs, explain }
  const remote = createRemote({ ...looked, isHasty: true, isGetOnly: true })
  const known = await remote.inspect()
  if (!known.ranges) return refuse('it sends no parts of a file')
  const other = findOtherSize(known.sizeBytes, wanted.sizeBytes)
  if (other !== null) return refuse(other)
  return accept(
    await presign({ ...access, region: client.region() }, source, { at: now(), seconds }),
  )
}
