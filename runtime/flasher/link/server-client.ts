/** A client for the machine server's API for machines: disks, plan, progress, log, the end. */
import { setTimeout as sleep } from 'node:timers/promises'
import { FEATURES } from '#appliance/contract.ts'
import { MAX_FOR_OLDER_SERVERS } from '#engine/disk/rules/disk.ts'
import type { FirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { accept, type Result, refuse } from '#kit/foundation/result.ts'
import { decideDelay, describeFailure, renderRefusal } from '#kit/net/rules/network-failure.ts'
import type { ProgressPost } from '#engine/inventory/rules/run.ts'
import { type DocumentRequest, askOnce, type DocumentAnswer } from '#kit/net/json-client.ts'
import type { Environment } from '#kit/host/shell.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { detectFormat } from '#engine/image/rules/format.ts'
import type { ImageFormat } from '#appliance/disk-images.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'
import { isPassing } from '#kit/net/rules/http-range.ts'
import { isRedirect } from '#kit/net/rules/image-location.ts'
import { readRetryAfter } from '#kit/net/http-remote.ts'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeTree } from '#kit/host/folders.ts'
import { linger } from '#kit/host/watch.ts'
import { isServerVersion } from '#kit/net/rules/host-header.ts'

type Delivery = Result<null, Rejection>

export type ServerClient = ReturnType<typeof createServerClient>

export interface RetryTime {
  readonly ms: number
  onRetry?(rejection: Rejection, waitMs: number): void
}

export interface ServerClientOptions extends SiteOptions {
  readonly mac: Mac
  /** Proves that the server started this boot; null: it gave none. */
  readonly token: string | null
  /** Further query of a request for a plan, about this boot. */
  readonly bootTimes?: () => Promise<string>
  /** Milliseconds. */
  readonly retryMs?: number
}

const MAX_REASON = 500
const KNOWN = Object.values(FEATURES).join(',')
const NO_TIMES = () => Promise.resolve('')

/** Each call is one try, or with a time as many as fit; none throws. */
export function createServerClient(options: ServerClientOptions) {
  const { mac, token, signal, retryMs = 1000, bootTimes = NO_TIMES } = options
  const site = createServerSite(options)
  const authorization = token === null ? null : `Bearer ${token}`
  const ask = (path: string, sent: Pick<DocumentRequest, 'method' | 'body'> = {}) =>
    site.ask(`/pxe/${mac}${path}`, { ...sent, authorization })

  /** Until the server accepts, refuses for good, or time is over. */
  async function insist<Value>(
    attempt: () => Promise<Result<Value, Rejection>>,
    { ms, onRetry }: RetryTime,
  ): Promise<Result<Value, Rejection>> {
    const end = performance.now() + ms
    for (let tries = 1; ; tries += 1) {
      const answer = await attempt()
      if (answer.ok || !answer.refusal.isPassing || signal.aborted) return answer
      const waitMs = answer.refusal.waitMs ?? decideDelay(tries, retryMs, Math.random())
      if (performance.now() + waitMs > end) return answer
      onRetry?.(answer.refusal, waitMs)
      // Only the signal ends a sleep early; the next try reports that.
      await sleep(waitMs, undefined, { signal }).catch(() => undefined)
    }
  }

  const once: RetryTime = { ms: 0 }
  const post = (path: string, body?: object | string) => ask(path, { method: 'POST', body })
  const send = async (path: string, body: object | string, time = once) =>
    toDelivery(await insist(() => post(path, body), time))

  /** A server of an older release refuses a long list whole: it gets as many as it takes. */
  let mostDisks = Infinity
  async function sendInventory(
    body: {
      /** The best first. */
      readonly disks: readonly InventoryDisk[]
      /** The tree of `lshw -json`. */
      readonly lshw?: object
      /** Absent on a BIOS. */
      readonly secure_boot?: boolean
      /** As the machine's own device reports it; absent: none. */
      readonly bmc_address?: string
      readonly firmware?: FirmwareFacts
    },
    time?: RetryTime,
  ): Promise<Delivery> {
    const disks = body.disks.slice(0, mostDisks)
    const answer = await send('/inventory', { ...body, disks }, time)
    const isRefused = !answer.ok && answer.refusal.status === 422
    if (!isRefused || disks.length <= MAX_FOR_OLDER_SERVERS) return answer
    mostDisks = MAX_FOR_OLDER_SERVERS
    return sendInventory(body, time)
  }

  async function postDone(run: string | null): Promise<Result<unknown, Rejection>> {
    const query = run === null ? '' : `?run=${encodeURIComponent(run)}`
    const answer = await post(`/done${query}`)
    const isOld = !answer.ok && (answer.refusal.status === 404 || answer.refusal.status === 405)
    return isOld ? await post(`/status${query}`, { status: 'done' }) : answer
  }

  return {
    /** `http://host:port` of the server that answered last. */
    get base() {
      return site.current()
    },
    servers: site.servers,
    mac,
    sendInventory,
    fetchPlan: (time = once) =>
      insist(async () => ask(`/plan?features=${KNOWN}${await bootTimes()}`), time),
    /** Unchecked. 404: the machine has no template. */
    offerFirstBoot: () => ask('/first-boot'),
    /** The answer is unchecked, and handed out once. */
    fetchFirstBoot: (given: string, time = once) =>
      insist(() => post('/first-boot', { token: given }), time),
    sendProgress: (report: ProgressPost) => send('/progress', report),
    /** Plain text; the server keeps the tail. */
    sendLog: (run: string, text: string) => send(`/log?run=${encodeURIComponent(run)}`, text),
    /** `/done`, or `/status` for servers without that route. `run` null: nothing was reported. */
    sendDone: async (time = once, run: string | null = null) =>
      toDelivery(await insist(() => postDone(run), time)),
    sendFailure: (reason: string, time?: RetryTime) =>
      send('/status', { status: 'failed', reason: reason.slice(0, MAX_REASON) }, time),
  }
}

const toDelivery = (answer: Result<unknown, Rejection>): Delivery =>
  answer.ok ? accept(null) : answer

/** Never throws; the refusal is a clause that is safe to show. */
export async function fetchServedImages(
  base: string,
  { env, signal }: Pick<Exchange, 'env' | 'signal'>,
): Promise<Result<readonly ServedImage[], string>> {
  const answer = await exchange(`${base}/images`, { env, signal, timeoutMs: 30_000 })
  if (!answer.ok) return refuse(answer.refusal.reason)
  return parseServedImages(base, answer.value)
}

interface ServedImage {
  readonly name: string
  readonly url: string
  /** Null: none that flasher writes. */
  readonly format: ImageFormat | null
  /** Null: the server does not say. */
  readonly sizeBytes: number | null
}

/** `base`: without a slash at its end. */
function parseServedImages(
  base: string,
  document: unknown,
): Result<readonly ServedImage[], string> {
  if (!Array.isArray(document)) return refuse('its answer is not a list of images')
  return accept(
    document.flatMap((entry: unknown) => {
      if (!isRecord(entry)) return []
      const { name, size_bytes: size } = entry
      if (typeof name !== 'string' || name === '' || !name.isWellFormed()) return []
      const url = `${base}/images/${encodeURIComponent(name)}`
      const isSize = typeof size === 'number' && Number.isSafeInteger(size) && size >= 0
      return [{ name, url, format: detectFormat(name), sizeBytes: isSize ? size : null }]
    }),
  )
}

// Sends one request to a machine server: bounded in size and time, never redirected, never throws.

export interface Rejection {
  /** A clause that is safe to show: `connection refused`, `HTTP 404: no machine record for …`. */
  readonly reason: string
  /** Null: no answer, or not in time. */
  readonly status: number | null
  readonly isPassing: boolean
  /** Milliseconds, as the server asks; null: it does not say. */
  readonly waitMs: number | null
}

interface Exchange extends Pick<DocumentRequest, 'method' | 'body' | 'timeoutMs'> {
  /** Names FLASHER_CA_FILE. */
  readonly env: Environment
  readonly authorization?: string | null
  readonly signal: AbortSignal
}

/** No server keeps a larger file. */
const MAX_BYTES = 2 ** 20

/** The parsed body; undefined: there was none. */
async function exchange(url: string, request: Exchange): Promise<Result<unknown, Rejection>> {
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
    return refuse({ ...rejection, reason: `it redirects elsewhere (HTTP ${status})` })
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

// Asks the servers of a site: the one that answered last, and after its silence the next one that is there.

export interface SiteOptions {
  /** Without a slash at its end. */
  readonly base: string
  /** In the order of asking. */
  readonly others?: readonly string[]
  readonly env?: Environment
  /** Ends every call at once. */
  readonly signal: AbortSignal
  /** For an answer of a server that shows that it is there, or has no substitute. */
  readonly timeoutMs?: number
  /** Silence after which another server is asked. */
  readonly silenceMs?: number
  /** From now on another server is asked. */
  onMove?(from: string, to: string): void
  /** Called at each answer that asking again would not change. */
  onAnswer?(): void
}

type SiteRequest = Omit<Exchange, 'env' | 'signal' | 'timeoutMs'>

/** Longer than a server holds a request while another one takes over (12 s). */
const ANSWER_MS = 15_000
const SILENCE_MS = 3000

export function createServerSite(options: SiteOptions) {
  const { base, others = [], env = {}, signal, timeoutMs = ANSWER_MS } = options
  const silenceMs = Math.min(options.silenceMs ?? SILENCE_MS, timeoutMs)
  const servers = [base, ...others]
  let current = base

  /** From the one after `server` to `server` itself. */
  function listAfter(server: string): readonly string[] {
    const at = servers.indexOf(server) + 1
    return [...servers.slice(at), ...servers.slice(0, at)]
  }

  function move(to: string) {
    if (to === current) return
    const from = current
    current = to
    options.onMove?.(from, to)
  }

  /** Another request may have left `server` already. */
  function leave(server: string) {
    if (server === current) move(listAfter(server)[0] ?? server)
  }

  async function ask(path: string, sent: SiteRequest, limitMs: number) {
    const answer = await exchange(`${current}${path}`, { ...sent, env, signal, timeoutMs: limitMs })
    if (answer.ok || !answer.refusal.isPassing) options.onAnswer?.()
    return answer
  }

  /** Null: no server is there. */
  async function askWhoIsThere(path: string, sent: SiteRequest) {
    const after = listAfter(current)
    const order = [current, ...after.slice(0, -1)]
    const found = await findAlive(order, { env, signal, timeoutMs: silenceMs })
    if (found === null) return null
    move(found)
    const answer = await ask(path, sent, timeoutMs)
    // It is there but silent: next time the next one is asked.
    if (isSilent(answer)) leave(found)
    return answer
  }

  return {
    servers,
    current: () => current,
    /**
     * Never throws. A silent server that shows that it is there is asked once more, as it may hold
     * the request until another one has taken over. After HTTP 5xx the next one is asked next time.
     */
    async ask(path: string, sent: SiteRequest = {}): Promise<Result<unknown, Rejection>> {
      if (others.length === 0) return await ask(path, sent, timeoutMs)
      const asked = current
      const answer = await ask(path, sent, silenceMs)
      if (isSilent(answer)) return (await askWhoIsThere(path, sent)) ?? answer
      const isUnable = !answer.ok && answer.refusal.isPassing && (answer.refusal.status ?? 0) >= 500
      if (isUnable) leave(asked)
      return answer
    },
  }
}

const isSilent = (answer: Result<unknown, Rejection>) =>
  !answer.ok && answer.refusal.status === null

type SearchOptions = Pick<SiteOptions, 'signal' | 'env' | 'timeoutMs'>

/** All at once; null: none answered as our server within `timeoutMs`. `bases`: the best first. */
export const findServer = (
  bases: readonly string[],
  options: SearchOptions,
): Promise<string | null> => findFirst(bases, '/version', isServerVersion, options)

const TRY_MS = 1000

/** Null: none answered in time. */
export async function searchServer(
  bases: readonly string[],
  {
    signal,
    env,
    ms,
    onWait,
  }: Required<Pick<SiteOptions, 'signal' | 'env'>> & {
    readonly ms: number
    /** Called once. */
    onWait(): void
  },
): Promise<string | null> {
  const deadline = performance.now() + ms
  for (let tries = 1; ; tries += 1) {
    const found = await findServer(bases, { env, signal })
    if (found !== null || signal.aborted || performance.now() + TRY_MS > deadline) return found
    if (tries === 1) onWait()
    await linger(TRY_MS, signal)
  }
}

/** For servers known to be ours: they answer `/healthz` even without a leader. */
const findAlive = (bases: readonly string[], options: SearchOptions): Promise<string | null> =>
  findFirst(bases, '/healthz', (answer) => isRecord(answer) && answer['status'] === 'ok', options)

async function findFirst(
  bases: readonly string[],
  path: string,
  isOurs: (document: unknown) => boolean,
  { signal, env = {}, timeoutMs = 5000 }: SearchOptions,
): Promise<string | null> {
  const answers = bases.map(async (base) => {
    const answer = await exchange(`${base}${path}`, { env, timeoutMs, signal })
    return answer.ok && isOurs(answer.value)
  })
  for (const [index, base] of bases.entries()) if ((await answers[index]) === true) return base
  return null
}
