/** How ipmitool is called, and what its output means (as `LC_ALL=C` prints it). */
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { HostPort } from './bmc.ts'
import {
  lasting,
  passing,
  quote,
  type BootOnce,
  type PowerAbout,
  type PowerState,
  type PowerTrouble,
} from './power.ts'

/** Of today's BMCs. Without a suite, ipmitool asks for a list first: 10 s if nothing answers. */
export const CIPHER_SUITES = [3, 17] as const

/** Bytes that IPMI 2.0 has room for. */
const MAX_USER = 16
const MAX_PASSWORD = 20

/** Null: IPMI can carry it. */
export function refuseCredential({
  user,
  password,
}: {
  readonly user: string
  readonly password: string
}): PowerTrouble | null {
  if (Buffer.byteLength(user) > MAX_USER) {
    return lasting('login', `IPMI allows user names of at most ${MAX_USER} bytes`, SHORTER)
  }
  return Buffer.byteLength(password) > MAX_PASSWORD
    ? lasting('login', `IPMI allows passwords of at most ${MAX_PASSWORD} bytes`, SHORTER)
    : null
}

const SHORTER = 'Give its BMC a shorter one, or use Redfish.'

/** Without the password: `-E` reads `IPMI_PASSWORD`. */
export const renderIpmiCall = (
  { host, port }: HostPort,
  { user, suite }: { readonly user: string; readonly suite: number },
  words: readonly string[],
): readonly string[] => [
  'ipmitool',
  ...`-I lanplus -C ${suite} -N 2 -R 2 -v -E -p ${port}`.split(' '),
  '-H',
  host,
  '-U',
  user,
  ...words,
]

export const readIpmiState = (stdout: string): PowerState => {
  const [, state] = /Chassis Power is (on|off)\b/i.exec(stdout) ?? []
  return state === undefined ? 'unknown' : state.toLowerCase() === 'on' ? 'on' : 'off'
}

/** From `mc info`. */
export function readIpmiAbout(stdout: string): PowerAbout {
  const find = (name: string) => {
    const said = new RegExp(`^${name}\\s*:(.*)$`, 'm').exec(stdout)?.[1]?.trim() ?? ''
    return /^Unknown\b/.test(said) ? '' : quote(said)
  }
  const model = [find('Manufacturer Name'), find('Product Name')].filter(Boolean).join(' ')
  return { model: model || null, firmware: find('Firmware Revision') || null, lacks: [] }
}

/** IPMI has PXE and a CD, no boot address. */
export const renderBootdev = ({ firmware }: BootOnce): readonly string[] => [
  'chassis',
  'bootdev',
  'pxe',
  ...(firmware === 'uefi' ? ['options=efiboot'] : []),
]

/** The mode is not compared: many BMCs, and the emulator, read back the other one. */
export function checkBootdev(stdout: string): Result<null, PowerTrouble> {
  const [, device] = /Boot Device Selector\s*:\s*(.+)/.exec(stdout) ?? []
  if (device?.trim() === 'Force PXE') return accept(null)
  const seen = `the BMC reports the boot device ${quote(device ?? 'nothing')}`
  return refuse(passing('boot-lost', seen, 'Set the network as first boot device in its firmware.'))
}

/** `isSuite`: another cipher suite may work. */
export function judgeIpmi(stderr: string): {
  readonly trouble: PowerTrouble
  readonly isSuite: boolean
} {
  const said = (pattern: RegExp) => pattern.test(stderr)
  if (
    said(
      /open session response message\s*:.*(?:algorithm|cipher|suite)|no matching (?:authentication|integrity|cipher)/i,
    )
  ) {
    return {
      trouble: lasting('login', 'it has none of the cipher suites 3 and 17', SUITE),
      isSuite: true,
    }
  }
  if (
    said(/HMAC is invalid|unauthorized name|password verification|privilege level|invalid role/i)
  ) {
    return { trouble: lasting('login', 'user or password is refused', CREDENTIALS), isSuite: false }
  }
  if (said(/insufficient resources|session (?:slots?|limit)|all .*sessions/i)) {
    return {
      trouble: passing('sessions', 'it has too many sessions', 'End some of its sessions.'),
      isSuite: false,
    }
  }
  if (said(/Get Auth Capabilities error|timeout|Unable to establish|Error issuing/i)) {
    return {
      trouble: passing('unreachable', 'it does not answer over IPMI', CHECK),
      isSuite: false,
    }
  }
  const last = stderr.trim().split('\n').at(-1) ?? ''
  return {
    trouble: passing('refused', quote(last) || 'it refused without a reason', LOG),
    isSuite: false,
  }
}

const SUITE = 'Allow one of them in its BMC, or use Redfish.'
const CREDENTIALS = 'Correct user and password, and check that the user may use IPMI over LAN.'
const CHECK = 'Check its address, and that IPMI over LAN is on.'
const LOG = 'Check the log of its BMC.'
