/** `/machines/{mac}/power` and `/power/bulk`: reads and controls the power of machines. */
import type { H3Event } from 'h3'
import * as z from 'zod'
import { renderPowerFailure, type PowerFailure } from '#fleet/power/rules/power.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { By } from '#kit/web/answers/caller.ts'
import { json } from '#kit/web/answers/answers.ts'
import { checked, readMac, renderSchema } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { LIMITS } from '#kit/web/answers/limits.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { pick } from '#server/routes/bulk.ts'
import type { Site } from '#server/routes/site.ts'
import type { PowerControl } from '#server/power/power-control.ts'
import {
  PowerDoneSchema,
  PowerViewSchema,
  PowerBodySchema,
  type PowerBody,
} from '#server/power/rules/power-request.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'

const BULK_BODY = PowerBodySchema.extend({
  macs: z.array(z.string().max(40)).max(LIMITS.bulkMachines).optional(),
  q: z.string().max(1000).optional().describe('Instead of macs: what this search finds'),
  dry_run: z.boolean().default(false).describe('Only report what would be done'),
  stagger: z
    .number()
    .min(0)
    .max(3600)
    .optional()
    .describe('Seconds between two machines; left out: as [power] stagger says'),
})

const BULK_ANSWER = z.object({
  dry_run: z.boolean(),
  started: z.number(),
  refused: z.number(),
  results: z.array(
    z.object({
      mac: z.string(),
      result: z.enum(['started', 'refused', 'missing']),
      reason: z.string().nullable(),
      shares_outlet_with: z.array(z.string()),
    }),
  ),
})
type PowerBulkAnswer = z.infer<typeof BULK_ANSWER>

interface PowerRouteDependencies {
  readonly control: PowerControl
  /** Seconds between two machines of one request. */
  stagger(): number
}

export function powerRoutes(
  site: Site<Machine>,
  { control, stagger }: PowerRouteDependencies,
): readonly Route[] {
  return [
    {
      method: 'GET',
      path: '/machines/:mac/power',
      access: 'read',
      doc: {
        summary: 'Power control of a machine, and its state as last seen',
        answers: { 200: renderSchema(PowerViewSchema, 'output') },
      },
      handle: (event) => json(showPower(control, site.findMachine(readMac(event)).mac)),
    },
    {
      method: 'POST',
      path: '/machines/:mac/power',
      access: 'power',
      takes: 'json',
      doc: {
        summary: 'Turns a machine on or off, restarts it or reads its state; answers when done',
        body: renderSchema(PowerBodySchema, 'input'),
        answers: { 200: renderSchema(PowerDoneSchema, 'output') },
        refuses: [409],
      },
      async handle(event, body) {
        const { mac } = site.findMachine(readMac(event))
        const asked = checked(PowerBodySchema, body)
        const refusal = control.refuse(mac, asked)
        if (refusal !== null) throw refuse(409, refusal)
        const done = await control.act(mac, asked, site.by(event))
        return done.ok ? json(done.value) : answerPowerFailure(done.refusal)
      },
    },
    {
      method: 'POST',
      path: '/power/bulk',
      access: 'power',
      reach: 'list',
      takes: 'json',
      doc: {
        summary: 'Turns many machines on or off, one after the other; events record each result',
        body: renderSchema(BULK_BODY, 'input'),
        answers: { 200: renderSchema(BULK_ANSWER, 'output') },
      },
      async handle(event, body) {
        return json(await actOnMany(site, { control, stagger }, event, body))
      },
    },
  ]
}

/** Throws a 404 where none is set. */
export function showPower(control: PowerControl, mac: Mac) {
  const view = control.view(mac)
  if (view === null) throw refuse(404, `no power control is set up for ${mac}`)
  return view
}

interface PowerBegun {
  readonly macs: readonly Mac[]
  readonly asked: PowerBody
  /** Milliseconds between two machines. */
  readonly pause: number
  readonly by: By
  /** Runs that the requester knows of; absent: those under way now. */
  readonly known?: ReadonlySet<string>
}

/** One after the other, in the background: each has its event. */
export function beginPower(
  { log }: Pick<Site<Machine>, 'log'>,
  control: PowerControl,
  { macs, asked, ...each }: PowerBegun,
): void {
  control.actOnEach(macs, asked, each).catch((thrown: unknown) => {
    log.error(`power of machines: ${String(thrown)}`)
  })
}

/** A 409 for what must be changed here, a 502 for the BMC. */
function answerPowerFailure(failure: PowerFailure) {
  const { kind, asked, seen, fix, state } = failure
  const status = OURS.has(kind) ? 409 : kind === 'busy' ? 503 : 502
  const detail = renderPowerFailure(failure)
  return json({ detail, failure: { kind, asked, seen, fix, state } }, status)
}

const OURS: ReadonlySet<PowerFailure['kind']> = new Set(['address', 'unsupported', 'not-now'])

async function actOnMany(
  site: Site<Machine>,
  { control, stagger }: PowerRouteDependencies,
  event: H3Event,
  body: unknown,
): Promise<PowerBulkAnswer> {
  const { macs, q, dry_run, stagger: pause = stagger(), ...asked } = checked(BULK_BODY, body)
  if ((macs === undefined) === (q === undefined)) throw refuse(422, 'give either macs or q')
  const judge = (mac: Mac): PowerBulkAnswer['results'][number] => {
    const isMissing = site.machines.peek(mac) === null
    const reason = isMissing ? null : control.refuse(mac, asked)
    const shared = [...control.book.listSharing(mac)]
    const result = isMissing ? 'missing' : reason === null ? 'started' : 'refused'
    return { mac, result, reason, shares_outlet_with: shared }
  }
  const found = await pick(site, { macs, q })
  const results = found.map(judge)
  const going = found.filter((_, at) => results[at]?.result === 'started')
  if (!dry_run) {
    beginPower(site, control, { macs: going, asked, pause: pause * 1000, by: site.by(event) })
  }
  return { dry_run, started: going.length, refused: found.length - going.length, results }
}
