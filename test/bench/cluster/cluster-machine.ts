/** A made-up machine: ordered, booted and flashed again and again by the client that real machines have. */
import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { listSources } from '#engine/flash/rules/flash-plan.ts'
import { createSourceList } from '#engine/flash/listed-planner.ts'
import type { Source } from '#engine/image/sources/source.ts'
import { createSources } from '#engine/image/sources/sources.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { createServerClient, type ServerClient } from '#flasher/link/server-client.ts'
import { createFlashRun } from '#flasher/order/remote-hooks.ts'
import { chooseOrdered, orderFor } from '#flasher/order/rules/flash-choice.ts'
import { type NamedFlash, parsePlan } from '#flasher/order/rules/plan.ts'
import { type LiveBoot, parseLiveBoot } from '#fleet/boot/rules/live-boot.ts'
import { ANSWER_MS, HELD_MS } from '#fleet/boot/rules/ipxe.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { linger } from '#kit/host/watch.ts'
import { type Mac, parseMac } from '#kit/net/rules/mac.ts'
import { macOf } from '../server/server-wire.ts'
import type { AskSite } from './cluster-ask.ts'
import { type Book, createExpectation } from './cluster-book.ts'

type Booted =
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
async function bootMachine(options: BootOptions): Promise<Booted> {
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

export interface OrderedImage {
  readonly name: string
  readonly sha256: string
  readonly ref: string
}

export interface MachineOptions {
  readonly number: number
  readonly servers: readonly string[]
  readonly images: readonly OrderedImage[]
  readonly ask: AskSite
  readonly book: Book
  readonly random: () => number
  /** How long a flash takes at least, and how long a machine rests between two orders, in seconds. */
  readonly flashSeconds: number
  readonly restSeconds: number
  /** Ends its life between two orders. */
  readonly leaving: AbortSignal
  /** Ends whatever it does. */
  readonly signal: AbortSignal
}

/** As the live system: nobody may be there (`remote-hooks.ts`). */
const CONTACT = { ms: 10 * 60_000 }

export type StormMachine = ReturnType<typeof createStormMachine>

/** Its life begins with `live`, and ends after the order under way once `leaving` is aborted. */
export function createStormMachine(options: MachineOptions) {
  const { number, servers, images, ask, book, random, leaving, signal } = options
  const mac = toMac(number)
  const sources = createSources({ env: {} })
  /** The runs whose end was acknowledged, and all that began. */
  const [ended, begun]: [Set<string>, Set<string>] = [new Set(), new Set()]
  const reported = createExpectation<string | null>(null)
  let image: OrderedImage | null = null
  /** Whether the present order's end was acknowledged, and when the order itself was. */
  let [isDone, orderedAt, boots] = [true, 0, 0]
  let writing: string | null = null
  const finding = (text: string) => `${mac}: ${text}`

  /** Asks until it is acknowledged: the same values once more are no other order. */
  async function order(next: OrderedImage) {
    image = next
    isDone = false
    const body = {
      boot_mode: 'flasher-flash-once',
      bty_image_ref: next.ref,
      target_disk_serial: serialOf(number),
      labels: ['storm'],
    }
    await ask.insist(`/machines/${mac}`, { method: 'PUT', body: JSON.stringify(body) }, signal)
    orderedAt = performance.now()
    book.count('orders acknowledged')
  }

  const isOver = () => isDone

  const boot = () => {
    const at = Math.floor(random() * servers.length)
    const inTurn = [...servers.slice(at), ...servers.slice(0, at)]
    return bootMachine({ mac, servers: inTurn, signal, onWait: () => book.count('waits in line') })
  }

  /** Boots once, and does what the script says. */
  async function powerOn() {
    const booted = await boot()
    book.count('network boots')
    if (booted.kind === 'live') await act(booted.boot)
    else if (!isDone && booted.askedAt > orderedAt) {
      book.find(
        'lost',
        finding(
          `boots its disk by ${booted.from}, though its order was acknowledged: ${booted.script}`,
        ),
      )
      await linger(5000, signal)
    }
  }

  async function act({ server, others, token }: LiveBoot) {
    if (server === null) throw new Error(`${mac}: no server on the command line`)
    await using calls = new AsyncDisposableStack()
    const ending = new AbortController()
    calls.defer(() => ending.abort())
    const client = createServerClient({
      base: server,
      others: others.filter((other) => other !== server),
      mac,
      token,
      env: {},
      signal: AbortSignal.any([signal, ending.signal]),
    })
    await sendDisks(client)
    const wasDone = isDone
    const got = await client.fetchPlan(CONTACT)
    const plan = got.ok ? parsePlan(got.value) : null
    if (!got.ok) return book.find('gaveUp', finding(`no plan: ${got.refusal.reason}`))
    if (plan === null || !plan.ok) return book.find('gaveUp', finding('a plan that cannot be read'))
    if (plan.value.mode !== 'flash') {
      book.count(`plans: ${plan.value.mode}`)
      return await linger(2000, signal)
    }
    if (wasDone) book.find('order', finding('a plan after the end of its order was acknowledged'))
    await flash(plan.value, client)
  }

  async function sendDisks(client: ServerClient) {
    boots += 1
    const mark = `boot-${boots}`
    reported.try(mark)
    const sent = await client.sendInventory({ disks: disksOf(number, mark) }, CONTACT)
    if (sent.ok) reported.acknowledge(mark)
    else book.find('gaveUp', finding(`its disks were not taken: ${sent.refusal.reason}`))
  }

  async function flash(plan: NamedFlash, client: ServerClient) {
    if (plan.sha256 !== image?.sha256) {
      book.find('order', finding(`the plan names ${plan.sha256}, the order ${image?.sha256}`))
    }
    if (plan.disk !== serialOf(number)) book.find('order', finding(`the plan names ${plan.disk}`))
    const choice = chooseOrdered(plan, { path: '/dev/sda' })
    const [disk = null] = disksOf(number, '')
    const run = createFlashRun(
      { mode: 'flash', choice, plan: null, disk },
      { client, signal, now: () => performance.now() },
    )
    if (writing !== null) book.find('order', finding(`${run.id} begins while ${writing} writes`))
    writing = run.id
    begun.add(run.id)
    run.follow({ event: 'started', total_bytes: null })
    const written = await write(plan, (bytes, total) => {
      const counts = { bytes_read: bytes, bytes_written: bytes, total_bytes: total }
      run.follow({ event: 'writing', phase: 'write', ...counts, rate: 1e6, eta_seconds: null })
    })
    writing = null
    if (typeof written === 'string') {
      book.find('restarted', finding(written))
      run.end({ kind: 'failed', reason: written })
      await run.flush(run.times.failure)
      return
    }
    run.end({ kind: 'done', bytesWritten: written, verified: true })
    const rejection = await run.sendDone(() => undefined, true)
    if (rejection !== null) {
      return book.find('gaveUp', finding(`its end was not taken: ${rejection.reason}`))
    }
    isDone = true
    ended.add(run.id)
    book.count('flashes, their end acknowledged')
  }

  /** Resolves to the bytes that came, in their order and with the digest of the plan; else why they did not. */
  async function write(plan: NamedFlash, onBytes: (bytes: number, total: number) => void) {
    const locations = listSources(orderFor([chooseOrdered(plan, { path: '/dev/sda' })]))
    await using list = createSourceList({ sources, locations, sha256: plan.sha256, signal })
    try {
      const source = await list.next()
      const total = source.sizeBytes ?? 0
      const hash = createHash('sha256')
      const began = performance.now()
      let bytes = 0
      for await (const chunk of source.joined?.() ?? source.stream()) {
        hash.update(chunk)
        bytes += chunk.length
        onBytes(bytes, total)
        const due = (bytes / total) * options.flashSeconds * 1000 - (performance.now() - began)
        if (due > 0) await linger(due, signal)
      }
      if (countGiving(source) > 1) book.count('flashes from more than one cache')
      return hash.digest('hex') === plan.sha256 ? bytes : 'the bytes have another digest'
    } catch (thrown) {
      signal.throwIfAborted()
      return renderError(thrown)
    }
  }

  return {
    mac,
    /** What the fleet has to know of it at the end. */
    state: () => ({ image, isDone, ended, begun, reported }),
    async live() {
      await linger(random() * options.restSeconds * 1000, leaving)
      for (let turn = number; !leaving.aborted; turn += 1) {
        const next = images[turn % images.length]
        if (next === undefined) return
        await order(next)
        // Its first boot comes a moment later, and so does the one after its flash.
        await sleep(random() * 2000, undefined, { signal })
        do await powerOn()
        while (!isOver())
        await powerOn()
        await linger((0.5 + random()) * options.restSeconds * 1000, leaving)
        if (!leaving.aborted && random() < 0.3) await powerOn()
      }
    },
  }
}

const countGiving = ({ shares }: Source) =>
  (shares?.() ?? []).filter(({ bytes }) => bytes > 0).length

function toMac(number: number): Mac {
  const mac = parseMac(macOf(number))
  if (!mac.ok) throw new Error(`no machine ${number}`)
  return mac.value
}

const serialOf = (number: number) => `SERIAL-${number}`

/** The second one tells which inventory it is. */
const disksOf = (number: number, mark: string): readonly InventoryDisk[] =>
  [serialOf(number), mark].map((serial, at) => ({
    path: `/dev/sd${'ab'[at]}`,
    size: '953.9G',
    vendor: null,
    model: 'A disk of the usual kind',
    serial,
    tran: 'sata',
    removable: false,
    readonly: false,
    size_bytes: 1_024_209_543_168,
  }))
