/** The runs API: the history as a list, as exports, and one by one. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { getRouterParam, type H3Event } from 'h3'
import * as z from 'zod'
import { MacSchema } from '../../core/machine/mac-schema.ts'
import type { MachineBase } from '../../core/machine/machine.ts'
import { printableText } from '../../core/foundation/printable.ts'
import { CSV_HEAD, renderRunRow } from '../../core/machine/run-table.ts'
import { toWireRun, WireRunSchema } from '../../core/machine/run-record.ts'
import { RUN_RESULTS, type Run } from '../../core/machine/run.ts'
import type { RunFilter, Runs } from '../../services/state/runs.ts'
import type { NumberedRun } from '../../services/state/run-rows.ts'
import { download, json, text } from '../http/answers.ts'
import { checked, renderSchema } from '../http/checked.ts'
import { refuse } from '../http/faults.ts'
import type { Site } from './site.ts'
import { readMac } from '../http/checked.ts'
import type { Route } from '../http/route.ts'

const word = z.string().max(300).optional()
const QUERY = z.object({
  mac: z.string().max(40).pipe(MacSchema).optional(),
  state: z.enum(['running', 'stalled', ...RUN_RESULTS]).optional(),
  image: word,
  serial: word,
  since: z.iso.datetime({ offset: true }).optional(),
  until: z.iso.datetime({ offset: true }).optional(),
  q: word,
  before: z.coerce.number().int().min(1).max(Number.MAX_SAFE_INTEGER).optional(),
  limit: z.coerce.number().int().min(1).max(500).default(50),
})

const PAGE = z.object({
  runs: z.array(WireRunSchema.extend({ n: z.int() })),
  /** `before` of the next page; null: this was the last. */
  next: z.int().nullable(),
  /** Of all pages. */
  total: z.int(),
})

const FILTERS = {
  state: 'running, stalled, done, failed, cancelled or lost',
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
const CSV = { type: 'string', contentMediaType: 'text/csv' }
const PLAIN = { type: 'string', contentMediaType: 'text/plain' }

/** Of a query string, as pages and programs write it; empty values ask for nothing. */
export function parseRunFilter(query: URLSearchParams): RunFilter {
  const fields = [...query].filter(([name, value]) => value !== '' && name !== 'page')
  const { state, q, since, until, ...asked } = checked(QUERY, Object.fromEntries(fields), 'query')
  const given = Object.entries(asked).filter(([, value]) => value !== undefined)
  const isOpen = state === 'running' || state === 'stalled'
  return {
    ...Object.fromEntries(given),
    limit: asked.limit,
    ...(state === undefined || isOpen ? {} : { result: state }),
    ...(isOpen ? { open: true, stalled: state === 'stalled' } : {}),
    ...(q === undefined ? {} : { text: q }),
    ...(since === undefined ? {} : { since: new Date(since).toISOString() }),
    ...(until === undefined ? {} : { until: new Date(until).toISOString() }),
  }
}

/** A page of the history, newest first; without a `next` it is the last, `total` counts them all. */
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

export function runRoutes<M extends MachineBase>({ machines, runs }: Site<M>): readonly Route[] {
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
    {
      method: 'GET',
      path: '/runs.csv',
      access: 'read',
      doc: {
        summary: 'All runs that the filters find, as CSV',
        query: { mac: 'Of this machine', ...FILTERS },
        answers: { 200: CSV },
        refuses: [422],
      },
      handle: (event) => download(renderCsv(runs, filterOf(event)), 'text/csv', 'runs.csv'),
    },
    {
      method: 'GET',
      path: '/runs.json',
      access: 'read',
      doc: {
        summary: 'All runs that the filters find, as one JSON array',
        query: { mac: 'Of this machine', ...FILTERS },
        answers: { 200: renderSchema(z.array(WireRunSchema), 'output') },
        refuses: [422],
      },
      handle: (event) =>
        download(renderJson(runs, filterOf(event)), 'application/json', 'runs.json'),
    },
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
        // What a machine did outlives its record.
        const isKnown = machines.peek(filter.mac) !== null || runs.count({ mac: filter.mac }) > 0
        if (!isKnown) throw refuse(404, `no machine record for ${filter.mac}`)
        return showPage(runs, filter)
      },
    },
    {
      method: 'GET',
      path: '/machines/:mac/runs/:id',
      access: 'read',
      doc: { summary: 'One run', answers: { 200: renderSchema(WireRunSchema, 'output') } },
      handle: (event) => json(toWireRun(findRun(runs, event))),
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

const STEP = 500

/** Row by row, so that a long history is in nobody's memory. */
async function* walk(
  runs: Pick<Runs, 'list'>,
  filter: RunFilter,
): AsyncGenerator<readonly NumberedRun[]> {
  let next: RunFilter = { ...filter, limit: STEP }
  for (;;) {
    const found = runs.list(next)
    const last = found.at(-1)
    if (last !== undefined) yield found
    if (last === undefined || found.length < STEP) return
    next = { ...next, before: last.n }
    await nextTurn()
  }
}

async function* renderCsv(runs: Runs, filter: RunFilter): AsyncGenerator<string> {
  yield CSV_HEAD
  for await (const found of walk(runs, filter)) {
    yield found.map(({ run }) => renderRunRow(run)).join('')
  }
}

async function* renderJson(runs: Runs, filter: RunFilter): AsyncGenerator<string> {
  let separator = '[\n'
  for await (const found of walk(runs, filter)) {
    yield separator + found.map(({ run }) => JSON.stringify(toWireRun(run))).join(',\n')
    separator = ',\n'
  }
  yield separator === '[\n' ? '[]\n' : '\n]\n'
}
