/** A network of its own, for machines, servers and a DHCP server that nobody else meets. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer, Server } from 'node:net'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { $ } from 'zx'

/** Where our end of the network is. */
export const LAB_ADDRESS = '192.168.99.1'
export const LAB_PREFIX = 24
/** Our interface to it. */
export const LAB_INTERFACE = 'lan0'
const CARDS = ['tap0', 'tap1'] as const

const LISTENER = fileURLToPath(new URL('namespace-listener.ts', import.meta.url))
const DOOR = fileURLToPath(new URL('namespace-door.ts', import.meta.url))
const run = $({ quiet: true, verbose: false })
let made = 0

export interface Namespace extends AsyncDisposable {
  readonly name: string
  /** The values of QEMU's `-netdev` for the card of a machine, and for that of a second one beside it. */
  readonly netdevs: readonly [string, string]
  /** Starts a program in it; it dies with us, and at the end at the latest. */
  spawn(argv: readonly string[], env?: Readonly<Record<string, string>>): ChildProcess
  /** An address on the host's loopback that leads to `port` in the namespace, of our end unless `host` says otherwise. */
  openDoor(port: number, host?: string): Promise<string>
  /** A listener on its own loopback, for a server of ours outside. */
  listenWithin(): Promise<{ readonly listener: Server; readonly port: number }>
}

/** Needs root. */
export async function createNamespace(): Promise<Namespace> {
  made += 1
  const name = `flasher-test-${process.pid}-${made}`
  await using undo = new AsyncDisposableStack()
  await removeLeftOvers()
  await run`ip netns add ${name}`
  undo.defer(async () => {
    await run`ip netns del ${name}`
  })
  const within = run({ prefix: `ip netns exec ${name} ` })
  await within`ip link set lo up`
  await within`ip link add ${LAB_INTERFACE} type bridge`
  await within`ip addr add ${LAB_ADDRESS}/${LAB_PREFIX} dev ${LAB_INTERFACE}`
  for (const card of CARDS) {
    await within`ip tuntap add ${card} mode tap`
    await within`ip link set ${card} master ${LAB_INTERFACE}`
  }
  for (const card of [LAB_INTERFACE, ...CARDS]) await within`ip link set ${card} up`
  const children = undo.use(new AsyncDisposableStack())

  const start: Namespace['spawn'] = (argv, env = {}) => {
    const words = ['netns', 'exec', name, 'setpriv', '--pdeathsig', 'KILL', ...argv]
    const child = spawn('ip', words, {
      env: { PATH: process.env['PATH'], HOME: '/nonexistent', LANG: 'C.UTF-8', ...env },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    })
    const ended = once(child, 'exit')
    children.defer(async () => {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      await ended
    })
    return child
  }

  const held = undo.move()
  return {
    name,
    netdevs: [planNetdev(CARDS[0]), planNetdev(CARDS[1])],
    spawn: start,
    async openDoor(port, host = LAB_ADDRESS) {
      const server = createServer()
      server.listen(0, '127.0.0.1')
      await once(server, 'listening')
      const address = server.address()
      if (address === null || typeof address === 'string') throw new Error('no port')
      const door = start([process.execPath, DOOR, host, String(port)])
      door.send('listen', server)
      await once(door, 'message')
      server.close()
      return `http://127.0.0.1:${address.port}`
    },
    async listenWithin() {
      const child = start([process.execPath, LISTENER])
      const [told, listener] = await once(child, 'message')
      const { port } = z.object({ port: z.int() }).parse(told)
      if (!(listener instanceof Server)) throw new Error('a listener was expected')
      return { listener, port }
    },
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

const planNetdev = (card: string) => `tap,id=net,ifname=${card},script=no,downscript=no`

/** Removes the namespaces of test runs that were killed. */
async function removeLeftOvers(): Promise<void> {
  const { stdout } = await run`ip netns list`
  for (const [name, pid] of stdout.matchAll(/^flasher-test-(\d+)-\d+/gm)) {
    const isAlive = existsSync(`/proc/${pid}`)
    if (!isAlive) await run({ nothrow: true })`ip netns del ${name}`
  }
}
