/** `pnpm start --proxy` on a host with a wire of its own, and what its page and its report say. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { appendFile, chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { $ } from 'zx'
import { parseReport, type ProxyReport } from '#fleet/proxy/rules/report.ts'
import { renderRevision } from '#fleet/proxy/rules/wish.ts'
import { collectWords, waitUntil } from '../waiting.ts'
import { type createDnsmasqHost, HOST_ADDRESS } from './dnsmasq-host.ts'
import { GET, POST } from './pxe-server.ts'

const programOf = (name: string) =>
  fileURLToPath(new URL(`../../../runtime/bin/${name}`, import.meta.url))
const START = programOf('start.ts')
const SERVER = programOf('flasher-web.mjs')
const PROXY = programOf('flasher-web-proxy.mjs')
const run = $({ quiet: true, verbose: false })
const PASSWORD = 'a password for tests'

type Host = Awaited<ReturnType<typeof createDnsmasqHost>>

/** Before the server starts: what it has for firmware. */
export async function layBootFiles({ folder }: Host): Promise<void> {
  const boots = join(folder, 'state/boot')
  await mkdir(boots, { recursive: true })
  for (const name of ['shimx64.efi', 'grubx64.efi', 'ipxe.efi'])
    await writeFile(join(boots, name), name.repeat(1000))
}

const SUDOER = 64_124

/** Only somebody who may use sudo keeps what it takes to gain rights. */
function renderCommand(uid: number | undefined, words: readonly string[]): readonly string[] {
  const user = [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
  const bounds = uid === SUDOER ? [] : ['--bounding-set=-all', '--no-new-privs']
  const prefix = uid === undefined ? [] : ['setpriv', ...user, ...bounds]
  return [...prefix, process.execPath, ...words]
}

async function letSudo({ folder }: Host, state: string): Promise<void> {
  const etc = join(folder, 'etc')
  await appendFile(join(etc, 'passwd'), `lab:x:${SUDOER}:${SUDOER}::/nonexistent:/bin/sh\n`)
  await appendFile(join(etc, 'group'), `lab:x:${SUDOER}:\n`)
  await appendFile(join(etc, 'shadow'), 'lab:*:20000:0:99999:7:::\n')
  const line = 'lab ALL=(root) NOPASSWD: ALL\n'
  await writeFile(join(etc, 'sudoers.d/lab'), line, { mode: 0o440 })
  await run`chown -R ${SUDOER}:${SUDOER} ${state}`
}

/** Folders of the wish and of the proxy, and what the unit has in the environment. */
function placesOf(uid: number | undefined, state: string) {
  const wishes = join(state, uid === undefined ? 'proxy' : 'run')
  return uid === undefined
    ? { wishes, folder: `/run/flasher-proxy-${renderRevision(wishes)}`, more: {} }
    : { wishes, folder: '/run/flasher-proxy', more: { RUNTIME_DIRECTORY: wishes } }
}

/** The UDP sockets of the host. */
export function listUdp({ enter }: Host): string {
  const [program = '', ...words] = enter
  return spawnSync(program, [...words, 'ss', '-lunpH'], { encoding: 'utf8' }).stdout
}

/** The number of its dnsmasq's process. */
export const pidOfDnsmasq = (host: Host) => Number(/"dnsmasq",pid=(\d+)/.exec(listUdp(host))?.[1])

/** `flasher-web-proxy` alone. */
export function runProxy({ enter }: Host, wishes: string, folder: string) {
  const words = [process.execPath, PROXY, 'run', '--wish', wishes, '--folder', folder]
  const child = spawn(enter[0] ?? '', [...enter.slice(1), ...words])
  return { child, ended: once(child, 'exit'), said: collectWords(child) }
}

interface OwnProxyOptions {
  readonly port?: string
  readonly args?: readonly string[]
  /** As the unit has it: by this user, and the proxy runs by itself. */
  readonly uid?: number
  /** `pnpm start` by somebody who is not root, but may use sudo. */
  readonly isSudoer?: boolean
}

/** Needs root and the packages dnsmasq-base and iproute2. */
export async function startOwnProxy(
  host: Host,
  { port = '8123', args = ['--proxy'], uid, isSudoer = false }: OwnProxyOptions = {},
) {
  const state = join(host.folder, 'state')
  const { wishes, folder, more } = placesOf(uid, state)
  await mkdir(state, { recursive: true })
  await chmod(host.folder, 0o755)
  if (uid !== undefined) await run`chown -R ${uid}:${uid} ${state}`
  if (isSudoer) await letSudo(host, state)
  const command = renderCommand(
    isSudoer ? SUDOER : uid,
    uid === undefined ? [START, ...args] : [SERVER],
  )
  const [program = '', ...words] = [...host.enter, ...command]
  const child = spawn(program, words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env['PATH'],
      HOME: state,
      FLASHER_PATHS_STATE_DIR: state,
      FLASHER_CONFIG_FILE: '/dev/null',
      FLASHER_ADMIN_PASSWORD: PASSWORD,
      FLASHER_SERVER_PORT: port,
      ...more,
    },
  })
  const ended = once(child, 'exit')
  const said = collectWords(child)
  await waitUntil(async () => said().includes('Pages:'), said)
  const base = `http://${HOST_ADDRESS}:${port}`
  const read = async () =>
    parseReport(await readFile(join(folder, 'report.json'), 'utf8').catch(() => ''), new Date())
  return {
    folder,
    said,
    wish: join(wishes, 'wish.json'),
    /** Runs the proxy with the rights that its unit leaves; resolves to its exit code. */
    async runUnit(unit: string): Promise<number | null> {
      const rights = [...unit.matchAll(/^CapabilityBoundingSet=(.*)$/gm)].flatMap(
        ([, names = '']) => names.split(' ').map((name) => `+${name.slice(4).toLowerCase()}`),
      )
      const [, given = ''] = /^ExecStart=\S+ (.*)$/m.exec(unit) ?? []
      const options = given.replace('/run/flasher-web', wishes).split(' ')
      const bounds = [`--bounding-set=-all,${rights.join(',')}`, '--no-new-privs']
      const [ip = '', ...all] = [...host.enter, 'setpriv', ...bounds, process.execPath, PROXY]
      const proxy = spawn(ip, [...all, ...options], { stdio: ['ignore', 'ignore', 'inherit'] })
      const [code] = await once(proxy, 'exit')
      return typeof code === 'number' ? code : null
    },
    /** Waits until the proxy's report is so. */
    async saw(isSo: (report: ProxyReport) => boolean): Promise<ProxyReport> {
      let last: ProxyReport | null = null
      await waitUntil(
        async () => {
          last = await read()
          return last !== null && isSo(last)
        },
        () => `${said()}\n${JSON.stringify(last, null, 1)}`,
      )
      if (last === null) throw new Error('no report')
      return last
    },
    /** The status, and the page that it leads to. */
    post: (path: string, form: Readonly<Record<string, string>> = {}): Promise<string> =>
      host.evaluate(POST, base, PASSWORD, path, JSON.stringify(form)),
    get: (path: string): Promise<string> => host.evaluate(GET, base, PASSWORD, path),
    isRunning: () => existsSync(folder),
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await ended
    },
  }
}
