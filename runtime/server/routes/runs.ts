/** The runs API: the history as a list, as exports, and one by one. */
import { getRouterParam, type H3Event } from 'h3'
import * as z from 'zod'
import { type Mac, MacSchema } from '#kit/net/rules/mac.ts'
import { printableText } from '#kit/foundation/printable.ts'
import {
  CSV_HEAD,
  renderRunRow,
  toWireRun,
  WireRunSchema,
  secondsOf,
} from '#fleet/run/rules/run-record.ts'
import {
  PROOF_STATES,
  RUN_RESULTS,
  type Run,
  type RunResult,
  MAX_LOG_BYTES,
  MAX_PROGRESS_BYTES,
  ProgressSchema,
  RunIdSchema,
} from '#engine/inventory/rules/run.ts'
import { divideRun, WATERFALL_PARTS } from '#fleet/run/rules/waterfall.ts'
import type { RunFilter, Runs } from '#fleet/run/runs.ts'
import type { NumberedRun } from '#fleet/run/run-rows.ts'
import { json, text, nothing, type Answer } from '#kit/web/answers/answers.ts'
import { checked, QueryTimeSchema, readMac, renderSchema } from '#kit/web/answers/checked.ts'
import { exportRoutes, type Route, STEP } from '#kit/web/answers/route.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Site } from './site.ts'
import { IMAGE_FORMATS } from '#appliance/disk-images.ts'
import type { RunUpdate } from '#fleet/run/running-runs.ts'
import type { PlainEvent } from '#kit/web/answers/caller.ts'
import type { Metrics } from '#kit/web/http/metrics.ts'
import { hideBootTokens } from '#fleet/boot/rules/boot-decision.ts'
import { after, type MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { LIMITS } from '#kit/web/answers/limits.ts'
import type { Contact, Signal } from './transition.ts'

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
  boot: 'State of the first boot: watching, booted, seen, not-seen or failed',
  image: 'Exactly this name or ref',
  serial: 'Exactly this disk',
  since: 'Started at this time or later',
  until: 'Started before this time',
  q: 'Words that must all occur in machine, image, disk or the name of the person who armed it',
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
      reach: 'list',
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
      doc: { summary: 'The log of a run, as sent by the machine', answers: { 200: PLAIN } },
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

// The events and metrics that runs produce.

/** Of a run that began, a cancelled flash, and the run before that was lost. */
function listRunEvents({ run, isNew, hasEnded, lost }: RunUpdate): readonly PlainEvent[] {
  // Its order records how a capture ends.
  const isCancelled = hasEnded && run.result === 'cancelled' && run.mode !== 'capture'
  return [
    ...(lost === null ? [] : [renderLost(lost)]),
    ...(isNew ? [renderStarted(run)] : []),
    ...(isCancelled ? [renderCancelled(run)] : []),
  ]
}

const renderStarted = (run: Run): PlainEvent => ({
  kind: run.mode === 'capture' ? 'machine.capture_started' : 'machine.flash_started',
  summary: `${run.mac} started to ${describeStart(run)}`,
  details: {
    run: run.id,
    mode: run.mode,
    image: run.image?.name ?? null,
    serial: run.disk?.serial ?? null,
    armed_by: run.armed_by?.actor ?? null,
  },
})

function describeStart({ mode, image, disk }: Run): string {
  const name = image?.name ?? 'an image'
  const on = disk?.model ?? disk?.path ?? 'a disk'
  if (mode === 'capture') return `capture ${on} as ${name}`
  return disk === null ? `flash ${name}` : `flash ${name} to ${on}`
}

const renderCancelled = ({ mac, id, reason }: Run): PlainEvent => ({
  kind: 'machine.flash_cancelled',
  summary: `${mac} reported that its flash was cancelled${reason === null ? '' : `: ${reason}`}`,
  details: { run: id, reason },
})

export const nameRun = (run: string, events: readonly PlainEvent[]): readonly PlainEvent[] =>
  events.map((event) => ({ ...event, details: { ...event.details, run } }))

/** An end comes twice, by `progress` and by `status`. */
export const isOnRecord = (
  ended: Pick<RunUpdate, 'run' | 'hasEnded'>,
  result: RunResult,
): boolean => result === 'failed' && !ended.hasEnded && ended.run.result === result

export const renderLost = ({ mac, id, mode, reason }: Run): PlainEvent => ({
  kind: mode === 'capture' ? 'machine.capture_lost' : 'machine.flash_lost',
  summary: `${mac} never finished a ${mode === 'capture' ? 'capture' : 'flash'}: ${reason ?? 'it stopped responding'}`,
  details: { run: id },
})

/** Called once a run. */
export function countRun(metrics: Metrics, run: Run): void {
  const result = run.result ?? 'lost'
  if (run.mode === 'capture') return metrics.count('flasher_capture_total', { result })
  const format = IMAGE_FORMATS.find((each) => each === run.image?.format) ?? 'other'
  metrics.count('flasher_flash_total', { result, format })
  metrics.count('flasher_flash_bytes_total', {}, run.bytes_written)
  const seconds = secondsOf(run)
  if (seconds !== null && result !== 'lost') {
    metrics.timer('flasher_flash_seconds', { result })(seconds)
  }
}

export function gaugeRuns(metrics: Metrics, runs: Runs): void {
  metrics.gauge('flasher_runs', async () => {
    const running = runs.listRunning()
    const stalled = running.filter((run) => run.stalled).length
    return [
      { labels: { state: 'running' }, value: running.length - stalled },
      { labels: { state: 'stalled' }, value: stalled },
    ]
  })
}

/** Receives the reports of a flashing machine: its progress, and its log after a failure. */
const RETRY_SECONDS = 30

export function runPostRoutes(site: Site): readonly Route[] {
  const { machines, runs } = site

  /** Before a body is read: unknown machines send none. */
  function admit(event: H3Event): MaybePromise<void> {
    const mac = readMac(event)
    return after(
      site.admitMachine(mac, 'report', site.contact(event)),
      () => void site.findMachine(mac),
    )
  }

  async function report(event: H3Event, body: unknown): Promise<Answer> {
    const mac = readMac(event)
    const contact = site.contact(event)
    const machine = site.findMachine(mac)
    const post = checked(ProgressSchema, body)
    const isKnown = runs.find(mac, post.run) !== null
    if (!isKnown) await site.admitMachine(mac, 'begin', contact)
    const { origin, stamps } = site.line.describeRun(machine, contact, null)
    const { baseUrl } = contact
    const isOneOfSeveral = (site.otherServers?.(baseUrl).length ?? 0) > 0
    const began = isKnown
      ? origin
      : { ...origin, stamps: fillStamps({ ...stamps, ...site.stamps?.take(mac) }) }
    const taken = await runs.take(post, began, isOneOfSeveral ? baseUrl : null)
    if (!taken.ok) {
      const headers = { 'retry-after': String(RETRY_SECONDS) }
      throw refuse(429, 'this machine starts too many runs', { headers })
    }
    machines.see(mac, { at: contact.now, ip: contact.ip ?? '' })
    await settle(site, contact, taken.value)
    return nothing()
  }

  async function takeLog(event: H3Event, bytes: AsyncIterable<Uint8Array>): Promise<Answer> {
    const mac = readMac(event)
    const id = RunIdSchema.safeParse(event.url.searchParams.get('run'))
    const missing = () => refuse(404, `${mac} has no such run`)
    if (!id.success || runs.find(mac, id.data) === null) throw missing()
    if (!(await runs.saveLog(mac, id.data, await readTail(bytes)))) throw missing()
    site.changes.announce({ topic: 'machine', mac })
    return nothing()
  }

  return [
    {
      method: 'POST',
      path: '/pxe/:mac/progress',
      access: 'open',
      takes: 'json',
      admit,
      most: MAX_PROGRESS_BYTES,
      doc: {
        summary: 'Progress of a flash: at every change of phase, and every few seconds',
        body: renderSchema(ProgressSchema, 'input'),
        answers: { 204: null },
        refuses: [401, 429],
      },
      handle: report,
    },
    {
      method: 'POST',
      path: '/pxe/:mac/log',
      access: 'open',
      takes: 'bytes',
      admit,
      most: LIMITS.log,
      seconds: LIMITS.bodySeconds,
      doc: {
        summary: `The log of a run; its last ${MAX_LOG_BYTES / 1024} KiB are kept`,
        query: { run: 'The run that it belongs to' },
        body: { type: 'string', contentMediaType: 'text/plain' },
        answers: { 204: null },
        refuses: [401],
      },
      handle: takeLog,
    },
  ]
}

const fillStamps = (known: Partial<NonNullable<Run['stamps']>>): Run['stamps'] => ({
  power_on_at: null,
  script_at: null,
  kernel_at: null,
  initrd_at: null,
  reset_at: null,
  start_at: null,
  system_at: null,
  plan_at: null,
  ...known,
})

async function settle(
  { line, fleet, changes, metrics, recordAll, proof }: Site,
  contact: Contact,
  { run, lost, ...update }: RunUpdate,
): Promise<void> {
  const { mac, result } = run
  const on = { actor: 'pxe-client', ip: contact.ip } as const
  const transition = (signal: Signal) =>
    fleet.update(mac, on, (before) => {
      if (before === null) return null
      const decided = line.transition(before, signal, contact)
      return { ...decided, events: nameRun(run.id, decided.events) }
    })
  await followBoot(proof, { run, ...update })
  if (update.isNew && result === null && run.mode === 'flash') {
    await transition({ kind: 'run-began' })
  }
  // At each post: the server may have been killed between storing the run and ending its order.
  if (run.mode === 'capture') await endCapture(run, transition)
  if (!update.isTurn) return
  changes.announce({ topic: 'machine', mac })
  if (lost !== null) countRun(metrics, lost)
  await recordAll(listRunEvents({ run, lost, ...update }), { subject_id: mac, ...on })
  if (!update.hasEnded) return
  countRun(metrics, run)
  if (run.mode !== 'capture') await endFlash(run, transition)
}

/** The next flash ends the wait for the previous system; the end of a flash begins one. */
async function followBoot(
  proof: Site['proof'],
  { run, isNew }: Pick<RunUpdate, 'run' | 'isNew'>,
): Promise<void> {
  if (isNew) await proof?.leave(run.mac)
  if (run.result !== null) await proof?.begin(run)
}

type Apply = (signal: Signal) => MaybePromise<unknown>

/** `status` may never come; if it does, it is not recorded again. */
async function endFlash({ result, reason }: Run, transition: Apply): Promise<void> {
  if (result === 'failed' || result === 'cancelled') {
    await transition({ kind: 'run-stopped', result, reason })
  }
}

/** No other report follows: its last post is repeated until it is answered. */
async function endCapture(
  { result, reason, started_at: startedAt }: Run,
  transition: Apply,
): Promise<void> {
  if (result === null || result === 'lost') return
  await transition({ kind: 'capture-ended', result, reason, startedAt })
}

/** Each piece costs memory, however short it is. */
const MAX_CHUNKS = 4096

/** The end of a log says why. */
async function readTail(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  let chunks: Uint8Array[] = []
  let length = 0
  const cut = () => {
    const joined = Buffer.concat(chunks)
    return joined.subarray(Math.max(0, joined.length - MAX_LOG_BYTES))
  }
  for await (const chunk of bytes) {
    chunks.push(chunk)
    length += chunk.length
    if (length < 2 * MAX_LOG_BYTES && chunks.length < MAX_CHUNKS) continue
    const tail = cut()
    chunks = [tail]
    length = tail.length
  }
  // The kernel's log begins with its command line.
  return Buffer.from(hideBootTokens(cut().toString('latin1')), 'latin1')
}
