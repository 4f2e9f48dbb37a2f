/** Fetches provisioning files from the machine server into a private folder, which is removed after use. */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { renderError } from '#kit/foundation/fault.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { describeFailure } from '#kit/net/rules/network-failure.ts'
import { renderRefusal } from '#kit/net/rules/refusal-detail.ts'
import type { Environment } from '#kit/host/shell.ts'
import { askOnce } from '#kit/net/json-client.ts'
import type { Rejection } from './server-exchange.ts'
import { removeTree } from '#kit/host/folders.ts'

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
const MAX_BYTES = 2 ** 20
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
