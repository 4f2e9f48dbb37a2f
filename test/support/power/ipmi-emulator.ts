/** Debian's ipmi_sim on loopback, with a chassis of files: what a BMC was asked for can be read there. */
import { spawn, type ChildProcess } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const EMU = `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
`

/** `get|set NAME [VALUE]…`, as ipmi_sim calls it. */
const CHASSIS = `#!/bin/sh
cd "$(dirname "$0")" || exit 1
echo "$@" >>log
shift
verb=$1; shift
while [ $# -gt 0 ]; do
  case $verb in
    get) echo "$1:$(cat "is-$1" 2>/dev/null || echo 0)"; shift;;
    set) [ "$1" = boot ] && [ -e forgets ] || echo "$2" >"is-$1"; shift 2;;
    *) shift;;
  esac
done
`

export type IpmiEmulator = Awaited<ReturnType<typeof startIpmi>>

/** Where it runs: on this host, or in a namespace, where every port is free. */
interface IpmiPlace {
  spawn(argv: readonly string[]): ChildProcess
  readonly port: number
}

const hereOf = (port: number): IpmiPlace => ({
  port,
  spawn: ([program = '', ...words]) => spawn(program, words, { stdio: 'ignore' }),
})

/** Starts it on loopback; the user is `admin` with the password `s3cret`. */
export async function startIpmi(place?: IpmiPlace) {
  const { port, spawn: start } = place ?? hereOf(await findPort())
  const folder = await mkdtemp(join(tmpdir(), 'flasher-ipmi-'))
  const at = (name: string) => join(folder, name)
  await mkdir(at('state'))
  await writeFile(at('bmc.emu'), EMU)
  await writeFile(at('chassis'), CHASSIS)
  await chmod(at('chassis'), 0o755)
  await writeFile(at('lan.conf'), renderLan(port, at('chassis')))
  const files = ['-c', at('lan.conf'), '-f', at('bmc.emu'), '-s', at('state')]
  const child = start(['ipmi_sim', ...files, '-n'])
  const ended = once(child, 'exit')
  const write = (name: string, text: string) => writeFile(at(name), text)
  const read = (name: string) => readFile(at(name), 'utf8').catch(() => '')
  const reset = async () => {
    await rm(at('forgets'), { force: true })
    await write('is-power', '0\n')
    await write('is-boot', 'none\n')
    await write('log', '')
  }
  await reset()
  // It says nothing when it is ready, and a call before that waits for seconds.
  await sleep(500)
  return {
    address: `127.0.0.1:${port}`,
    port,
    reset,
    isOn: async () => (await read('is-power')).trim() === '1',
    turn: (on: boolean) => write('is-power', on ? '1\n' : '0\n'),
    boot: async () => (await read('is-boot')).trim(),
    forgetBoots: () => write('forgets', ''),
    log: () => read('log'),
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const renderLan = (port: number, chassis: string) => `name "vm1"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 ${port}
    priv_limit admin
    allowed_auths_callback none md2 md5 straight
    allowed_auths_user none md2 md5 straight
    allowed_auths_operator none md2 md5 straight
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "${chassis} 0x20"
  poweroff_wait 5
  kill_wait 5
  user 1 true "" "test" user 10 none md2 md5 straight
  user 2 true "admin" "s3cret" admin 10 none md2 md5 straight
`

async function findPort(): Promise<number> {
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const { port } = socket.address()
  await new Promise<void>((resolve) => socket.close(resolve))
  return port
}
