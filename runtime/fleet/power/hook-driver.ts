/** The way for everything else (outlets, plugs, KVMs): a URL for each verb. */
import { accept, refuse } from '../../kit/foundation/result.ts'
import type { Mac } from '../../kit/net/rules/mac.ts'
import { createBmcHttp, type BmcHttpDependencies } from './bmc-http.ts'
import type { PowerAnswer, PowerDriver } from './driver.ts'
import type { BmcOf, Credential } from './rules/bmc.ts'
import { quoteHook, readHookState, renderHookUrl } from './rules/hook.ts'
import { lasting, passing, POWER_PRESSES } from './rules/power.ts'
import type { PowerState, PowerTrouble } from './rules/power.ts'

/** Creates the driver of one machine's hook. `credential` null: the URLs need none. */
export function createHookDriver(
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

  // A word of the meantime is no surprise once something was pressed.
  let isPressed = false

  async function ask(template: string | null, method: 'GET' | 'POST', signal: AbortSignal) {
    if (template === null) return refuse(lasting('unsupported', 'it has no URL for that', ADD))
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
    const redirect = `the hook answered ${status}, a redirect, which is not followed`
    return lasting('address', redirect, 'Enter where it leads.')
  }
  const make = status >= 500 || status === 429 ? passing : lasting
  return make('refused', seen, 'Check the URL, and the log of what serves it.')
}

const STATES = 'Use a URL for the state that answers on or off, or none.'
const ADD = 'Add a URL for it to the hook.'
