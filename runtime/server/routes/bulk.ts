/** Arms one machine now, or applies one action to many, row by row. */
import { json, type Answer, answer } from '#kit/web/answers/answers.ts'
import type { H3Event } from 'h3'
import * as z from 'zod'
import { findUnheeded } from '#fleet/machine/rules/query.ts'
import { printable } from '#kit/foundation/printable.ts'
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'
import type { MachineBase } from '#engine/inventory/rules/machine.ts'
import { checked, readMac, renderSchema } from '#kit/web/answers/checked.ts'
import { refuse, refuseFields } from '#kit/web/answers/faults.ts'
import { LIMITS } from '#kit/web/answers/limits.ts'
import {
  awaitEnd,
  followOrder,
  isEventStream,
  type AwaitedOrder,
  EVENT_HEADERS,
  QUIET_MS,
  renderJson,
  renderRun,
  STEP_MS,
} from './flash-follow.ts'
import { actOnMany } from './many.ts'
import type { Site, BootEachRequest } from './site.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Proof } from '#engine/inventory/rules/run.ts'
import { KEEP_ALIVE } from '#kit/net/rules/event-stream.ts'
import type { By } from '#kit/web/answers/caller.ts'

const WAIT = z.number().min(0).max(LIMITS.waitSeconds).optional()
const UNTIL = z
  .enum(['flashed', 'booted'])
  .describe(
    'What to wait for; booted: until the new system was seen, which requires [proof] enabled',
  )
export const POWER = z
  .union([z.boolean(), z.literal('restart')])
  .describe('Turn the machine on and boot it from the network; restart: also if it is on')

/** The other fields of the body are the action's own parameters. */
const FLASH_BODY = z.looseObject({
  wait: WAIT.describe('Seconds to wait for the end of the flash before answering'),
  until: UNTIL.default('flashed'),
  power: POWER.default(false),
})

const FLASH_MANY = {
  wait: WAIT.describe('flash: seconds to wait for the end of all of them before answering'),
  until: UNTIL.optional(),
  power: POWER.optional(),
  stagger: z
    .number()
    .min(0)
    .max(3600)
    .optional()
    .describe(
      'flash, once: seconds between two machines that are turned on; left out: [power] stagger',
    ),
}

const BULK_BODY = z.strictObject({
  action: z.string().max(40).describe('delete, or an action of this server: flash…'),
  macs: z.array(z.string().max(40)).max(LIMITS.bulkMachines).optional(),
  q: z.string().max(1000).optional().describe('Instead of macs: what this search finds'),
  parameters: z.record(z.string(), z.unknown()).optional(),
  dry_run: z.boolean().optional().describe('Only report what would be done'),
  ...FLASH_MANY,
})

const BULK_ANSWER = z.object({
  dry_run: z.boolean(),
  done: z.number(),
  refused: z.number(),
  results: z.array(
    z.object({
      mac: z.string(),
      result: z.enum(['done', 'refused', 'missing']),
      reason: z.string().nullable(),
      outcome: z
        .string()
        .optional()
        .describe('flash with wait: flashed, booted, failed, timeout… as for one machine'),
      run: z.string().optional(),
      proof: z.unknown().optional(),
    }),
  ),
  outcomes: z
    .record(z.string(), z.number())
    .optional()
    .describe('flash with wait: how many machines ended with each outcome'),
  batch: z
    .string()
    .optional()
    .describe('The batch: GET /batches/{id}; absent after a dry run, and if nothing was done'),
})

export function bulkRoutes(site: Site): readonly Route[] {
  return [
    {
      method: 'POST',
      path: '/machines/:mac/flash',
      access: 'flash',
      takes: 'json',
      doc: {
        summary:
          'Flashes the machine at its next network boot; with Accept: text/event-stream and wait, followed as events',
        body: renderSchema(FLASH_BODY, 'input'),
        answers: { 200: { type: 'object' } },
        refuses: [409],
      },
      handle: (event, body) => flash(site, event, body),
    },
    ...(site.line.undo === undefined ? [] : [undoRoute(site)]),
    {
      method: 'POST',
      path: '/machines/bulk',
      access: 'machines',
      reach: 'list',
      takes: 'json',
      doc: {
        summary: 'Applies one action to many machines',
        body: renderSchema(BULK_BODY, 'input'),
        answers: { 200: renderSchema(BULK_ANSWER, 'output') },
      },
      handle: (event, body) => bulk(site, event, body),
    },
  ]
}

const undoRoute = (site: Site): Route => ({
  method: 'POST',
  path: '/machines/:mac/undo',
  access: 'machines',
  doc: {
    summary:
      'Undoes the newest edit of a machine, also its deletion, within a minute; nothing is armed by that',
    answers: { 200: 'Machine' },
    refuses: [409],
    isNeverMissing: true,
  },
  async handle(event) {
    const undone = await site.fleet.undo(readMac(event), site.by(event))
    if (undone.result === 'done' && undone.machine !== null) {
      return json(site.line.toWire(undone.machine))
    }
    throw refuse(409, undone.result === 'refused' ? undone.reason : 'there is nothing to undo')
  },
})

async function flash(site: Site, event: H3Event, body: unknown): Promise<Answer> {
  const { line } = site
  const mac = readMac(event)
  const { wait = 0, until, power, ...parameters } = checked(FLASH_BODY, body ?? {})
  checkUntil(site, until)
  checkAction(site, event, 'flash', parameters)
  const boot = power === false ? null : await prepareBoot(site, event, power === 'restart')
  const armed = await actOn(site, event, 'flash', parameters)
  if (boot !== null) await site.proof?.settle(mac)
  const trouble = (await boot?.()) ?? null
  if (trouble !== null) {
    const detail = `Armed, but not booted. ${trouble}`
    return json({ detail, outcome: 'not-booted', machine: line.toWire(armed) }, 502)
  }
  return await answerOrder(site, event, armed, { mac, order: line.nameOrder(armed), until, wait })
}

interface BootedOrder {
  readonly action: string
  readonly parameters: object
  readonly power: z.output<typeof POWER>
}

/** For an order that nobody waits for: with power, the machine boots at once. */
export async function bootAfterOrder(
  site: Site,
  event: H3Event,
  { action, parameters, power }: BootedOrder,
): Promise<Answer> {
  checkAction(site, event, action, parameters)
  const boot = power === false ? null : await prepareBoot(site, event, power === 'restart')
  const machine = site.line.toWire(await actOn(site, event, action, parameters))
  const trouble = (await boot?.()) ?? null
  return trouble === null
    ? json(machine)
    : json({ detail: `Ordered, but not booted. ${trouble}`, outcome: 'not-booted', machine }, 502)
}

async function answerOrder(
  site: Site,
  event: H3Event,
  armed: MachineBase,
  awaited: AwaitedOrder,
): Promise<Answer> {
  const { line, machines } = site
  const { mac, wait } = awaited
  if (wait > 0 && isEventStream(event)) return followOrder(site, line.toWire(armed), awaited)
  const ended = wait === 0 ? ARMED : await awaitEnd(site, awaited, event.req.signal)
  // The machine may have been deleted meanwhile.
  return json({ ...ended, machine: line.toWire(machines.peek(mac) ?? armed) })
}

const ARMED = { outcome: 'armed' } as const

/** Throws a 422 where nobody would report what is waited for. */
function checkUntil({ proof }: Site, until: 'flashed' | 'booted'): void {
  if (until === 'booted' && proof?.isEnabled() !== true) throw refuse(422, NOT_AWAITED)
}

const NOT_AWAITED = 'until: this server does not wait for first boots; set [proof] enabled = true'

const NO_POWER = 'power control is not set up on this server'

/** Checks before anything is armed; the returned function boots the machine. */
async function prepareBoot(
  { power, checkScope, by, findMachine, line }: Site,
  event: H3Event,
  isRestart: boolean,
): Promise<() => Promise<string | null>> {
  if (power === undefined) throw refuse(422, NO_POWER)
  checkScope(event, 'power')
  const machine = findMachine(readMac(event))
  const { mac } = machine
  const who = by(event)
  const other = line.findOtherBoot?.(machine) ?? null
  const refusal = other ?? (await power.refuseBoot(mac, isRestart, who))
  if (refusal !== null) throw refuse(409, refusal)
  return () => power.boot(mac, isRestart, who)
}

/** Rejects with a 404 for an unknown machine, and with a 409 where the action is refused. */
export async function act(
  site: Site,
  event: H3Event,
  action: string,
  parameters: object,
): Promise<Answer> {
  const acted = await actOn(site, event, action, parameters)
  return json(site.line.toWire(site.machines.peek(acted.mac) ?? acted))
}

async function actOn(
  { fleet, by }: Site,
  event: H3Event,
  action: string,
  parameters: object,
): Promise<MachineBase> {
  const mac = readMac(event)
  const acted = await fleet.act(mac, { action, parameters }, by(event))
  if (acted.result === 'refused') throw refuse(409, acted.reason)
  if (acted.result === 'missing' || acted.machine === null) {
    throw refuse(404, `no machine record for ${mac}`)
  }
  return acted.machine
}

async function bulk(site: Site, event: H3Event, body: unknown): Promise<Answer> {
  const asked = checked(BULK_BODY, body)
  const { action, parameters = {}, dry_run = false, q = null } = asked
  checkBulk(site, event, asked)
  const found = await pick(site, asked)
  checkWait(asked, found.length)
  const request = { action, parameters, isDryRun: dry_run, q }
  const refusePower = decideForesight(site, asked.power)
  const targets = found.map((mac) => ({ mac, refusal: refusePower(mac) }))
  const acted = await actOnMany(site, request, targets, site.by(event))
  if (dry_run || !BOOTED.has(action)) return json(renderMany(acted, acted.results, dry_run))
  return await answerMany(site, event, { ...acted, ...planMany(asked, site.by(event)) })
}

/** Actions after which machines may be booted at once. */
const BOOTED: ReadonlySet<string> = new Set(['flash', 'once'])

/** Each of them is followed on its own. */
const MAX_AWAITED = 1000
const TOO_MANY = `wait: at most ${MAX_AWAITED} machines are waited for; leave it out, or select fewer`

function checkBulk(site: Site, event: H3Event, asked: z.infer<typeof BULK_BODY>): void {
  const { action, macs, q, parameters = {} } = asked
  if ((macs === undefined) === (q === undefined)) throw refuse(422, 'give either macs or q')
  if (action === 'delete' && q?.trim() === '') {
    throw refuse(
      422,
      'an empty search selects all machines. Name them in macs, or search for something',
    )
  }
  // A search may find many.
  const machines = macs?.length ?? Infinity
  checkAction(site, event, action, parameters, { within: ['parameters'], machines })
  checkMany(site, event, asked)
}

function checkWait({ wait = 0, dry_run }: z.infer<typeof BULK_BODY>, machines: number): void {
  if (dry_run !== true && wait > 0 && machines > MAX_AWAITED) throw refuse(422, TOO_MANY)
}

/** Throws a 422 for parameters of other actions, and a 403 without rights to power. */
function checkMany(site: Site, event: H3Event, asked: Readonly<z.infer<typeof BULK_BODY>>): void {
  const { action, wait, until, power, stagger } = asked
  const given = Object.entries({ wait, until, ...(BOOTED.has(action) ? {} : { power, stagger }) })
  const [named] = given.find(([, value]) => value !== undefined) ?? []
  if (action !== 'flash' && named !== undefined) {
    throw refuse(422, `${named}: only for the action flash`)
  }
  checkUntil(site, until ?? 'flashed')
  if (power === undefined || power === false) return
  if (site.power === undefined) throw refuse(422, NO_POWER)
  site.checkScope(event, 'power')
}

/** Throws a 422 for what is no MAC, and for a search term that leaves nobody out. */
export async function pick(
  { machines, views }: Pick<Site, 'machines' | 'views'>,
  { macs, q }: { readonly macs?: readonly string[] | undefined; readonly q?: string | undefined },
): Promise<readonly Mac[]> {
  if (macs === undefined) {
    checkSearch(q ?? '')
    const found = views.match(await machines.list(), new URLSearchParams({ q: q ?? '' }))
    return found.slice(0, LIMITS.bulkMachines).map(({ mac }) => mac)
  }
  const parsed = macs.map(parseMac)
  const bad = parsed.flatMap((each, at) =>
    each.ok ? [] : [{ loc: ['body', 'macs', at], msg: 'not a MAC address', type: 'not-a-mac' }],
  )
  if (bad.length > 0) throw refuseFields(bad.slice(0, 32))
  return [...new Set(parsed.flatMap((each) => (each.ok ? [each.value] : [])))]
}

/** An empty variable in `label:$rack` must not mean the whole fleet. */
function checkSearch(q: string): void {
  const unheeded = findUnheeded(q)
  if (unheeded === null) return
  const { term, why } = unheeded
  throw refuse(422, `q: ${printable(term)} ${UNHEEDED[why]}`)
}

const UNHEEDED = {
  empty: 'has no value. Give it one, or remove it',
  'too-many': 'is one term too many. Use fewer terms, or name the machines in macs',
} as const

interface AskedAction {
  readonly within: readonly string[]
  readonly machines: number
}

function checkAction(
  { line, checkScope }: Site,
  event: H3Event,
  action: string,
  parameters: unknown,
  { within, machines }: AskedAction = { within: [], machines: 1 },
): void {
  const rule = Object.hasOwn(line.actions, action) ? line.actions[action] : undefined
  if (rule === undefined && action !== 'delete') {
    throw refuseFields([
      { loc: ['body', 'action'], msg: 'there is no such action', type: 'unknown-action' },
    ])
  }
  checkScope(event, rule?.scope ?? 'machines')
  const errors = rule?.check(parameters, machines) ?? null
  if (errors === null) return
  throw refuseFields(
    errors.map(({ loc: [body = 'body', ...rest], ...error }) => ({
      ...error,
      loc: [body, ...within, ...rest],
    })),
  )
}

// Flashes a selection: boots its machines from the network, one after the other, and waits for what becomes of each.

interface ManyResult {
  readonly mac: string
  readonly result: 'done' | 'refused' | 'missing'
  readonly reason: string | null
  /** Only where it was waited for. */
  readonly outcome?: string
  readonly run?: string
  readonly proof?: Proof | null
}

type OneOrder = Pick<AwaitedOrder, 'mac' | 'order'>

interface ManyOrders {
  readonly results: readonly ManyResult[]
  readonly orders: readonly OneOrder[]
  readonly batch: string | null
  readonly until: AwaitedOrder['until']
  /** Seconds. */
  readonly wait: number
  /** Null: each is flashed at its next network boot. */
  readonly boot: BootMany | null
}

interface ManyAsked {
  readonly until?: AwaitedOrder['until'] | undefined
  readonly wait?: number | undefined
  readonly power?: boolean | 'restart' | undefined
  /** Seconds. */
  readonly stagger?: number | undefined
}

interface BootMany {
  readonly isRestart: boolean
  /** Milliseconds between two machines; undefined: the server's setting. */
  readonly pause: number | undefined
  readonly by: By
}

function decideForesight(
  { power, machines, line }: Site,
  asked: ManyAsked['power'],
): (mac: Mac) => string | null {
  if (power === undefined || asked === undefined || asked === false) return () => null
  // A machine that is unknown counts as missing, not as refused.
  return (mac) => {
    const machine = machines.peek(mac)
    if (machine === null) return null
    return line.findOtherBoot?.(machine) ?? power.foresee(mac, asked === 'restart')
  }
}

function planMany(
  { until = 'flashed', wait = 0, power = false, stagger }: ManyAsked,
  by: By,
): Pick<ManyOrders, 'until' | 'wait' | 'boot'> {
  const pause = stagger === undefined ? undefined : stagger * 1000
  const boot = power === false ? null : { isRestart: power === 'restart', pause, by }
  return { until, wait, boot }
}

async function answerMany(site: Site, event: H3Event, many: ManyOrders): Promise<Answer> {
  if (many.wait === 0) {
    bootMany(site, many)
    return json(renderMany(many, many.results))
  }
  if (isEventStream(event)) return followMany(site, many)
  return json(renderMany(many, await awaitMany(site, many, event.req.signal)))
}

function renderMany(
  { batch }: Pick<ManyOrders, 'batch'>,
  results: readonly ManyResult[],
  isDryRun = false,
) {
  const done = results.filter(({ result }) => result === 'done').length
  const outcomes = countOutcomes(results)
  return {
    dry_run: isDryRun,
    done,
    refused: results.length - done,
    results,
    ...(Object.keys(outcomes).length === 0 ? {} : { outcomes }),
    ...(batch === null ? {} : { batch }),
  }
}

/** Boots all that are armed, and waits for none: each has its event. */
function bootMany(site: Site, { orders, boot }: ManyOrders): void {
  if (boot === null) return
  bootEach(site, orders, boot).catch((thrown: unknown) => {
    site.log.error(`power of machines: ${String(thrown)}`)
  })
}

/** The system on each is looked at before its restart. */
async function bootEach(
  { power, proof }: Site,
  orders: readonly OneOrder[],
  request: BootEachRequest,
): Promise<void> {
  const macs = orders.map(({ mac }) => mac)
  const awaitReady = async (mac: Mac) => proof?.settle(mac)
  await power?.bootEach(macs, { ...request, awaitReady })
}

/** If the wait ends early, no more machines are turned on. */
async function awaitMany(
  site: Site,
  many: ManyOrders,
  signal: AbortSignal,
): Promise<readonly ManyResult[]> {
  const ended = new Map<string, ManyResult>()
  await endAll(site, many, { signal, onEnd: (end) => void ended.set(end.mac, end) })
  return many.results.map((result) => ended.get(result.mac) ?? result)
}

interface EndListener {
  readonly signal: AbortSignal
  onEnd(result: ManyResult): void
}

async function endAll(site: Site, many: ManyOrders, { signal, onEnd }: EndListener): Promise<void> {
  const { orders, until, wait, boot } = many
  const notBooted = new Map<Mac, PromiseWithResolvers<string>>(
    orders.map(({ mac }) => [mac, Promise.withResolvers<string>()]),
  )
  const onFailure = (mac: Mac, why: string) => notBooted.get(mac)?.resolve(why)
  const over = new AbortController()
  const mayBoot = AbortSignal.any([signal, over.signal])
  const booting =
    boot === null ? null : bootEach(site, orders, { ...boot, signal: mayBoot, onFailure })
  const awaited = orders.map(async ({ mac, order }) => {
    const own = new AbortController()
    const end = awaitEnd(site, { mac, order, until, wait }, AbortSignal.any([signal, own.signal]))
    const failed = notBooted.get(mac)?.promise.then((reason) => ({ outcome: 'not-booted', reason }))
    const first = await Promise.race([end, ...(failed === undefined ? [] : [failed])])
    own.abort()
    onEnd({ mac, result: 'done', reason: null, ...first })
  })
  await Promise.all(awaited)
  over.abort()
  await booting
}

function countOutcomes(results: readonly ManyResult[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { outcome } of results) {
    if (outcome !== undefined) counts[outcome] = (counts[outcome] ?? 0) + 1
  }
  return counts
}

/** Events: `armed`, `run` per change, `machine` per ended order, `end` with the plain answer. */
const followMany = (site: Site, many: ManyOrders): Answer =>
  answer(200, EVENT_HEADERS, async function* (signal) {
    const encoder = new TextEncoder()
    yield encoder.encode(renderJson('armed', renderMany(many, many.results)))
    for await (const event of follow(site, many, signal)) {
      const text = typeof event === 'string' ? event : renderJson('end', renderMany(many, event))
      yield encoder.encode(text)
    }
  })

async function* follow(
  site: Site,
  many: ManyOrders,
  signal: AbortSignal,
): AsyncGenerator<string | readonly ManyResult[]> {
  const orders = new Map<string, OneOrder>(many.orders.map((each) => [each.mac, each]))
  const changed = new Set(many.orders)
  const stop = site.changes.listen(
    (change) => {
      const order = change.topic === 'run' ? orders.get(change.mac) : undefined
      if (order !== undefined) changed.add(order)
    },
    ['run'],
  )
  try {
    const ended = new Map<string, ManyResult>()
    const fresh: ManyResult[] = []
    const onEnd = (end: ManyResult) => {
      ended.set(end.mac, end)
      fresh.push(end)
    }
    const all = endAll(site, many, { signal, onEnd }).then(() => true)
    for (let [quiet, isOver] = [0, false]; !isOver;) {
      isOver = await Promise.race([all, sleep(STEP_MS, false, { signal }).catch(() => false)])
      const events = [...listRuns(site, changed), ...fresh.splice(0).map(renderEnd)]
      quiet = events.length === 0 ? quiet + STEP_MS : 0
      yield* events
      if (quiet >= QUIET_MS) [quiet] = [0, yield KEEP_ALIVE]
    }
    yield many.results.map((result) => ended.get(result.mac) ?? result)
  } finally {
    stop()
  }
}

const renderEnd = (result: ManyResult): string => renderJson('machine', result)

/** Empties `changed`. */
function listRuns(site: Site, changed: Set<OneOrder>): readonly string[] {
  const orders = [...changed]
  changed.clear()
  return orders.map((order) => renderRun(site, order)).filter((event) => event !== '')
}
