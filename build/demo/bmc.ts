/** The BMC of the demo's machine: ipmi_sim on loopback, which only notes what it is asked for. */
import { createSocket } from 'node:dgram'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface Bmc extends AsyncDisposable {
  /** Host and port, as the server takes it. */
  readonly address: string
  readonly user: string
  readonly password: string
  /** Whether the machine is to be on. */
  isOn(): Promise<boolean>
}

const EMU = `mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr
sel_enable 0x20 1000 0x0a
mc_enable 0x20
`

/** `get|set NAME [VALUE]…`, as ipmi_sim calls it; `forgets` has it forget boot devices, as some BMCs do. */
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

interface BmcOptions {
  /** Its folder holds the state: `is-power` and `is-boot`, and `log` with each request. */
  readonly folder: string
  readonly port: number
  readonly user: string
  readonly password: string
}

/** Lays the files of a BMC. Resolves to the command line that starts it. */
export async function layBmc({ folder, ...lan }: BmcOptions): Promise<readonly string[]> {
  const at = (name: string) => join(folder, name)
  await mkdir(at('state'), { recursive: true, mode: 0o700 })
  await writeFile(at('bmc.emu'), EMU)
  await writeFile(at('chassis'), CHASSIS)
  await chmod(at('chassis'), 0o755)
  await writeFile(at('lan.conf'), renderLan(lan, at('chassis')), { mode: 0o600 })
  const files = ['-c', at('lan.conf'), '-f', at('bmc.emu'), '-s', at('state')]
  return ['ipmi_sim', ...files, '-n']
}

const renderLan = (
  { port, user, password }: Omit<BmcOptions, 'folder'>,
  chassis: string,
) => `name "vm1"
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
  user 2 true "${user}" "${password}" admin 10 none md2 md5 straight
`

interface StartOptions {
  readonly folder: string
  readonly password: string
  /** Words before its command line; with `setpriv` it ends with this process. */
  readonly tie: readonly string[]
}

/** Starts it with its machine turned on. Rejects where ipmi_sim cannot be started. */
export async function startBmc({ folder, password, tie }: StartOptions): Promise<Bmc> {
  const [port, user] = [await findFreeUdpPort(), 'demo']
  const argv = await layBmc({ folder, port, user, password })
  const power = join(folder, 'is-power')
  await writeFile(power, '1\n')
  const [program = '', ...words] = [...tie, ...argv]
  // A process group of its own: Ctrl-C reaches it through us alone.
  const child = spawn(program, words, { stdio: 'ignore', detached: true })
  await once(child, 'spawn')
  const ended = once(child, 'exit')
  return {
    address: `127.0.0.1:${port}`,
    user,
    password,
    isOn: async () => (await readFile(power, 'utf8').catch(() => '1')).trim() !== '0',
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Finds a UDP port of 127.0.0.1 that nobody uses. */
export async function findFreeUdpPort(): Promise<number> {
  const socket = createSocket('udp4')
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  const { port } = socket.address()
  await new Promise<void>((resolve) => socket.close(resolve))
  return port
}
