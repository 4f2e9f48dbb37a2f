/** The way over IPMI: Debian's ipmitool as a child, one call for each request. */
import type { Shell } from '../../kit/host/shell.ts'
import { accept, refuse, type Result } from '../../kit/foundation/result.ts'
import type { PowerDriver } from './driver.ts'
import type { FindAddress } from './address-check.ts'
import { splitHost, type BmcOf, type Credential } from './rules/bmc.ts'
import * as ipmi from './rules/ipmi.ts'
import { lasting, passing, type PowerTrouble } from './rules/power.ts'

interface IpmiDependencies {
  readonly shell: Pick<Shell, 'run' | 'has'>
  readonly findAddress: FindAddress
  /** The cipher suite that worked before; null: none yet. */
  suite(): number | null
  /** Remembers the cipher suite that worked. */
  keepSuite(suite: number): Promise<void>
  /** Milliseconds for one call. */
  readonly timeoutMs: number
}

const PORT = 623
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

/** Creates the driver of one BMC. `credential` null: the anonymous user. */
export function createIpmiDriver(
  bmc: BmcOf<'ipmi'>,
  credential: Credential | null,
  given: IpmiDependencies,
): PowerDriver {
  const { user, password } = credential ?? { user: '', password: '' }
  const place = splitHost(bmc.address, PORT)

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
        press: (press) => send('chassis', 'power', press),
        async setBoot(boot) {
          const set = await send(...ipmi.renderBootdev(boot))
          if (!set.ok) return set
          const read = await call(['chassis', 'bootparam', 'get', '5'], signal)
          return read.ok ? ipmi.checkBootdev(read.value) : read
        },
        // Each call of ipmitool ends its own session.
        async [Symbol.asyncDispose]() {},
      })
    },
  }
}
