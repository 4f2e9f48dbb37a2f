/** Runs a dnsmasq of our own that answers network boots as the wish says, and reports what it hears. Needs root. */
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFile,
  chmod,
  chown,
  lstat,
  mkdir,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  rmdir,
} from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createTftpProbe } from '#fleet/boot/tftp-probe.ts'
import { UEFI_FILES } from '#fleet/boot/rules/dhcp.ts'
import { listLanAddresses } from '#fleet/boot/pxe-helper.ts'
import { Fault, hintOf, isMissing, renderError } from '#kit/foundation/fault.ts'
import { printable } from '#kit/foundation/printable.ts'
import { needTools, type Shell } from '#kit/host/shell.ts'
import { linger } from '#kit/host/watch.ts'
import { replaceFile } from '#kit/host/folders.ts'
import { surveyDhcp } from './dhcp-survey.ts'
import { fillTftpFolder, readBounded } from './proxy-files.ts'
import { findNeighbour, hear, type Hearing, NOTHING_HEARD } from './rules/hearing.ts'
import { findHolder, PROXY_PORTS } from './rules/ports.ts'
import { type ProxyReport, REPORT_FILE } from './rules/report.ts'
import {
  isWishOld,
  listMissingFiles,
  listTftpFolders,
  MAX_WISH_BYTES,
  parseWish,
  planProxy,
  type ProxyPlan,
  type ProxyWish,
  renderProxyConfiguration,
  renderRevision,
  WISH_FILE,
} from './rules/wish.ts'

interface ProxyDaemonOptions {
  /** Where flasher-web leaves its wish. */
  readonly wishFolder: string
  /** Of root's alone: configuration, log, TFTP, report. It holds nothing else, and is removed at the end. */
  readonly folder: string
  /** Ends where no wish is left. */
  readonly untilOff: boolean
  readonly shell: Pick<Shell, 'run' | 'has' | 'pipe'>
  readonly signal: AbortSignal
  say(words: string): void
}

const LOOK_MS = 1000
const SURVEY_MS = 600_000
const BEAT_MS = 10_000
/** Seconds until dnsmasq is started again: 1, 2, 4 … */
const MAX_PAUSE_S = 30
const MAX_LOG_BYTES = 256 * 1024
/** dnsmasq never is root: `nobody`, with what it takes to answer DHCP. */
const NOBODY = 65_534
const RIGHTS = '-all,+net_admin,+net_bind_service,+net_raw'
const AS_NOBODY = [
  'setpriv',
  `--reuid=${NOBODY}`,
  `--regid=${NOBODY}`,
  '--clear-groups',
  `--inh-caps=${RIGHTS}`,
  `--ambient-caps=${RIGHTS}`,
  `--bounding-set=${RIGHTS}`,
  '--no-new-privs',
  '--pdeathsig=KILL',
]

type Told = Omit<ProxyReport, 'at' | 'clients'>
const NOTHING: Told = {
  state: 'waiting',
  why: null,
  restarts: 0,
  networks: [],
  left: [],
  missing: [],
  tftpBy: null,
}

/** Until the signal ends it. Rejects with a Fault or Node's error where it cannot run at all. */
export async function runProxyDaemon(options: ProxyDaemonOptions): Promise<void> {
  const { folder, wishFolder, signal, untilOff } = options
  await using _ = await takeFolder(folder)
  await using runner = createRunner(options, (await lstat(wishFolder)).gid)
  let done = ''
  while (!signal.aborted) {
    const wish = await readWish(wishFolder)
    if (wish === null && untilOff) break
    const isWish = wish !== null && typeof wish !== 'string'
    const plan = isWish ? planProxy(wish, listLanAddresses()) : wish
    const asked = JSON.stringify(plan)
    if (asked !== done || runner.isDue()) {
      await runner.apply(plan).catch((thrown: unknown) => runner.fail(wordsOf(thrown)))
      done = asked
    }
    await runner.report().catch((thrown: unknown) => runner.say(renderError(thrown)))
    await linger(LOOK_MS, signal)
  }
}

const wordsOf = (thrown: unknown) => {
  const hint = hintOf(thrown)
  return `${renderError(thrown)}${hint === undefined ? '' : `. ${hint}`}`
}

const TFTP_FOLDER = 'tftp'
const CONFIGURATION_FILE = 'dnsmasq.conf'
const LOG_FILE = 'log'
/** With what a write that was killed leaves. */
const OWN_NAME = /^(tftp|dnsmasq\.conf|log(\.1)?|report\.json)(\.[\da-f]{12}\.tmp)?$/

/** Refused where it holds something else, or another proxy has it. */
async function takeFolder(folder: string): Promise<AsyncDisposable> {
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const facts = await lstat(folder)
  if (!facts.isDirectory() || facts.uid !== 0)
    throw new Fault('input-invalid', `${folder} is not a folder of root`)
  const other = (await readdir(folder)).find((name) => !OWN_NAME.test(name))
  if (other !== undefined)
    throw new Fault(
      'input-invalid',
      `${folder} holds ${printable(other)}, which is not the proxy's`,
    )
  // A name that the kernel forgets with this process, however it ends.
  const lock = createServer((socket) => socket.destroy()).unref()
  lock.listen(`\0flasher-web-proxy:${renderRevision(await realpath(folder))}`)
  await once(lock, 'listening').catch((thrown: unknown) => {
    throw new Fault('conflict', `another proxy uses ${folder}`, { cause: thrown })
  })
  await clear(folder)
  await chmod(folder, 0o755)
  await mkdir(join(folder, TFTP_FOLDER))
  await chmod(join(folder, TFTP_FOLDER), 0o755)
  return {
    async [Symbol.asyncDispose]() {
      await clear(folder)
      // Of systemd's own folder, the unit may only empty it.
      await rmdir(folder).catch(() => undefined)
      lock.close()
    },
  }
}

async function clear(folder: string): Promise<void> {
  for (const name of await readdir(folder))
    if (OWN_NAME.test(name)) await rm(join(folder, name), { recursive: true, force: true })
}

/** Null: there is none. A text: why it is not followed. */
async function readWish(wishFolder: string): Promise<ProxyWish | string | null> {
  try {
    const path = join(wishFolder, WISH_FILE)
    if (isWishOld((await lstat(path)).mtimeMs, Date.now()))
      return 'The wish is older than a minute: flasher-web was killed, or hangs.'
    const bytes = await readBounded(path, MAX_WISH_BYTES)
    const parsed = bytes === null ? null : parseWish(bytes.toString('utf8'))
    if (parsed === null) return 'the wish is no file of a usual size'
    return parsed.ok ? parsed.value : parsed.refusal
  } catch (thrown) {
    return isMissing(thrown) ? null : renderError(thrown)
  }
}

function createRunner(options: ProxyDaemonOptions, gid: number) {
  const { folder, shell } = options
  const over = new AbortController()
  const signal = AbortSignal.any([options.signal, over.signal])
  const tftp = join(folder, TFTP_FOLDER)
  const configuration = join(folder, CONFIGURATION_FILE)
  const log = createOwnLog(join(folder, LOG_FILE))
  let told = NOTHING
  let hearing: Hearing = NOTHING_HEARD
  let child: ChildProcessWithoutNullStreams | null = null
  let running: ProxyPlan['served'] = []
  let pauseS = 1
  let dueAt = Infinity
  let surveyAt = Infinity
  let surveying: Promise<void> | null = null
  let written = { text: '', at: -Infinity }
  let neighbours = ''
  let said = ''

  /** Once, however often it is tried again. */
  function say(words: string): void {
    if (words !== said) options.say(words)
    said = words
  }

  function tell(next: Partial<Told>): void {
    told = { ...told, ...next }
  }

  function fail(why: string): void {
    say(why)
    tell({ state: 'failed', why })
    dueAt = performance.now() + pauseS * 1000
    pauseS = Math.min(pauseS * 2, MAX_PAUSE_S)
  }

  async function stop(): Promise<void> {
    dueAt = Infinity
    const ending = child
    child = null
    if (ending === null || ending.exitCode !== null || ending.signalCode !== null) return
    const ended = once(ending, 'exit')
    ending.kill('SIGTERM')
    const killing = setTimeout(() => ending.kill('SIGKILL'), 3000)
    await ended
    clearTimeout(killing)
  }

  async function apply(plan: ProxyPlan | string | null): Promise<void> {
    await stop()
    tell({ ...NOTHING, restarts: told.restarts })
    if (plan === null) {
      hearing = NOTHING_HEARD
      said = ''
      return
    }
    if (typeof plan === 'string') return fail(plan)
    const networks = plan.served.map(({ name, device, target: { address } }) => ({
      name,
      device,
      address,
      answers: null,
      trouble: null,
    }))
    tell({ networks, left: plan.left })
    if (networks.length === 0) return tell({ why: 'No network of the wish is here.' })
    await needTools(shell, ['dnsmasq', 'setpriv', 'ss'])
    const { taken, tftpBy } = await findObstacle(plan)
    if (taken !== null) return fail(taken)
    let present: readonly string[] = []
    for (const { device, baseUrl } of listTftpFolders(plan)) {
      const found = await fillTftpFolder(join(tftp, device), baseUrl, signal)
      if (found === null) return fail(`flasher-web does not give its boot files at ${baseUrl}.`)
      present = found
    }
    const missing = tftpBy === null ? listMissingFiles(present) : []
    tell({ missing, tftpBy })
    await replaceFile(
      configuration,
      renderProxyConfiguration(plan, { tftp: tftpBy === null ? tftp : null }),
    )
    await chmod(configuration, 0o644)
    start(plan.served)
  }

  /** `taken`: a sentence. */
  async function findObstacle({ served }: ProxyPlan) {
    const own = served.map(({ device, target: { address } }) => ({ device, address }))
    const { stdout } = await shell.run(['ss', '-lunpH'], { timeout: 5000 })
    for (const port of [PROXY_PORTS.dhcp, PROXY_PORTS.pxe]) {
      const holder = findHolder(stdout, port, own)
      if (holder !== null) {
        const taken = `UDP port ${port} of this host is in use by ${holder.words}. If that is your DHCP server, give it the lines below instead.`
        return { taken, tftpBy: null }
      }
    }
    const holder = findHolder(stdout, PROXY_PORTS.tftp, own)
    if (holder === null) return { taken: null, tftpBy: null }
    const host = () => own[0]?.address ?? ''
    const probe = createTftpProbe({ host, first: UEFI_FILES.ipxe.uefi })
    const state = await probe.inspect()
    return state.isReady
      ? { taken: null, tftpBy: holder.words }
      : {
          taken: `UDP port ${PROXY_PORTS.tftp} of this host is in use by ${holder.words}, which does not serve our boot loaders. ${state.text}`,
          tftpBy: null,
        }
  }

  function start(served: ProxyPlan['served']): void {
    running = served
    const started = shell.pipe([
      ...AS_NOBODY,
      'dnsmasq',
      '--keep-in-foreground',
      '--log-facility=-',
      `--conf-file=${configuration}`,
    ])
    child = started
    const startedAt = performance.now()
    let last = ''
    started.stdout.resume()
    started.on('error', (error) => {
      if (child === started) child = null
      fail(renderError(error))
    })
    // A line has 1 KiB at most in dnsmasq.
    createInterface({ input: started.stderr }).on('line', (given) => {
      const text = printable(given.slice(0, 1500))
      log.add(text)
      if (text.startsWith('dnsmasq: ')) last = text.slice(9)
      hearing = hear(hearing, text, new Date().toISOString(), (address) =>
        findNeighbour(neighbours, address),
      )
    })
    started.once('exit', (code, name) => {
      if (child !== started) return
      child = null
      if (performance.now() - startedAt > 60_000) {
        pauseS = 1
        said = ''
      }
      tell({ restarts: told.restarts + 1 })
      fail(`dnsmasq ended (${last || (name ?? `exit code ${code}`)}). It is started again.`)
    })
    tell({ state: 'answering', why: null })
    surveyAt = performance.now() + 500
  }

  async function survey(): Promise<void> {
    for (const { name, target } of running) {
      const found = await surveyDhcp(target.address, signal)
      const outcome = found.ok
        ? { answers: found.value, trouble: null }
        : { answers: null, trouble: found.refusal }
      tell({
        networks: told.networks.map((one) => (one.name === name ? { ...one, ...outcome } : one)),
      })
    }
  }

  return {
    apply,
    fail,
    say,
    isDue: () => performance.now() >= dueAt,
    async report(): Promise<void> {
      neighbours = await readFile('/proc/net/arp', 'utf8').catch(() => '')
      if (child !== null && surveying === null && performance.now() >= surveyAt) {
        surveyAt = performance.now() + SURVEY_MS
        surveying = survey()
          .catch((thrown: unknown) => say(renderError(thrown)))
          .finally(() => {
            surveying = null
          })
      }
      await log.flush()
      const text = JSON.stringify({ ...told, clients: hearing.clients })
      const isSame = text === written.text && performance.now() - written.at < BEAT_MS
      if (isSame) return
      const at = new Date().toISOString()
      const path = join(folder, REPORT_FILE)
      await replaceFile(path, `${JSON.stringify({ at, ...told, clients: hearing.clients })}\n`)
      await chown(path, 0, gid)
      await chmod(path, 0o640)
      written = { text, at: performance.now() }
    },
    async [Symbol.asyncDispose]() {
      over.abort()
      await stop()
      await surveying
    },
  }
}

/** What dnsmasq said, in two files of a bounded size. */
function createOwnLog(path: string) {
  let waiting: string[] = []
  let left = 0
  let written = 0
  return {
    /** A flood between two writes is counted, not kept. */
    add(text: string): void {
      if (waiting.length < 1000) waiting.push(`${new Date().toISOString()} ${text}`)
      else left += 1
    },
    async flush(): Promise<void> {
      if (waiting.length === 0) return
      const rest = left > 0 ? [`${left} more lines were left out`] : []
      const text = `${[...waiting, ...rest].join('\n')}\n`
      waiting = []
      left = 0
      if (written > MAX_LOG_BYTES) {
        await rename(path, `${path}.1`)
        written = 0
      }
      await appendFile(path, text, { mode: 0o600 })
      written += text.length
    },
  }
}
