/** A server and machines in network namespaces of their own, on one bridge, each behind a link of one rate. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'

export interface LabHost {
  readonly address: string
  /** Starts a program there, which may send us messages where it is Node; it dies with us. */
  spawn(argv: readonly string[], talks?: boolean): ChildProcess
  /** Pulls its cable. */
  cut(): void
  /** Has it receive at so many Mbit/s from now on. */
  receiveAt(mbit: number): void
  /** The bytes that it has sent, as its network card counts them. */
  sentBytes(): number
}

export interface Lab extends AsyncDisposable {
  readonly server: LabHost
  readonly machines: readonly LabHost[]
}

const ip = (...words: readonly string[]) => execFileSync('ip', words, { encoding: 'utf8' })
const tc = (...words: readonly string[]) => execFileSync('tc', words, { encoding: 'utf8' })

const PREFIX = 'flasher-peers'

const limit = (mbit: number) =>
  ['root', 'tbf', 'rate', `${mbit}mbit`, 'burst', '64kb', 'latency', '50ms'] as const

/** Networks of a run that was ended from outside. */
function removeLeftOvers() {
  for (const line of ip('netns', 'list').split('\n')) {
    const [, name = '', pid = ''] = new RegExp(`^(${PREFIX}-(\\d+)-\\w+)`).exec(line) ?? []
    if (name !== '' && !existsSync(`/proc/${pid}`)) ip('netns', 'del', name)
  }
}

/** Needs root. `mbit`: of each link, both ways. */
export function createLab(machines: number, mbit: number): Lab {
  removeLeftOvers()
  const prefix = `${PREFIX}-${process.pid}`
  const children: ChildProcess[] = []
  const made: string[] = []
  const add = (name: string) => {
    ip('netns', 'add', name)
    made.push(name)
    ip('-n', name, 'link', 'set', 'lo', 'up')
  }
  const middle = `${prefix}-switch`
  async function remove() {
    for (const child of children) if (child.exitCode === null) child.kill('SIGKILL')
    await Promise.all(
      children.map((child) =>
        child.exitCode === null && child.signalCode === null ? once(child, 'exit') : null,
      ),
    )
    for (const name of made) ip('netns', 'del', name)
  }

  function createHost(index: number): LabHost {
    const name = `${prefix}-${index}`
    const port = `p${index}`
    const address = `10.77.0.${index + 1}`
    add(name)
    ip('-n', middle, 'link', 'add', port, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', name)
    ip('-n', middle, 'link', 'set', port, 'master', 'br0', 'up')
    ip('-n', name, 'addr', 'add', `${address}/24`, 'dev', 'eth0')
    ip('-n', name, 'link', 'set', 'eth0', 'up')
    tc('-n', name, 'qdisc', 'add', 'dev', 'eth0', ...limit(mbit))
    tc('-n', middle, 'qdisc', 'add', 'dev', port, ...limit(mbit))
    return {
      address,
      spawn(argv, talks = false) {
        const words = ['netns', 'exec', name, 'setpriv', '--pdeathsig', 'KILL', ...argv]
        const child = spawn('ip', words, {
          stdio: ['ignore', 'pipe', 'inherit', ...(talks ? (['ipc'] as const) : [])],
        })
        children.push(child)
        return child
      },
      cut: () => void ip('-n', middle, 'link', 'set', port, 'down'),
      receiveAt: (rate) => void tc('-n', middle, 'qdisc', 'change', 'dev', port, ...limit(rate)),
      sentBytes() {
        const shown = ip('-n', name, '-s', '-j', 'link', 'show', 'eth0')
        return Number(/"tx":\{"bytes":(\d+)/.exec(shown)?.[1] ?? Number.NaN)
      },
    }
  }

  try {
    add(middle)
    ip('-n', middle, 'link', 'add', 'br0', 'type', 'bridge')
    ip('-n', middle, 'link', 'set', 'br0', 'up')
    const server = createHost(0)
    const others = Array.from({ length: machines }, (_, at) => createHost(at + 1))
    return { server, machines: others, [Symbol.asyncDispose]: remove }
  } catch (thrown) {
    for (const name of made) ip('netns', 'del', name)
    throw thrown
  }
}
