/** Sends one request to a machine server: bounded in size and time, never redirected, never throws. */
import { renderError } from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isPassing } from '#kit/net/rules/http-range.ts'
import { describeFailure, renderRefusal } from '#kit/net/rules/network-failure.ts'
import { isRedirect } from '#kit/net/rules/redirect.ts'
import { readRetryAfter } from '#kit/net/http-remote.ts'
import { askOnce, type DocumentAnswer, type DocumentRequest } from '#kit/net/json-client.ts'
import type { Environment } from '#kit/host/shell.ts'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeTree } from '#kit/host/folders.ts'

export interface Rejection {
  /** A clause that is safe to show: `connection refused`, `HTTP 404: no machine record for …`. */
  readonly reason: string
  /** Null: no answer, or not in time. */
  readonly status: number | null
  readonly isPassing: boolean
  /** Milliseconds, as the server asks; null: it does not say. */
  readonly waitMs: number | null
}

export interface Exchange extends Pick<DocumentRequest, 'method' | 'body' | 'timeoutMs'> {
  /** Names FLASHER_CA_FILE. */
  readonly env: Environment
  readonly authorization?: string | null
  readonly signal: AbortSignal
}

const MAX_BYTES = 2 ** 20

/** The parsed body; undefined: there was none. */
export async function exchange(
  url: string,
  request: Exchange,
): Promise<Result<unknown, Rejection>> {
  const { env, authorization = null, signal, ...sent } = request
  // No proxy leads to the network that the machine booted from.
  const trust = { FLASHER_CA_FILE: env['FLASHER_CA_FILE'] }
  try {
    const answer = await askOnce(
      trust,
      { url, authorization },
      {
        ...sent,
        headers: { accept: 'application/json' },
        // A false server could otherwise send the machine anywhere, with its token.
        redirects: 'answer',
        maxBytes: MAX_BYTES,
        signal,
      },
    )
    return judge(answer)
  } catch (thrown) {
    const silent = { status: null, waitMs: null, isPassing: false }
    if (signal.aborted) return refuse({ ...silent, reason: 'cancelled' })
    const failure = describeFailure(thrown)
    if (failure === null) return refuse({ ...silent, reason: printable(renderError(thrown)) })
    return refuse({ ...silent, reason: failure.reason, isPassing: !failure.isFinal })
  }
}

function judge(answer: DocumentAnswer): Result<unknown, Rejection> {
  const { status } = answer
  const text = answer.bytes.toString('utf8')
  const rejection = { status, waitMs: readRetryAfter(answer), isPassing: isPassing(status) }
  if (isRedirect(status)) {
    return refuse({ ...rejection, reason: `it sends us elsewhere (HTTP ${status})` })
  }
  if (status < 200 || status > 299) {
    return refuse({ ...rejection, reason: renderRefusal(status, text) })
  }
  const document = text.trim() === '' ? undefined : parseJson(text)
  if (document !== undefined || text.trim() === '') return accept(document)
  return refuse({ ...rejection, reason: 'its answer is not JSON' })
}

/** Fetches provisioning files from the machine server into a private folder, which is removed after use. */
interface WantedFile {
  /** Becomes the name in the folder; from a closed list. */
  readonly file: string
  readonly url: string
  /** Without this file nothing is fetched; others may be missing on the server. */
  readonly isRequired: boolean
}

interface FetchedFolder extends AsyncDisposable {
  /** Paths by file name. */
  readonly paths: ReadonlyMap<string, string>
}

interface FetchOptions {
  /** Sent as a bearer; null: the boot carried none. */
  readonly token: string | null
  /** Names FLASHER_CA_FILE. */
  readonly env: Environment
  readonly signal: AbortSignal
  /** Milliseconds. */
  readonly retryMs?: number
}

/** No server keeps a larger file. */

const TIMEOUT_MS = 15_000
const RETRIES = 5
const RETRY_MS = 1000

/** Never throws. The refusal is a clause that names the file. */
export async function fetchProvision(
  wanted: readonly WantedFile[],
  options: FetchOptions,
): Promise<Result<FetchedFolder, string>> {
  await using undo = new AsyncDisposableStack()
  const paths = new Map<string, string>()
  try {
    const folder = await mkdtemp(join(tmpdir(), 'flasher-provision-'))
    undo.defer(() => removeTree(folder))
    for (const { file, url, isRequired } of wanted) {
      const answer = await fetchFile(url, options)
      if (answer.ok) {
        const path = join(folder, file)
        await writeFile(path, answer.value, { mode: 0o600 })
        paths.set(file, path)
      } else if (isRequired || answer.refusal.status !== 404) {
        return refuse(`${file}: ${answer.refusal.reason}`)
      }
    }
  } catch (thrown) {
    return refuse(renderError(thrown))
  }
  const held = undo.move()
  return accept({ paths, [Symbol.asyncDispose]: () => held.disposeAsync() })
}

async function fetchFile(
  url: string,
  { token, env, signal, retryMs = RETRY_MS }: FetchOptions,
): Promise<Result<Buffer, Pick<Rejection, 'reason' | 'status'>>> {
  // No proxy leads to the network that the machine booted from.
  const trust = { FLASHER_CA_FILE: env['FLASHER_CA_FILE'] }
  const target = { url, authorization: token === null ? null : `Bearer ${token}` }
  try {
    const { status, bytes } = await askOnce(trust, target, {
      redirects: 'answer',
      maxBytes: MAX_BYTES,
      timeoutMs: TIMEOUT_MS,
      retries: RETRIES,
      retryMs,
      signal,
    })
    if (status === 200) return accept(bytes)
    return refuse({ status, reason: renderRefusal(status, bytes.toString('utf8')) })
  } catch (thrown) {
    const reason = describeFailure(thrown)?.reason ?? renderError(thrown)
    return refuse({ status: null, reason })
  }
}
