/** /ui/machines/{mac}/runs/{id}: one run with its steps, its facts and the log that the machine sent. */
import { getRouterParam, type H3Event, type HTTPResponse } from 'h3'
import { printable, printableLines } from '../../../../core/foundation/printable.ts'
import { renderDuration } from '../../../../core/foundation/rate.ts'
import type { Run, RunPhase } from '../../../../core/machine/run.ts'
import { secondsOf } from '../../../../core/machine/run-view.ts'
import {
  banner,
  card,
  copyable,
  copyBlock,
  factList,
  renderBytes,
  renderDiskBytes,
} from '../../../../web/ui/elements.ts'
import { refuse } from '../../../../web/http/faults.ts'
import { address, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { refreshOnNews } from '../../../../web/ui/refresh.ts'
import { readMac } from '../../../../web/http/checked.ts'
import type { Route } from '../../../../web/http/route.ts'
import { renderExact, renderTime, type Clock } from '../../../../web/ui/times.ts'
import type { PageContext } from '../frame/page-context.ts'
import { pageRoute } from '../frame/page-routes.ts'
import { nameOf } from '../view/machine-view.ts'
import { renderBar } from '../view/run-bar.ts'
import {
  renderArmer,
  renderRateOf,
  renderRunState,
  renderVerified,
  runPath,
} from '../view/run-table.ts'
import { machinePath } from '../view/machine-row.ts'

export const runPage = (context: PageContext): Route =>
  pageRoute('/ui/machines/:mac/runs/:id', (event) => show(context, event))

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const { site } = context
  const mac = readMac(event)
  const run = site.runs.find(mac, getRouterParam(event, 'id') ?? '')
  if (run === null) {
    throw refuse(404, `${mac} has no such run`, { hint: 'Old runs are removed after a while.' })
  }
  const machine = await site.machines.find(mac)
  const log = await site.runs.findLog(mac, run.id)
  return await context.show(event, {
    title: `Run of ${machine === null ? mac : nameOf(machine)}`,
    heading: html`Run of
      <a href="${machinePath(mac)}"><bdi>${machine === null ? mac : nameOf(machine)}</bdi></a>`,
    section: '/ui/runs',
    trail: html`<a href="/ui/runs">Runs</a> / <a href="${machinePath(mac)}">${mac}</a>`,
    live: address('/events/machines', { q: `mac:${mac}` }),
    body: html`<div class="stack" ${refreshOnNews('run', runPath(run), 1000)}>
      <section class="card stack">
        ${renderRunState(run)} ${renderSentence(run)}
        ${run.result === null ? html`<div class="wide-bar">${renderBar(run)}</div>` : null}
        ${run.reason === null || run.result === 'done' ? null : banner('failed', run.reason)}
      </section>
      <div class="columns">
        <div>
          ${card({ title: 'Steps', body: renderSteps(run, context.clock().zone) })}
          ${renderLog(run, log)}
        </div>
        <div>${renderFacts(context, run)}</div>
      </div>
    </div>`,
  })
}

const VERBS: Readonly<Record<string, string>> = {
  done: 'Wrote',
  failed: 'Failed to write',
  cancelled: 'Cancelled while writing',
  lost: 'Lost contact while writing',
}

function renderSentence({ image, disk, result }: Run): Html {
  const verb = VERBS[result ?? ''] ?? 'Writing'
  const target =
    disk === null
      ? 'an unknown disk'
      : html`<strong><bdi>${printable(disk.model?.trim() || disk.path || 'a disk')}</bdi></strong
          >${disk.serial === null ? null : html` (<code>${printable(disk.serial)}</code>)`}`
  return html`<p class="sentence">
    ${verb} <strong><bdi>${image?.name ?? 'an unknown image'}</bdi></strong> to ${target}.
  </p>`
}

/** How long each step took, as bars of the same scale. */
function renderSteps(run: Run, zone: string): Html {
  const steps = run.steps.map((step, at) => {
    const next = run.steps[at + 1]?.at ?? run.ended_at ?? run.updated_at
    return { ...step, seconds: Math.max(0, (Date.parse(next) - Date.parse(step.at)) / 1000) }
  })
  if (steps.length === 0) return html`<p class="dim">No steps were reported.</p>`
  const whole = Math.max(secondsOf(run) ?? 0, 0.001)
  return html`<ol class="steps">
    ${steps.map(
      ({ phase, at, seconds }) =>
        html`<li class="${phase}">
          <span class="what">${NAMES[phase]}</span>
          ${
            isEnd(phase)
              ? html`<span class="grow"></span>`
              : html`<meter
                  class="grow"
                  max="1"
                  value="${(seconds / whole).toFixed(4)}"
                  aria-label="${NAMES[phase]}"
                ></meter>`
          }
          <span class="number">${isEnd(phase) ? null : renderDuration(seconds)}</span>
          <span class="dim small nowrap">${renderExact(new Date(at), zone)}</span>
        </li>`,
    )}
  </ol>`
}

const isEnd = (phase: RunPhase) => phase === 'done' || phase === 'failed' || phase === 'cancelled'

const NAMES: Readonly<Record<RunPhase, string>> = {
  started: 'Started',
  write: 'Write',
  verify: 'Verify',
  sync: 'Flush',
  uefi: 'Boot entry',
  done: 'Done',
  failed: 'Failed',
  cancelled: 'Cancelled',
}

const renderFacts = (context: PageContext, run: Run): Html =>
  html`${card({ title: 'Data', body: factList(listWritten(run)) })}
  ${card({ title: 'Target', body: factList(listPlace(run, context.clock())) })}`

type Facts = readonly (readonly [string, Content])[]

function listWritten(run: Run): Facts {
  const { image, bottleneck } = run
  const counted: Facts = [
    ['Read', renderBytes(run.bytes_read)],
    ['Written', renderBytes(run.bytes_written)],
    ['Rate', renderRateOf(run)],
  ]
  return [
    ['Image', image?.name],
    ['Source', image?.src ? printable(image.src) : null],
    ['Digest', copied(image?.sha256, 12)],
    ['Format', image?.format],
    ...(run.reported ? counted : []),
    ['Bottleneck', bottleneck],
    ['Verified', renderVerified(run)],
  ]
}

function listPlace(run: Run, clock: Clock): Facts {
  const { id, mode, disk, armed_by: armer } = run
  const armed: Facts =
    armer === null
      ? []
      : [
          ['Armed by', renderBy(run)],
          ['Armed', renderTime(armer.at, clock)],
        ]
  return [
    ['Disk', disk?.model],
    ['Serial', copied(disk?.serial)],
    ['Size', disk?.size_bytes ? renderDiskBytes(disk.size_bytes) : null],
    ['Path', copied(disk?.path)],
    ['Connection', disk?.tran],
    ['Mode', mode === 'flash' ? 'started by the server' : 'started in the wizard'],
    ...armed,
    ['Run', copied(id)],
  ]
}

/** `shown`: how many characters the page shows; undefined: all. */
const copied = (text: string | null | undefined, shown?: number): Content =>
  text ? copyable(text, printable(text.slice(0, shown))) : null

const renderBy = (run: Run): Content =>
  html`${renderArmer(run)}${run.armed_by?.ip ? html` <span class="dim">from ${run.armed_by.ip}</span>` : null}`

/** The log comes from the machine, so its control characters are replaced. */
function renderLog(run: Run, log: string | null): Content {
  if (log === null) return null
  const shown = printableLines(log).join('\n')
  return card({
    title: 'Log',
    id: 'log',
    aside: html`<a class="small" href="/machines/${run.mac}/runs/${run.id}/log">As text</a>`,
    body: copyBlock(shown, 'Log of this run'),
  })
}
