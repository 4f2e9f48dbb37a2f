/** pnpm bench:installs: the seconds from nothing to the page of a running server, for each way to install one. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { $ } from 'zx'
import { writeAptTree } from '#build/release/apt.ts'
import { readCodename, readSources } from '#test/support/disk/debian-tree.ts'
import { serveFolder } from '#test/support/http/folder-server.ts'
import { findPort } from '#test/support/http/ports.ts'
import { makeOpenpgpKey } from '#test/support/system/openpgp-key.ts'
import { openContainers, openDebs, openServer } from '#test/support/vm/built-images.ts'
import { startAppliance, writeServerDisk } from '#test/support/vm/server-appliance.ts'
import { publishText } from './publish.ts'

const EPOCH = 1_700_000_000
/** Seconds that are wanted at most. */
const WANTED = 60
const MAX_MS = 900_000
const quiet = $({ quiet: true, verbose: false })

/** What somebody would begin with, and what they would then type: `start` returns the server's process. */
interface Way {
  readonly name: string
  readonly from: string
  readonly prepare: (folder: string) => Promise<Prepared>
}

interface Prepared extends AsyncDisposable {
  readonly start: (port: number) => Promise<Running>
}

interface Running extends AsyncDisposable {
  /** Where the server is. */
  readonly url: string
  /** How the server ended; null while it runs. */
  readonly end: () => string | null
}

const nothing = async () => {}
const environmentOf = (folder: string, port: number) => ({
  ...process.env,
  HOME: folder,
  // Which registry there is, and who vouches for it, is the host's affair.
  npm_config_userconfig: join(homedir(), '.npmrc'),
  npm_config_cache: join(folder, 'cache'),
  FLASHER_PATHS_STATE_DIR: join(folder, 'state'),
  FLASHER_SERVER_HOST: '127.0.0.1',
  FLASHER_SERVER_PORT: String(port),
})

interface Started {
  readonly argv: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  readonly port: number
}

function start({ argv, env, cwd, port }: Started): Running {
  const [program = '', ...rest] = argv
  const child = spawn(program, rest, { env, cwd, stdio: 'ignore', detached: true })
  return {
    url: `http://127.0.0.1:${port}`,
    end: () => (child.exitCode === null ? null : `the server ended with ${child.exitCode}`),
    [Symbol.asyncDispose]: () => stop(child),
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM')
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

/** The packed package stands in for the one of a registry, from which all that it depends on comes. */
async function pack(folder: string): Promise<string> {
  await quiet`npm pack --silent --pack-destination ${folder}`
  const { version } = await openDebs()
  return join(folder, `flasher-lab-${version}.tgz`)
}

const WAYS: Readonly<Record<string, Way>> = {
  apt: {
    name: '`apt-get update`, `apt-get install flasher-server`',
    from: 'a minimal Debian, the apt repository of a release on this host, everything else from Debian',
    prepare: prepareApt,
  },
  npx: {
    name: '`npx --package flasher-lab flasher-web`',
    from: 'npm with an empty cache, the packed package on this host, what it depends on from the registry',
    async prepare(folder) {
      const tarball = await pack(folder)
      return {
        start: async (port) =>
          start({
            argv: ['npx', '--yes', '--package', tarball, 'flasher-web'],
            env: environmentOf(folder, port),
            cwd: folder,
            port,
          }),
        [Symbol.asyncDispose]: nothing,
      }
    },
  },
  npm: {
    name: '`npm install --global flasher-lab`, `flasher-web`',
    from: 'the same, into an empty prefix',
    async prepare(folder) {
      const tarball = await pack(folder)
      const prefix = join(folder, 'prefix')
      return {
        async start(port) {
          const env = environmentOf(folder, port)
          await $({
            quiet: true,
            verbose: false,
            env,
          })`npm install --silent --global --prefix ${prefix} ${tarball}`
          return start({ argv: [join(prefix, 'bin/flasher-web')], env, cwd: folder, port })
        },
        [Symbol.asyncDispose]: nothing,
      }
    },
  },
  containers: {
    name: '`podman pull`, `podman run flasher-web`',
    from: 'podman without images, the archive of a release on this host',
    prepare: prepareContainer,
  },
  appliance: {
    name: '`zstd -d flasher-server-x86_64.img.zst`, the start of a virtual machine with it',
    from: 'the disk of a release on this host, QEMU without hardware acceleration, one processor, a BIOS',
    async prepare(folder) {
      await openServer()
      return {
        async start() {
          const disk = await writeServerDisk(folder)
          const machine = await startAppliance({ firmware: 'bios', disk })
          let hasEnded = false
          void machine.qemu.ended.then(() => (hasEnded = true))
          return {
            url: machine.url,
            end: () => (hasEnded ? 'the machine ended' : null),
            [Symbol.asyncDispose]: () => machine[Symbol.asyncDispose](),
          }
        },
        [Symbol.asyncDispose]: nothing,
      }
    },
  },
}

/** A Debian with apt and nothing of ours, which exists before the clock starts. */
async function prepareApt(folder: string): Promise<Prepared> {
  const { programs, server } = await openDebs()
  const [root, tree] = [join(folder, 'root'), join(folder, 'apt')]
  await chmod(folder, 0o755)
  const key = await makeOpenpgpKey(folder)
  await writeAptTree({ debs: [programs, server], to: tree, epoch: EPOCH, key })
  const web = await serveFolder(tree)
  const codename = await readCodename()
  const input = await readSources(codename)
  const hook = '--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr'
  await $({
    quiet: true,
    verbose: false,
    input,
  })`mmdebstrap --mode=root --variant=apt --quiet ${hook} ${codename} ${root} -`
  await cp(join(tree, 'flasher.asc'), join(root, 'etc/apt/keyrings/flasher.asc'))
  const line = `deb [signed-by=/etc/apt/keyrings/flasher.asc] ${web.url} stable main\n`
  await writeFile(join(root, 'etc/apt/sources.list.d/flasher.list'), line)
  return {
    async start(port) {
      const within = $({ quiet: true, verbose: false })
      await within`chroot ${root} apt-get update -qq`
      await within`chroot ${root} env DEBIAN_FRONTEND=noninteractive apt-get install -qq flasher-server`
      await mkdir(join(root, 'var/lib/flasher'), { recursive: true })
      await within`chroot ${root} chown flasher:flasher /var/lib/flasher`
      // In a mount namespace of its own, so that nothing stays mounted.
      const script =
        'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot --userspec=flasher:flasher "$0" flasher-web'
      const env = { ...environmentOf('/var/lib/flasher', port), PATH: '/usr/bin:/usr/sbin:/bin' }
      return start({
        argv: ['unshare', '--mount', 'sh', '-c', script, root],
        env: { ...env, FLASHER_PATHS_STATE_DIR: '/var/lib/flasher' },
        cwd: folder,
        port,
      })
    },
    async [Symbol.asyncDispose]() {
      web[Symbol.dispose]()
    },
  }
}

async function prepareContainer(folder: string): Promise<Prepared> {
  const { archive, version } = await openContainers()
  const places = ['root', 'runroot', 'tmpdir'].map((name) => `--${name}=${join(folder, name)}`)
  const podman = [
    'podman',
    ...places,
    '--log-level=error',
    '--runtime=runc',
    '--cgroup-manager=cgroupfs',
  ]
  const limits = ['--ulimit=nofile=4096:4096', '--ulimit=nproc=4096:4096', '--cap-drop=all']
  return {
    async start(port) {
      await quiet`${podman} pull --quiet oci-archive:${archive}:flasher-web:${version}`
      const settings = [`FLASHER_SERVER_PORT=${port}`, 'FLASHER_SERVER_HOST=127.0.0.1']
      const env = settings.map((one) => `--env=${one}`)
      const how = ['--name=web', '--network=host', '--read-only', '--volume=state:/var/lib/flasher']
      const argv = [...podman, 'run', ...how, ...limits, ...env, `localhost/flasher-web:${version}`]
      return start({ argv, env: process.env, cwd: folder, port })
    },
    async [Symbol.asyncDispose]() {
      await quiet`${podman} rm --force --time 2 web`.nothrow()
      await quiet`${podman} volume rm state`.nothrow()
      await quiet`${podman} rmi --all --force`.nothrow()
    },
  }
}

/** Seconds until the login page was there; the server is ended. */
async function measure({ prepare }: Way): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'flasher-installs-'))
  try {
    await using prepared = await prepare(folder)
    const port = await findPort()
    const began = performance.now()
    await using running = await prepared.start(port)
    await waitForPage(running)
    return (performance.now() - began) / 1000
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function waitForPage({ url, end }: Running): Promise<void> {
  const page = `${url}/ui/login`
  const until = performance.now() + MAX_MS
  while (performance.now() < until) {
    const ended = end()
    if (ended !== null) throw new Error(ended)
    // QEMU takes connections long before the machine has a network.
    const answer = await fetch(page, { signal: AbortSignal.timeout(3000) }).catch(() => null)
    if (answer?.ok === true && (await answer.text()).includes('password')) return
    await sleep(50)
  }
  throw new Error(`${page} did not appear within ${MAX_MS / 1000} s`)
}

const { values } = parseArgs({
  options: {
    ways: { type: 'string', default: Object.keys(WAYS).join(',') },
    runs: { type: 'string', default: '3' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help || process.geteuid?.() !== 0) {
  console.log(`pnpm bench:installs [--ways ${Object.keys(WAYS).join(',')}] [--runs 3] [--write]

Needs root, mmdebstrap, podman, QEMU, a registry for npm, and what build:images needs. --write puts the tables into docs/performance.md.`)
  process.exit(values.help ? 0 : 3)
}
const rows = new Map<string, string[]>()
let worst = 0
for (const name of values.ways.split(',')) {
  const way = WAYS[name]
  if (way === undefined) throw new Error(`there is no way ${name}`)
  const seconds: number[] = []
  for (let run = 0; run < Number(values.runs); run += 1) seconds.push(await measure(way))
  const sorted = seconds.toSorted((a, b) => a - b)
  const median = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
  worst = Math.max(worst, median)
  console.log(`${name}: ${seconds.map((one) => one.toFixed(1)).join(', ')} s`)
  const shown = median > WANTED ? `**${median.toFixed(1)}**` : median.toFixed(1)
  // An emulated machine is measured apart from what runs on this one.
  const record = name === 'appliance' ? 'installs-appliance' : 'installs'
  const row = `| ${way.name} | ${way.from} | ${shown} |`
  rows.set(record, [...(rows.get(record) ?? []), row])
}
const head = '| Typed | On | Seconds |\n| --- | --- | ---: |'
const words = `${values.runs === '1' ? 'One run each' : `Median of ${values.runs} runs`}; wanted: at most ${WANTED} s.`
for (const [record, made] of values.write ? rows : []) {
  publishText(record, [words, `${head}\n${made.join('\n')}`].join('\n\n'))
}
process.exitCode = worst > WANTED ? 1 : 0
