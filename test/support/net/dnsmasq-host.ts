/** A host with a dnsmasq of its own and a machine on its wire: two network namespaces, and an /etc that is a copy. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { $ } from 'zx'
import { collectWords, waitUntil } from '../waiting.ts'

/** The address of the host on the interface `lan0`. */
export const HOST_ADDRESS = '192.168.98.1'
const MACHINE_ADDRESS = '192.168.98.50'
const HELPER = fileURLToPath(
  new URL('../../../runtime/bin/flasher-web-activate-pxe.mjs', import.meta.url),
)
const CLIENT = fileURLToPath(new URL('pxe-client.ts', import.meta.url))
const run = $({ quiet: true, verbose: false })
let made = 0

/** Asks the loop below, as systemctl asks systemd: what it starts is not in the caller's sandbox. */
const renderSystemctl = (folder: string) => `#!/bin/sh
set -eu
[ "$*" = 'restart dnsmasq.service' ] || exit 64
echo restart > ${folder}/request
read -r code said < ${folder}/result
[ "$code" = 0 ] || echo "$said" >&2
exit "$code"
`

/** Restarts dnsmasq with Debian's way to start it; `fail-once` has it fail. */
const renderInit = (folder: string) => `#!/bin/sh
stop() {
  [ -e ${folder}/pid ] || return 0
  pid=$(cat ${folder}/pid)
  kill "$pid"
  while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done
  rm -f ${folder}/pid
}
echo ready
while read -r _ < ${folder}/request; do
  echo restart >> ${folder}/restarts
  stop
  if [ -e ${folder}/fail-once ]; then
    rm ${folder}/fail-once
    echo '1 Job for dnsmasq.service failed.' > ${folder}/result
  else
    said=$(dnsmasq -x ${folder}/pid -u root -7 /etc/dnsmasq.d,.dpkg-dist,.dpkg-old,.dpkg-new 2>&1 >/dev/null)
    echo "$? $said" > ${folder}/result
  fi
done
`

/** Needs root. `await using`. */
export async function createDnsmasqHost() {
  made += 1
  const [host, machine] = [
    `flasher-dns-${process.pid}-${made}`,
    `flasher-box-${process.pid}-${made}`,
  ]
  await using undo = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'flasher-dnsmasq-'))
  undo.defer(() => rm(folder, { recursive: true, force: true }))
  for (const name of [host, machine]) {
    await run`ip netns add ${name}`
    undo.defer(async () => void (await run`ip netns del ${name}`))
  }
  await run`ip link add lan0 netns ${host} type veth peer name eth0 netns ${machine}`
  for (const [name, card, address] of [
    [host, 'lan0', `${HOST_ADDRESS}/24`],
    [machine, 'eth0', `${MACHINE_ADDRESS}/24`],
  ] as const) {
    await run`ip -n ${name} link set lo up`
    await run`ip -n ${name} addr add ${address} dev ${card}`
    await run`ip -n ${name} link set ${card} up`
  }
  await run`ip -n ${machine} route add 255.255.255.255 dev eth0`

  const etc = join(folder, 'etc')
  const conf = join(etc, 'dnsmasq.d')
  await cp('/etc', etc, { recursive: true, verbatimSymlinks: true })
  await rm(conf, { recursive: true, force: true })
  await mkdir(conf)
  await mkdir(join(folder, 'tftp'))
  const base = `port=0\nenable-tftp\ntftp-root=${folder}/tftp\n`
  await writeFile(join(conf, 'flasher-pxe.conf'), base)
  const [systemctl, init] = [join(folder, 'systemctl'), join(folder, 'init')]
  await writeFile(systemctl, renderSystemctl(folder))
  await writeFile(init, renderInit(folder))
  await chmod(systemctl, 0o755)
  await run`mkfifo -m 600 ${join(folder, 'request')} ${join(folder, 'result')}`
  const mounts = `mount --bind ${etc} /etc && mount --bind ${systemctl} /usr/bin/systemctl`
  const enter = ['netns', 'exec', host, 'sh', '-c', `${mounts} && exec "$@"`, 'sh']
  undo.defer(async () => {
    const pid = await readFile(join(folder, 'pid'), 'utf8').catch(() => '')
    if (pid !== '') process.kill(Number(pid))
  })
  const loop = spawn('ip', [...enter, 'sh', init], { stdio: ['ignore', 'pipe', 'inherit'] })
  undo.defer(async () => {
    const ended = once(loop, 'exit')
    loop.kill('SIGKILL')
    await ended
  })
  await once(loop.stdout, 'data')

  const held = undo.move()
  return {
    folder,
    /** Where the helper's file comes to be. */
    active: join(conf, 'flasher-pxe-active.conf'),
    conf,
    /** What a program on the host is started with. */
    enter: ['ip', ...enter],
    /** Runs the helper as root, as sudo would. */
    async help(...args: readonly string[]) {
      const words = [...this.enter, process.execPath, HELPER, ...args]
      const { exitCode, stdout, stderr } = await run({ nothrow: true })`umask 077; ${words}`
      return { exitCode, stdout, stderr }
    },
    /** What a machine on the wire is offered; null: nothing. */
    async ask(arch: number, who: 'firmware' | 'http' | 'ipxe'): Promise<unknown> {
      const words = ['ip', 'netns', 'exec', machine, process.execPath, CLIENT, String(arch), who]
      const { stdout } = await run`${words}`
      return JSON.parse(stdout)
    },
    /** Another wire between the two; its address on the host. */
    async addWire(): Promise<string> {
      await run`ip link add lan1 netns ${host} type veth peer name eth1 netns ${machine}`
      for (const [name, card, own] of [
        [host, 'lan1', 1],
        [machine, 'eth1', 50],
      ] as const) {
        await run`ip -n ${name} addr add 192.168.97.${own}/24 dev ${card}`
        await run`ip -n ${name} link set ${card} up`
      }
      return '192.168.97.1'
    },
    /** What a machine on the wire loads. */
    async fetchByTftp(name: string, from = HOST_ADDRESS): Promise<string> {
      const address = `tftp://${from}/${name}`
      return (await run`ip netns exec ${machine} curl -sS ${address}`).stdout
    },
    /** Runs a dnsmasq with this configuration alone until the end of the scope. */
    async serve(configuration: string): Promise<AsyncDisposable> {
      const file = join(folder, 'block.conf')
      await writeFile(file, configuration)
      const files = [`--conf-file=${file}`, `--dhcp-leasefile=${join(folder, 'block.leases')}`]
      const options = ['--keep-in-foreground', '--user=root', '--log-facility=-', '--pid-file=']
      const words = ['netns', 'exec', host, 'setpriv', '--pdeathsig', 'KILL', 'dnsmasq']
      const server = spawn('ip', [...words, ...files, ...options], {
        stdio: ['ignore', 'ignore', 'pipe'],
      })
      const ended = once(server, 'exit')
      await once(server.stderr, 'data')
      server.stderr.resume()
      return {
        async [Symbol.asyncDispose]() {
          server.kill('SIGKILL')
          await ended
        },
      }
    },
    /** Runs Kea on the machine's side, which assigns addresses and names this boot file, until the end of the scope. */
    async serveByKea(bootFile: string): Promise<AsyncDisposable> {
      const file = join(folder, 'kea.json')
      const subnet = `${HOST_ADDRESS.replace(/\d+$/, '0')}/24`
      const pool = ['60', '99'].map((last) => HOST_ADDRESS.replace(/\d+$/, last)).join('-')
      const Dhcp4 = {
        'interfaces-config': { interfaces: ['eth0'] },
        'lease-database': { type: 'memfile', persist: false },
        subnet4: [{ id: 1, subnet, pools: [{ pool }], 'boot-file-name': bootFile }],
        loggers: [{ name: 'kea-dhcp4', severity: 'INFO', output_options: [{ output: 'stdout' }] }],
      }
      await writeFile(file, JSON.stringify({ Dhcp4 }))
      const words = ['netns', 'exec', machine, 'setpriv', '--pdeathsig', 'KILL', 'kea-dhcp4']
      const server = spawn('ip', [...words, '-c', file], {
        stdio: ['ignore', 'pipe', 'inherit'],
        env: { ...process.env, KEA_PIDFILE_DIR: folder, KEA_LOCKFILE_DIR: 'none' },
      })
      const ended = once(server, 'exit')
      const said = collectWords(server)
      await waitUntil(async () => said().includes('DHCP4_STARTED'), said)
      return {
        async [Symbol.asyncDispose]() {
          server.kill('SIGKILL')
          await ended
        },
      }
    },
    /** Puts a machine in QEMU on the wire, beside a DHCP server that gives out addresses, and what `own` adds. */
    async openWire(own: readonly string[] = []) {
      const within = run({ prefix: `ip -n ${machine} ` })
      await within`link add br0 type bridge`
      await within`link set eth0 master br0`
      await within`addr flush dev eth0`
      await within`addr add ${MACHINE_ADDRESS}/24 dev br0`
      await within`tuntap add tap0 mode tap`
      await within`link set tap0 master br0`
      for (const card of ['br0', 'tap0']) await within`link set ${card} up`
      const leases = join(folder, 'leases')
      const range = `${MACHINE_ADDRESS.replace(/\d+$/, '60')},${MACHINE_ADDRESS.replace(/\d+$/, '99')}`
      const mortal = ['netns', 'exec', machine, 'setpriv', '--pdeathsig', 'KILL']
      const options = ['--keep-in-foreground', '--conf-file=/dev/null', '--port=0', '--user=root']
      const wire = ['--interface=br0', '--bind-interfaces', '--log-facility=-']
      const addresses = [`--dhcp-range=${range},255.255.255.0,1h`, `--dhcp-leasefile=${leases}`]
      const router = spawn(
        'ip',
        [...mortal, 'dnsmasq', ...options, ...wire, ...addresses, ...own],
        {
          stdio: ['ignore', 'ignore', 'pipe'],
        },
      )
      held.defer(async () => {
        const ended = once(router, 'exit')
        router.kill('SIGKILL')
        await ended
      })
      await once(router.stderr, 'data')
      return { namespace: machine, netdev: 'tap,id=net,ifname=tap0,script=no,downscript=no' }
    },
    /** Runs a module's text on the host; what it printed. */
    async evaluate(text: string, ...args: readonly string[]): Promise<string> {
      const words = [...this.enter, process.execPath, '--input-type=module', '-e', text, ...args]
      return (await run`${words}`).stdout
    },
    async countRestarts() {
      const text = await readFile(join(folder, 'restarts'), 'utf8').catch(() => '')
      return text.split('\n').length - 1
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}
