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
  rename,
  rm,
  rmdir,
} from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { createTftpProbe } from '#fleet/boot/tftp-probe.ts'
import { UEFI_FILES } from '#fleet/boot/rules/dhcp.ts'
import { listLanAddresses } from '#fleet/boot/pxe-helper.ts'
import { hintOf, isMissing, renderError } from '#kit/foundation/fault.ts'
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
  listMissingFiles,
  MAX_WISH_BYTES,
  parseWish,
  planProxy,
  type ProxyPlan,
  type ProxyWish,
  renderProxyConfiguration,
  WISH_FILE,
} from './rules/wish.ts'

interface ProxyDaemonOptions {
  /** Where flasher-web leaves its wish. */
  readonly wishFolder: string
  /** Of root's alone: configuration, log, TFTP, report. It is removed at the end. */
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
  const { folder, wishFolder, signal, say, untilOff } = options
  await makeOwnFolder(folder)
  await using runner = createRunner(options, (await lstat(wishFolder)).gid)
  let done = ''
  while (!signal.aborted) {
    const wish = await readWish(wishFolder)
    if (wish === null && untilOff) break
    const addresses = listLanAddresses()
    const asked = JSON.stringify([wish, addresses])
    if (asked !== done || runner.isDue()) {
      await runner.apply(wish, addresses).catch((thrown: unknown) => runner.fail(wordsOf(thrown)))
      done = asked
    }
    await runner.report().catch((thrown: unknown) => say(renderError(thrown)))
    await linger(LOOK_MS, signal)
  }
}

const wordsOf = (thrown: unknown) => {
  const hint = hintOf(thrown)
  return `${renderError(thrown)}${hint === undefined ? '' : `. ${hint}`}`
}

async function makeOwnFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o755 })
  const facts = await lstat(folder)
  if (!facts.isDirectory() || facts.uid !== 0) throw new Error(`${folder} is not a folder of root`)
  await chmod(folder, 0o755)
  for (const name of ['dnsmasq', 'tftp']) {
    await rm(join(folder, name), { recursive: true, force: true })
    await mkdir(join(folder, name))
    await chmod(join(folder, name), 0o755)
  }
  // Ours to empty, too: the unit may not pass over owners.
  await chown(join(folder, 'dnsmasq'), 0, NOBODY)
  await chmod(join(folder, 'dnsmasq'), 0o770)
}

/** Null: there is none. A text: why it is not followed. */
async function readWish(wishFolder: string): Promise<ProxyWish | string | null> {
  try {
    const bytes = await readBounded(join(wishFolder, WISH_FILE), MAX_WISH_BYTES)
    const parsed = bytes === null ? null : parseWish(bytes.toString('utf8'))
    if (parsed === null) return 'the wish is no file of a usual size'
    return parsed.ok ? parsed.value : parsed.refusal
  } catch (thrown) {
    return isMissing(thrown) ? null : renderError(thrown)
  }
}

function createRunner(options: ProxyDaemonOptions, gid: number) {
  const { folder, shell, signal, say } = options
  const places = {
    tftp: join(folder, 'tftp'),
    leases: join(folder, 'dnsmasq/leases'),
    pid: join(folder, 'dnsmasq/pid'),
  }
  const configuration = join(folder, 'dnsmasq.conf')
  const log = createOwnLog(join(folder, 'log'))
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

  function tell(next: Partial<Told>): void {
    const words = next.state === 'failed' ? (next.why ?? '') : ''
    if (words !== '' && words !== told.why) say(words)
    told = { ...told, ...next }
  }

  function fail(why: string): void {
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

  async function apply(
    wish: ProxyWish | string | null,
    addresses: ReturnType<typeof listLanAddresses>,
  ): Promise<void> {
    await stop()
    tell({ ...NOTHING, restarts: told.restarts })
    if (wish === null) {
      hearing = NOTHING_HEARD
      return
    }
    if (typeof wish === 'string') return fail(wish)
    const plan = planProxy(wish, addresses)
    const networks = plan.served.map(({ name, device, target: { address } }) => ({
      name,
      device,
      address,
      answers: null,
      trouble: null,
    }))
    tell({ networks, left: plan.left })
    const [first] = plan.served
    if (first === undefined) return tell({ why: 'No network of the wish is here.' })
    await needTools(shell, ['dnsmasq', 'setpriv', 'ss'])
    const { taken, tftpBy } = await findObstacle(plan)
    if (taken !== null) return fail(taken)
    const present = await fillTftpFolder(places.tftp, first.target.baseUrl, signal)
    if (present === null) return fail(`flasher-web does not answer at ${first.target.baseUrl}.`)
    const missing = tftpBy === null ? listMissingFiles(present) : []
    tell({ missing, tftpBy })
    await replaceFile(
      configuration,
      renderProxyConfiguration(plan, { ...places, servesTftp: tftpBy === null }),
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
      if (performance.now() - startedAt > 60_000) pauseS = 1
      tell({ restarts: told.restarts + 1 })
      fail(`dnsmasq ended (${last || (name ?? `exit code ${code}`)}). It is started again.`)
    })
    tell({ state: 'answering', why: null })
    surveyAt = performance.now() + 500
  }

  async function survey(): Promise<void> {
    for (const { name, target } of running) {
      const found = await surveyDhcp(target.address)
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
      await stop()
      await surveying
      for (const name of await readdir(folder))
        await rm(join(folder, name), { recursive: true, force: true })
      // Of systemd's own folder, the unit may only empty it.
      await rmdir(folder).catch(() => undefined)
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
