/** A host with a dnsmasq of its own and a machine on its wire: two network namespaces, and an /etc that is a copy. */
import { chmod, cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { $ } from 'zx'

/** Of the host, on the interface `lan0`. */
export const HOST_ADDRESS = '192.168.98.1'
const HELPER = fileURLToPath(
  new URL('../../../runtime/bin/flasher-web-activate-pxe.mjs', import.meta.url),
)
const CLIENT = fileURLToPath(new URL('pxe-client.ts', import.meta.url))
const run = $({ quiet: true, verbose: false })
let made = 0

/** What `systemctl restart dnsmasq.service` does, with Debian's way to start it; `fail-once` has it fail. */
const renderSystemctl = (folder: string) => `#!/bin/sh
set -eu
[ "$*" = 'restart dnsmasq.service' ] || exit 64
echo restart >> ${folder}/restarts
if [ -e ${folder}/fail-once ]; then rm ${folder}/fail-once; echo 'Job for dnsmasq.service failed.' >&2; exit 1; fi
if [ -e ${folder}/pid ]; then kill "$(cat ${folder}/pid)"; fi
while [ -e ${folder}/pid ] && kill -0 "$(cat ${folder}/pid)" 2>/dev/null; do sleep 0.05; done
rm -f ${folder}/pid
exec dnsmasq -x ${folder}/pid -u root -7 /etc/dnsmasq.d,.dpkg-dist,.dpkg-old,.dpkg-new
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
    [machine, 'eth0', '192.168.98.50/24'],
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
  const systemctl = join(folder, 'systemctl')
  await writeFile(systemctl, renderSystemctl(folder))
  await chmod(systemctl, 0o755)
  undo.defer(async () => {
    const pid = await readFile(join(folder, 'pid'), 'utf8').catch(() => '')
    if (pid !== '') process.kill(Number(pid))
  })

  const held = undo.move()
  const mounts = `mount --bind ${etc} /etc && mount --bind ${systemctl} /usr/bin/systemctl`
  return {
    folder,
    /** Where the helper's file comes to be. */
    active: join(conf, 'flasher-pxe-active.conf'),
    conf,
    /** What a program on the host is started with. */
    enter: ['ip', 'netns', 'exec', host, 'sh', '-c', `${mounts} && exec "$@"`, 'sh'],
    /** Runs the helper as root, as sudo would. */
    async help(...args: readonly string[]) {
      const words = [...this.enter, process.execPath, HELPER, ...args]
      const { exitCode, stdout, stderr } = await run({ nothrow: true })`umask 077; ${words}`
      return { exitCode, stdout, stderr }
    },
    /** What a machine on the wire is offered; null: nothing. */
    async ask(arch: number, who: 'firmware' | 'ipxe'): Promise<unknown> {
      const words = ['ip', 'netns', 'exec', machine, process.execPath, CLIENT, String(arch), who]
      const { stdout } = await run`${words}`
      return JSON.parse(stdout)
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
