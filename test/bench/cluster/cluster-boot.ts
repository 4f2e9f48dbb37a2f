/** How a made-up machine asks for its boot script, as iPXE does with the scripts that this project renders. */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseLiveBoot, type LiveBoot } from '#fleet/boot/rules/live-boot.ts'
import { ANSWER_MS, HELD_MS } from '#fleet/boot/rules/ipxe.ts'

export type Booted =
  | {
      readonly kind: 'disk'
      readonly askedAt: number
      readonly from: string
      readonly script: string
    }
  | { readonly kind: 'live'; readonly boot: LiveBoot }

interface BootOptions {
  readonly mac: string
  /** The servers in the order in which this machine's DHCP answer names them. */
  readonly servers: readonly string[]
  readonly signal: AbortSignal
  /** This is called when a script says that the machine has to wait. */
  onWait(): void
}

/** Asks until a script says where to go; `askedAt`: when that script was asked for (`performance.now()`). */
export async function bootMachine(options: BootOptions): Promise<Booted> {
  const { mac, servers, signal, onWait } = options
  for (;;) {
    const got = await askAround(mac, servers, signal)
    if (got === null) {
      await sleep(2000, undefined, { signal })
      continue
    }
    const { script, ...asked } = got
    const kernel = /^kernel .*?(http\S+) (.*) \|\|/m.exec(script)
    if (kernel !== null) {
      const [, file = '', line = ''] = kernel
      // A machine without its kernel asks again.
      if (await has(file, signal)) return { kind: 'live', boot: parseLiveBoot(line) }
    } else if (!script.includes('goto wait')) return { kind: 'disk', ...asked, script }
    onWait()
    const seconds = Number(/^sleep (\d+)/m.exec(script)?.[1] ?? 2)
    await sleep(seconds * 1000, undefined, { signal })
  }
}

/** Each server in turn, and once more with more patience; null: none answered. */
async function askAround(mac: string, servers: readonly string[], signal: AbortSignal) {
  const path = `/pxe/${mac.replaceAll(':', '-')}?buildarch=x86_64&platform=efi`
  for (const patience of [ANSWER_MS, HELD_MS]) {
    for (const server of servers) {
      const askedAt = performance.now()
      const script = await fetchText(`${server}${path}`, patience, signal)
      if (script?.startsWith('#!ipxe') === true) return { script, askedAt, from: server }
    }
  }
  return null
}

async function fetchText(url: string, milliseconds: number, signal: AbortSignal, headers = {}) {
  try {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(milliseconds)])
    const answer = await fetch(url, { headers, signal: limit })
    const text = await answer.text()
    return answer.ok ? text : null
  } catch {
    signal.throwIfAborted()
    return null
  }
}

/** Its first byte stands for all of it. */
const has = async (url: string, signal: AbortSignal) =>
  (await fetchText(url, HELD_MS, signal, { range: 'bytes=0-0' })) !== null
