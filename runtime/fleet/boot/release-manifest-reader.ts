/** Reads the manifest of a release, and verifies its signature where one is required. */
import { RELEASE_MANIFEST, signatureOf, SIGNATURE_NAMESPACE } from '#appliance/assets.ts'
import { parseRelease, type Release } from './rules/release.ts'
import { findSignatureFault } from '#kit/foundation/ssh-signature.ts'
import { Fault, renderError } from '#kit/foundation/fault.ts'
import { parseHttpTarget, renderSafeUrl, type HttpTarget } from '#kit/net/rules/image-location.ts'
import type { Environment } from '#kit/host/shell.ts'
import { fetchDocument } from '#kit/net/http-documents.ts'

export interface ReleaseTexts {
  readonly env: Environment
  /** For a small text, in milliseconds; default 30,000. */
  readonly textMs?: number
}

export interface SignedQuery {
  /** SSH keys, one of which must have signed the manifest; empty: no signature needed. */
  readonly keys: readonly string[]
  readonly signal: AbortSignal
}

export const MAX_TEXT_BYTES: number = 1024 * 1024
export const TEXT_MS = 30_000

/** @throws a Fault `upstream-failed` if the signature or the manifest is wrong. */
export async function verifyManifest(
  texts: ReleaseTexts,
  query: SignedQuery,
  base: string,
  text: string,
): Promise<Release> {
  const url = `${base}${RELEASE_MANIFEST}`
  if (query.keys.length > 0) await requireSignature(texts, query, url, text)
  const release = parseRelease(text)
  if (!release.ok) throw wrongRelease(url, release.refusal)
  return release.value
}

async function requireSignature(
  texts: ReleaseTexts,
  query: SignedQuery,
  url: string,
  message: string,
): Promise<void> {
  const signature = await readReleaseText(texts, query, signatureOf(url)).catch(
    (thrown: unknown) => {
      query.signal.throwIfAborted()
      throw wrongRelease(url, `its signature is required and missing: ${renderError(thrown)}`)
    },
  )
  const fault = findSignatureFault({
    message,
    signature,
    namespace: SIGNATURE_NAMESPACE,
    keys: query.keys,
  })
  if (fault !== null) throw wrongRelease(url, fault)
}

export async function readReleaseText(
  { env, textMs = TEXT_MS }: ReleaseTexts,
  { signal }: Pick<SignedQuery, 'signal'>,
  url: string,
): Promise<string> {
  const answer = await fetchDocument({
    target: targetOf(url),
    name: renderSafeUrl(url),
    env,
    maxBytes: MAX_TEXT_BYTES,
    timeoutMs: textMs,
    etag: null,
    signal,
  })
  return answer?.text ?? ''
}

export function targetOf(url: string): HttpTarget {
  const target = parseHttpTarget(url)
  if (target !== null) return target
  throw new Fault('misuse', `[releases] base_url must be an http(s) address`)
}

export const wrongRelease = (url: string, reason: string) =>
  new Fault('upstream-failed', `${renderSafeUrl(url)} cannot be used: ${reason}`, {
    hint: 'Nothing was changed; the release itself must be put right.',
  })
