/** Arms one machine now, or applies one action to many, row by row. */
import { json, type Answer } from '../../kit/web/answers/answers.ts'
import type { H3Event } from 'h3'
import * as z from 'zod'
import { parseMac, type Mac } from '../../kit/net/rules/mac.ts'
import type { MachineBase } from '../../engine/inventory/rules/machine.ts'
import { checked, readMac, renderSchema } from '../../kit/web/answers/checked.ts'
import { refuse, refuseFields } from '../../kit/web/answers/faults.ts'
import { LIMITS } from '../../kit/web/answers/limits.ts'
import { awaitEnd, followOrder, type AwaitedOrder } from './flash-follow.ts'
import { actOnMany } from './many.ts'
import type { Site } from './site.ts'
import type { Route } from '../../kit/web/answers/route.ts'

/** The other fields of the body are the action's own parameters. */
const FLASH_BODY = z.looseObject({
  wait: z
    .number()
    .min(0)
    .max(LIMITS.waitSeconds)
    .optional()
    .describe('Seconds to wait for the end of the flash before answering'),
  until: z
    .enum(['flashed', 'booted'])
    .default('flashed')
    .describe(
      'What is waited for; booted: until the new system was seen, which takes [proof] enabled',
    ),
  power: z
    .union([z.boolean(), z.literal('restart')])
    .default(false)
    .describe('Turn the machine on and boot it from the network; restart: also where it is on'),
})

const BULK_BODY = z.strictObject({
  action: z.string().max(40).describe('delete, or an action of this server: flash…'),
  macs: z.array(z.string().max(40)).max(LIMITS.bulkMachines).optional(),
  q: z.string().max(1000).optional().describe('Instead of macs: all that this search finds'),
  parameters: z.record(z.string(), z.unknown()).optional(),
  dry_run: z.boolean().optional().describe('Only report what would be done'),
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
    }),
  ),
  batch: z
    .string()
    .optional()
    .describe('The batch that was made of it: GET /batches/{id}; absent after a dry run'),
})

type BulkAnswer = z.infer<typeof BULK_ANSWER>

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
    {
      method: 'POST',
      path: '/machines/bulk',
      access: 'machines',
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

async function flash(site: Site, event: H3Event, body: unknown): Promise<Answer> {
  const { line } = site
  const mac = readMac(event)
  const { wait = 0, until, power, ...parameters } = checked(FLASH_BODY, body ?? {})
  checkUntil(site, until)
  checkAction(site, event, 'flash', parameters)
  const boot = power === false ? null : await prepareBoot(site, event, power === 'restart')
  const armed = await actOn(site, event, 'flash', parameters)
  const trouble = (await boot?.()) ?? null
  if (trouble !== null) {
    const detail = `It is armed, and was not booted. ${trouble}`
    return json({ detail, outcome: 'not-booted', machine: line.toWire(armed) }, 502)
  }
  return await answerOrder(site, event, armed, { mac, order: line.nameOrder(armed), until, wait })
}

/** Answers at once, at the end of the order, or with events until then. */
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
  // It may have gone while we waited.
  return json({ ...ended, machine: line.toWire(machines.peek(mac) ?? armed) })
}

const ARMED = { outcome: 'armed' } as const

const isEventStream = ({ req }: H3Event): boolean =>
  req.headers.get('accept')?.includes('text/event-stream') === true

/** Throws a 422 where nobody would ever say what is waited for. */
function checkUntil({ proof }: Site, until: 'flashed' | 'booted'): void {
  if (until === 'booted' && proof?.isEnabled() !== true) throw refuse(422, NOT_AWAITED)
}

const NOT_AWAITED = 'until: this server does not wait for first boots; set [proof] enabled = true'

/** Checks what can be known before anything is armed; what it returns boots the machine. */
async function prepareBoot(
  { power, checkScope, by, findMachine }: Site,
  event: H3Event,
  isRestart: boolean,
): Promise<() => Promise<string | null>> {
  if (power === undefined) throw refuse(422, 'this server controls the power of no machine')
  checkScope(event, 'power')
  const { mac } = findMachine(readMac(event))
  const who = by(event)
  const refusal = await power.refuseBoot(mac, isRestart, who)
  if (refusal !== null) throw refuse(409, refusal)
  return () => power.boot(mac, isRestart, who)
}

/**
 * Carries out one action on the machine of the path; answers with the machine as it is then. Rejects
 * with a 404 where there is no such machine, and with a 409 where the action is refused.
 */
export async function act(
  site: Site,
  event: H3Event,
  action: string,
  parameters: object,
): Promise<Answer> {
  const acted = await actOn(site, event, action, parameters)
  return json(site.line.toWire(site.machines.peek(acted.mac) ?? acted))
}

/** The same; resolves to the machine as the action left it. */
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
  const { action, macs, q, parameters = {}, dry_run = false } = asked
  if ((macs === undefined) === (q === undefined)) throw refuse(422, 'give either macs or q')
  if (action === 'delete' && q?.trim() === '') {
    throw refuse(
      422,
      'an empty search is the whole fleet: name them in macs, or search for something',
    )
  }
  // What a search finds may be many.
  const machines = macs?.length ?? Infinity
  checkAction(site, event, action, parameters, { within: ['parameters'], machines })
  const request = { action, parameters, isDryRun: dry_run, q: q ?? null }
  const targets = (await pick(site, asked)).map((mac) => ({ mac }))
  return json(renderActed(dry_run, await actOnMany(site, request, targets, site.by(event))))
}

function renderActed(
  dry_run: boolean,
  { batch, results }: Awaited<ReturnType<typeof actOnMany>>,
): BulkAnswer {
  const done = results.filter(({ result }) => result === 'done').length
  return {
    dry_run,
    done,
    refused: results.length - done,
    results: [...results],
    ...(batch === null ? {} : { batch }),
  }
}

/**
 * Finds the machines that a request names by their MACs, or by a search. Throws a 422 for what is no
 * MAC.
 */
export async function pick(
  { machines, views }: Pick<Site, 'machines' | 'views'>,
  { macs, q }: { readonly macs?: readonly string[] | undefined; readonly q?: string | undefined },
): Promise<readonly Mac[]> {
  if (macs === undefined) {
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

interface AskedAction {
  /** Where in the body the parameters stand. */
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
