/** The ways to a machine's power: which one a BMC has, and those over IPMI, by Wake-on-LAN and by hooks. */
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { renderError } from '#kit/foundation/fault.ts'
import { refuse, accept, type Result } from '#kit/foundation/result.ts'
import type { Shell } from '#kit/host/shell.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { createBmcHttp, type BmcHttpDependencies } from './bmc-http.ts'
import type { FindAddress, PowerDriver, PowerAnswer } from './driver.ts'
import { createRedfishDriver } from './redfish.ts'
import {
  type Bmc,
  type LearnedBmc,
  splitHost,
  type BmcOf,
  type Credential,
  type FoundCredential,
} from './rules/bmc.ts'
import {
  lasting,
  passing,
  POWER_PRESSES,
  type PowerState,
  type PowerTrouble,
  quote,
  quoteHook,
  readHookState,
  refuseForLabel,
  renderHookUrl,
} from './rules/power.ts'
import * as ipmi from './rules/ipmi.ts'

export interface DriverDependencies {
  readonly shell: Pick<Shell, 'run' | 'has'>
  readonly findAddress: FindAddress
  /** Milliseconds for one request. */
  readonly timeoutMs: number
}

export interface PowerSubject {
  readonly mac: Mac
  readonly bmc: Bmc
  readonly found: FoundCredential | null
  learned(): LearnedBmc
  learn(change: Partial<LearnedBmc>): Promise<void>
}

export function createDriver(
  { mac, bmc, found, learned, learn }: PowerSubject,
  { shell, findAddress: findAny, timeoutMs }: DriverDependencies,
): PowerDriver {
  const credential = found?.credential ?? null
  const findAddress = found === null ? findAny : limitAddresses(findAny, found)
  const http = {
    findAddress,
    timeoutMs,
    certificate: () => learned().certificate,
    pin: (certificate: string) => learn({ certificate }),
  }
  switch (bmc.way) {
    case 'redfish':
      return createRedfishDriver(bmc, credential, http)
    case 'ipmi':
      return createIpmiDriver(bmc, credential, {
        shell,
        findAddress,
        timeoutMs,
        suite: () => learned().suite,
        keepSuite: (suite) => learn({ suite }),
      })
    case 'wake-on-lan':
      // Sends no password.
      return createWakeDriver(bmc, mac, findAny)
    case 'hook':
      return createHookDriver(bmc, { mac, credential }, http)
  }
}

/** Before a byte is sent to the address. */
const limitAddresses =
  (findAddress: FindAddress, { label, addresses }: FoundCredential): FindAddress =>
  async (to) => {
    const found = await findAddress(to)
    if (!found.ok || addresses === null) return found
    const trouble = refuseForLabel(found.value, { label, addresses })
    return trouble === null ? found : refuse(trouble)
  }

interface IpmiDependencies {
  readonly shell: Pick<Shell, 'run' | 'has'>
  readonly findAddress: FindAddress
  /** The cipher suite that worked before; null: none yet. */
  suite(): number | null
  keepSuite(suite: number): Promise<void>
  readonly timeoutMs: number
}

const IPMI_PORT = 623
const TIMED_OUT = passing(
  'unreachable',
  'it does not answer over IPMI in time',
  'Check its address, and that IPMI over LAN is on.',
)
const NO_TOOL = lasting(
  'tool',
  'ipmitool is not installed',
  'Install the package ipmitool on the server.',
)

/** One call of Debian's ipmitool for each request. `credential` null: the anonymous user. */
function createIpmiDriver(
  bmc: BmcOf<'ipmi'>,
  credential: Credential | null,
  given: IpmiDependencies,
): PowerDriver {
  const { user, password } = credential ?? { user: '', password: '' }
  const place = splitHost(bmc.address, IPMI_PORT)

  async function call(words: readonly string[], signal: AbortSignal) {
    const found = await given.findAddress(place)
    if (!found.ok) return found
    const known = given.suite()
    const others = ipmi.CIPHER_SUITES.filter((suite) => suite !== known)
    let last: PowerTrouble = TIMED_OUT
    for (const suite of known === null ? others : [known, ...others]) {
      const at = { ...place, host: found.value }
      const argv = ipmi.renderIpmiCall(at, { user, suite }, words)
      const limits = { signal, timeout: given.timeoutMs, env: { IPMI_PASSWORD: password } }
      const ran = await given.shell.run(argv, limits)
      if (ran.exitCode === 0) {
        if (suite !== known) await given.keepSuite(suite)
        return accept(ran.stdout)
      }
      const judged = ipmi.judgeIpmi(ran.stderr)
      last = ran.stderr.trim() === '' ? TIMED_OUT : judged.trouble
      if (!judged.isSuite) break
    }
    return refuse(last)
  }

  return {
    abilities: {
      reads: true,
      presses: ['on', 'off'],
      boots: ['network'],
      confirmsBoot: true,
    },
    async open(signal) {
      const wrong = ipmi.refuseCredential({ user, password })
      if (wrong !== null) return refuse(wrong)
      if (!(await given.shell.has('ipmitool'))) return refuse(NO_TOOL)
      const send = async (...words: readonly string[]): Promise<Result<null, PowerTrouble>> => {
        const sent = await call(words, signal)
        return sent.ok ? accept(null) : sent
      }
      return accept({
        async readState() {
          const read = await call(['chassis', 'power', 'status'], signal)
          return read.ok ? accept(ipmi.readIpmiState(read.value)) : read
        },
        async describe() {
          const read = await call(['mc', 'info'], signal)
          return read.ok ? accept(ipmi.readIpmiAbout(read.value)) : read
        },
        press: (press) => send('chassis', 'power', press),
        async setBoot(boot) {
          const set = await send(...ipmi.renderBootdev(boot))
          if (!set.ok) return set
          const read = await call(['chassis', 'bootparam', 'get', '5'], signal)
          return read.ok ? ipmi.checkBootdev(read.value) : read
        },
        // Each ipmitool ends its own session.
        async [Symbol.asyncDispose]() {},
      })
    },
  }
}

const WAKE_PORT = 9
/** Packets get lost, and one more does no harm. */
const PACKETS = 3
const PAUSE_MS = 50

function createWakeDriver(
  bmc: BmcOf<'wake-on-lan'>,
  mac: Mac,
  findAddress: FindAddress,
): PowerDriver {
  const place = splitHost(bmc.address, WAKE_PORT)
  return {
    abilities: { reads: false, presses: ['on'], boots: [], confirmsBoot: false },
    open: async () =>
      accept({
        async readState() {
          const found = await findAddress(place)
          return found.ok ? accept('unknown') : found
        },
        async press() {
          const found = await findAddress(place)
          if (!found.ok) return found
          try {
            await sendPackets(renderMagicPacket(mac), found.value, place.port)
            return accept(null)
          } catch (thrown) {
            return refuse(passing('unreachable', quote(renderError(thrown)), CHECK))
          }
        },
        setBoot: async () => refuse(NO_BOOT),
        async [Symbol.asyncDispose]() {},
      }),
  }
}

async function sendPackets(packet: Buffer, address: string, port: number): Promise<void> {
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4')
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.bind(0, resolve)
    })
    if (!isIPv6(address)) socket.setBroadcast(true)
    for (let count = 0; count < PACKETS; count += 1) {
      if (count > 0) await sleep(PAUSE_MS)
      await new Promise<void>((resolve, reject) => {
        socket.send(packet, port, address, (error) => (error === null ? resolve() : reject(error)))
      })
    }
  } finally {
    socket.close()
  }
}

const NO_BOOT = lasting('unsupported', 'Wake-on-LAN sets no boot device', 'Choose another type.')
const CHECK = 'Check the broadcast address, and that this host has a way to that network.'

/** For outlets, plugs, KVMs: a URL for each verb. `credential` null: not needed. */
function createHookDriver(
  hook: BmcOf<'hook'>,
  { mac, credential }: { readonly mac: Mac; readonly credential: Credential | null },
  given: Omit<BmcHttpDependencies, 'signal'>,
): PowerDriver {
  const headers =
    credential === null
      ? {}
      : {
          authorization: `Basic ${Buffer.from(`${credential.user}:${credential.password}`).toString('base64')}`,
        }

  // An answer between states is no surprise after a press.
  let isPressed = false

  async function ask(template: string | null, method: 'GET' | 'POST', signal: AbortSignal) {
    if (template === null) return refuse(lasting('unsupported', 'it has no URL for this', ADD))
    const url = renderHookUrl(template, mac)
    const http = createBmcHttp(url, { ...given, signal })
    try {
      const asked = await http.ask(url, { method, headers })
      if (!asked.ok) return asked
      const { status, bytes } = asked.value
      const body = bytes.toString('utf8')
      const quoted = quoteHook(body, url, credential?.password ?? '')
      const isDone = status >= 200 && status < 300
      return isDone ? accept({ body, quoted }) : refuse(judge(status, quoted))
    } finally {
      http.close()
    }
  }

  const send = async (template: string | null, signal: AbortSignal): PowerAnswer<null> => {
    const sent = await ask(template, hook.method, signal)
    isPressed ||= sent.ok
    return sent.ok ? accept(null) : sent
  }

  return {
    abilities: {
      reads: hook.state !== null,
      presses: POWER_PRESSES.filter((press) => hook[press] !== null),
      boots: hook.network === null ? [] : ['network'],
      confirmsBoot: false,
    },
    open: async (signal) =>
      accept({
        async readState(): PowerAnswer<PowerState> {
          if (hook.state === null) return accept('unknown')
          const read = await ask(hook.state, 'GET', signal)
          if (!read.ok) return read
          const state = readHookState(read.value.body)
          const seen = `its state is neither on nor off: the hook answered ${read.value.quoted || 'nothing'}`
          return state === null
            ? refuse({ ...lasting('answer', seen, STATES), passes: isPressed })
            : accept(state)
        },
        press: (press) => send(hook[press], signal),
        setBoot: () => send(hook.network, signal),
        async [Symbol.asyncDispose]() {},
      }),
  }
}

function judge(status: number, quoted: string): PowerTrouble {
  const seen = `the hook answered ${status}${quoted === '' ? '' : `: ${quoted}`}`
  if (status === 401 || status === 403) return lasting('login', seen, 'Correct user and password.')
  if (status >= 300 && status < 400) {
    const redirect = `the hook answered ${status}, a redirect`
    return lasting('address', redirect, 'Enter the address it leads to.')
  }
  const make = status >= 500 || status === 429 ? passing : lasting
  return make('refused', seen, 'Check the URL and the log of its server.')
}

const STATES = 'Use a URL for the state that answers on or off, or none.'
const ADD = 'Add a URL for it to the hook.'

function renderMagicPacket(mac: Mac): Buffer {
  const address = Buffer.from(mac.replaceAll(':', ''), 'hex')
  return Buffer.concat([Buffer.alloc(6, 0xff), ...Array<Buffer>(16).fill(address)])
}
