/** The runs API: the history as a list, as exports, and one by one. */
import { getRouterParam, type H3Event } from 'h3'
import * as z from 'zod'
import type { Mac } from '#kit/net/rules/mac.ts'
import { MacSchema } from '#kit/net/rules/mac-schema.ts'
import { printableText } from '#kit/foundation/printable.ts'
import { CSV_HEAD, renderRunRow } from '#fleet/run/rules/run-table.ts'
import { toWireRun, WireRunSchema } from '#fleet/run/rules/run-record.ts'
import { PROOF_STATES, RUN_RESULTS, type Run } from '#engine/inventory/rules/run.ts'
import { divideRun, WATERFALL_PARTS } from '#fleet/run/rules/waterfall.ts'
import type { RunFilter, Runs } from '#fleet/run/runs.ts'
import type { NumberedRun } from '#fleet/run/run-rows.ts'
import { json, text } from '#kit/web/answers/answers.ts'
import { checked, QueryTimeSchema, readMac, renderSchema } from '#kit/web/answers/checked.ts'
import { exportRoutes, STEP } from '#kit/web/answers/exports.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Site } from './site.ts'
import type { Route } from '#kit/web/answers/route.ts'

const word = z.string().max(300).optional()
const QUERY = z.object({
  mac: z.string().max(40).pipe(MacSchema).optional(),
  state: z.enum(['running', 'stalled', ...RUN_RESULTS]).optional(),
  boot: z.enum(PROOF_STATES).optional(),
  image: word,
  serial: word,
  since: QueryTimeSchema.optional(),
  until: QueryTimeSchema.optional(),
  q: word,
  before: z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(50),
})

const PAGE = z.object({
  runs: z.array(WireRunSchema.extend({ n: z.int() })),
  /** `before` of the next page; null: last page. */
  next: z.int().nullable(),
  total: z.int(),
})

const DividedRunSchema = WireRunSchema.extend({
  waterfall: z
    .object({
      bars: z.array(
        z.object({
          part: z.enum(WATERFALL_PARTS),
          from: z.iso.datetime(),
          to: z.iso.datetime(),
          seconds: z.number(),
        }),
      ),
      seconds: z.number(),
      unattributed_seconds: z.number(),
    })
    .nullable(),
})

const FILTERS = {
  state: 'running, stalled, done, failed, cancelled or lost',
  boot: 'What is known of the first boot: watching, booted, seen, not-seen or failed',
  image: 'Exactly this name or ref',
  serial: 'Exactly this disk',
  since: 'Started at this time or later',
  until: 'Started before this time',
  q: 'Words, each of which must occur in machine, image, disk or who armed it',
}
const PAGING = {
  before: 'The next of a page, to get the following one',
  limit: '1 to 500; default 50',
}
const PLAIN = { type: 'string', contentMediaType: 'text/plain' }

/** Ignores empty values. Throws a 422 that names each wrong field. */
export function parseRunFilter(query: URLSearchParams): RunFilter {
  const fields = [...query].filter(([name, value]) => value !== '' && name !== 'page')
  const { state, q, ...asked } = checked(QUERY, Object.fromEntries(fields), 'query')
  return state === 'running' || state === 'stalled'
    ? { ...asked, text: q, open: true, stalled: state === 'stalled' }
    : { ...asked, text: q, result: state }
}

/** Newest first. `next` null: the last page; `total` counts all pages. */
export function readRunPage(runs: Pick<Runs, 'list' | 'count'>, filter: RunFilter) {
  const { before: _, limit, ...condition } = filter
  const found = runs.list({ ...filter, limit: limit + 1 })
  const shown = found.slice(0, limit)
  return {
    shown,
    next: found.length > limit ? (shown.at(-1)?.n ?? null) : null,
    total: runs.count(condition),
  }
}

export function runRoutes(site: Site): readonly Route[] {
  const { machines, runs } = site
  return [
    {
      method: 'GET',
      path: '/runs',
      access: 'read',
      doc: {
        summary: 'Runs of all machines, newest first',
        query: { mac: 'Of this machine', ...FILTERS, ...PAGING },
        answers: { 200: renderSchema(PAGE, 'output') },
        refuses: [422],
      },
      handle: (event) => showPage(runs, filterOf(event)),
    },
    ...exportRoutes<NumberedRun>({
      path: '/runs',
      query: { mac: 'Of this machine', ...FILTERS },
      schema: renderSchema(z.array(WireRunSchema), 'output'),
      open(event) {
        const filter = { ...filterOf(event), limit: STEP }
        return (last) => runs.list({ ...filter, before: last?.n ?? filter.before })
      },
      csvHead: CSV_HEAD,
      renderCsvRow: ({ run }) => renderRunRow(run, findName(site, run.mac)),
      toWire: ({ run }) => toWireRun(run),
    }),
    {
      method: 'GET',
      path: '/machines/:mac/runs',
      access: 'read',
      doc: {
        summary: 'Runs of one machine, newest first',
        query: { ...FILTERS, ...PAGING },
        answers: { 200: renderSchema(PAGE, 'output') },
        refuses: [422],
      },
      handle(event) {
        const filter = { ...filterOf(event), mac: readMac(event) }
        // Runs outlive the record of their machine.
        const isKnown = machines.peek(filter.mac) !== null || runs.count({ mac: filter.mac }) > 0
        if (!isKnown) throw refuse(404, `no machine record for ${filter.mac}`)
        return showPage(runs, filter)
      },
    },
    {
      method: 'GET',
      path: '/machines/:mac/runs/:id',
      access: 'read',
      doc: { summary: 'One run', answers: { 200: renderSchema(DividedRunSchema, 'output') } },
      handle(event) {
        const run = findRun(runs, event)
        return json({ ...toWireRun(run), waterfall: divideRun(run) })
      },
    },
    {
      method: 'GET',
      path: '/machines/:mac/runs/:id/log',
      access: 'read',
      doc: { summary: 'What the machine sent as the log of a run', answers: { 200: PLAIN } },
      async handle(event) {
        const { mac, id } = findRun(runs, event)
        const log = await runs.findLog(mac, id)
        if (log === null) throw refuse(404, 'this run has no log')
        return text(printableText(log))
      },
    },
  ]
}

/** Null: it has none, or was deleted. */
function findName({ machines, line }: Pick<Site, 'machines' | 'line'>, mac: Mac): string | null {
  const machine = machines.peek(mac)
  if (machine === null) return null
  const { name, hostname } = line.toWire(machine)
  return [name, hostname].find((each) => typeof each === 'string') ?? null
}

const filterOf = (event: H3Event): RunFilter => parseRunFilter(event.url.searchParams)

function showPage(runs: Runs, filter: RunFilter) {
  const { shown, next, total } = readRunPage(runs, filter)
  return json({ runs: shown.map(({ n, run }) => ({ n, ...toWireRun(run) })), next, total })
}

function findRun(runs: Runs, event: H3Event): Run {
  const mac = readMac(event)
  const run = runs.find(mac, getRouterParam(event, 'id') ?? '')
  if (run === null) throw refuse(404, `${mac} has no such run`)
  return run
}
