/** /ui/machines/{mac}/runs/{id}: one run with its steps, its facts and the log that the machine sent. */
import type { Answer } from '../../../../kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import { printable, printableLines } from '../../../../kit/foundation/printable.ts'
import { renderDuration } from '../../../../kit/foundation/rate.ts'
import type { Run, RunDisk, RunMode, RunPhase } from '../../../../engine/inventory/rules/run.ts'
import { secondsOf } from '../../../../fleet/run/rules/run-view.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill } from '../../../../kit/texts/text.ts'
import {
  banner,
  card,
  copyable,
  copyBlock,
  factList,
  renderBytes,
  renderDiskBytes,
} from '../../../../kit/web/ui/elements.ts'
import { refuse } from '../../../../kit/web/answers/faults.ts'
import {
  address,
  DIM,
  fillHtml,
  html,
  type Content,
  type Html,
} from '../../../../kit/web/ui/html.ts'
import { refreshOnNews } from '../../../../kit/web/ui/refresh.ts'
import { readMac } from '../../../../kit/web/answers/checked.ts'
import { renderMoment, renderTime, type Clock } from '../../../../kit/web/ui/times.ts'
import { pageAt } from '../../../pages/context-routes.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { nameOf } from '../view/machine-view.ts'
import { renderProof } from './first-boot-card.ts'
import { renderTimes } from './waterfall-card.ts'
import { renderAgain, renderBefore } from './run-again.ts'
import { renderRemovalButton } from './run-removal.ts'
import { renderBar } from '../../../pages/machines/run-bar.ts'
import {
  renderArmer,
  renderRateOf,
  renderRunState,
  renderVerified,
  runPath,
} from '../view/run-table.ts'
import { machinePath } from '../../../pages/machines/machines-list.ts'

const t = PAGES.runs.run

export const RUN_PAGE = pageAt('/ui/machines/:mac/runs/:id', show)

async function show(context: CurrentContext): Promise<Answer> {
  const { site } = context
  const mac = readMac(context.event)
  const run = site.runs.find(mac, getRouterParam(context.event, 'id') ?? '')
  if (run === null) {
    throw refuse(404, fill(t.missing, { mac }), { hint: t.missingHint })
  }
  const machine = await site.machines.find(mac)
  const log = await site.runs.findLog(mac, run.id)
  const name = machine === null ? mac : nameOf(machine)
  // A refresh keeps what the run is compared with.
  const here = address(runPath(run), { with: context.query.get('with') })
  return await context.show({
    title: fill(t.title, { machine: name }),
    heading: fillHtml(t.title, {
      machine: html`<a href="${machinePath(mac)}"><bdi>${name}</bdi></a>`,
    }),
    section: '/ui/runs',
    trail: html`<a href="/ui/runs">${PAGES.frame.titles.runs}</a> /
      <a href="${machinePath(mac)}">${mac}</a>`,
    actions: html`${renderAgain(context, run, machine)}${run.result === null ? null : renderRemovalButton(run)}`,
    updates: address('/events/machines', { q: `mac:${mac}` }),
    body: html`<div class="stack" ${refreshOnNews('run', here, 1000)}>
      <section class="card stack">
        ${renderRunState(run)} ${renderSentence(run)}
        ${run.result === null ? html`<div class="wide-bar">${renderBar(run)}</div>` : null}
        ${run.reason === null || run.result === 'done' ? null : banner('failed', run.reason)}
      </section>
      <div class="columns">
        <div>
          ${card({ title: t.steps.title, body: renderSteps(run, context.clock().zone) })}
          ${renderTimes(context, run)} ${renderProof(run.proof, context.clock())}
          ${renderLog(run, log)} ${renderBefore(context, run)}
        </div>
        <div>${renderFacts(context, run)}</div>
      </div>
    </div>`,
  })
}

function renderSentence({ image, disk, result, mode }: Run): Html {
  const sentences = mode === 'capture' ? t.captureSentences : t.sentences
  const sentence = fillHtml(sentences[result ?? 'running'], {
    image: html`<strong><bdi>${image?.name ?? t.unknownImage}</bdi></strong>`,
    disk: disk === null ? t.unknownDisk : renderTarget(disk),
  })
  return html`<p class="sentence">${sentence}</p>`
}

const renderTarget = ({ model, path, serial }: RunDisk): Html =>
  html`<strong><bdi>${printable(model?.trim() || path || t.someDisk)}</bdi></strong
    >${serial === null ? null : html` (<code>${printable(serial)}</code>)`}`

/** How long each step took, as bars of the same scale. */
function renderSteps(run: Run, zone: string): Html {
  const steps = run.steps.map((step, at) => {
    const next = run.steps[at + 1]?.at ?? run.ended_at ?? run.updated_at
    return { ...step, seconds: Math.max(0, (Date.parse(next) - Date.parse(step.at)) / 1000) }
  })
  if (steps.length === 0) return html`<p class="dim">${t.steps.none}</p>`
  const names = run.mode === 'capture' ? CAPTURE_NAMES : NAMES
  const whole = Math.max(secondsOf(run) ?? 0, 0.001)
  return html`<ol class="steps">
    ${steps.map(
      ({ phase, at, seconds }) =>
        html`<li class="${phase}">
          <span class="what">${names[phase]}</span>
          ${
            isEnd(phase)
              ? html`<span class="grow"></span>`
              : html`<meter
                  class="grow"
                  max="1"
                  value="${(seconds / whole).toFixed(4)}"
                  aria-label="${names[phase]}"
                ></meter>`
          }
          <span class="number">${isEnd(phase) ? null : renderDuration(seconds)}</span>
          <span class="dim small nowrap">${renderMoment(new Date(at), zone)}</span>
        </li>`,
    )}
  </ol>`
}

const isEnd = (phase: RunPhase) => phase === 'done' || phase === 'failed' || phase === 'cancelled'

const NAMES: Readonly<Record<RunPhase, string>> = t.steps.names
const CAPTURE_NAMES = { ...NAMES, ...t.steps.captureNames }

const renderFacts = (context: CurrentContext, run: Run): Html =>
  html`${card({ title: t.data.title, body: factList(listWritten(run)) })}
  ${card({ title: t.target.title, body: factList(listPlace(run, context.clock())) })}`

const MODES: Readonly<Record<RunMode, string>> = {
  flash: t.target.byServer,
  interactive: t.target.inWizard,
  capture: t.target.capture,
}

type RunRows = readonly (readonly [string, Content])[]

function listWritten(run: Run): RunRows {
  const { image, bottleneck, mode } = run
  const counted: RunRows = [
    [t.data.read, renderBytes(run.bytes_read)],
    [mode === 'capture' ? t.data.captured : t.data.written, renderBytes(run.bytes_written)],
    [t.data.delta, run.delta === null ? null : t.data.deltaStates[run.delta]],
    [t.data.kept, run.bytes_kept === null ? null : renderBytes(run.bytes_kept)],
    [t.data.rate, renderRateOf(run)],
  ]
  return [
    [t.data.image, image?.name],
    [t.data.source, image?.src ? printable(image.src) : null],
    [t.data.digest, copied(image?.sha256, 12)],
    [t.data.format, image?.format],
    ...(run.reported ? counted : []),
    [t.data.sources, renderSources(run)],
    [t.data.bottleneck, bottleneck],
    [t.data.verified, renderVerified(run)],
    [t.data.warning, run.warning],
    [t.data.server, run.server],
  ]
}

/** What came from each source, a line each; null: the image has one. */
function renderSources({ sources }: Run): Content {
  if (sources === null) return null
  return sources.map(({ name, bytes, trouble }) => {
    const words = { name: printable(name), bytes: renderBytes(bytes) }
    return html`<div>
      ${trouble === null ? fillHtml(t.data.share, words) : fillHtml(t.data.shareUntil, { ...words, trouble: printable(trouble) })}
    </div>`
  })
}

function listPlace(run: Run, clock: Clock): RunRows {
  const { id, mode, disk, armed_by: armer } = run
  return [
    [t.target.disk, disk?.model],
    [t.target.serial, copied(disk?.serial)],
    [t.target.size, disk?.size_bytes ? renderDiskBytes(disk.size_bytes) : null],
    [t.target.path, copied(disk?.path)],
    [t.target.connection, disk?.tran],
    [t.target.mode, MODES[mode]],
    [t.target.armedBy, armer === null ? null : renderBy(run)],
    [t.target.armed, armer === null ? null : renderTime(armer.at, clock)],
    [t.target.run, copied(id)],
  ]
}

/** `shown`: how many characters the page shows; undefined: all. */
const copied = (text: string | null | undefined, shown?: number): Content =>
  text ? copyable(text, printable(text.slice(0, shown))) : null

function renderBy(run: Run): Content {
  const actor = renderArmer(run)
  const ip = run.armed_by?.ip
  return ip ? fillHtml(t.target.armerFrom, { actor, ip, ...DIM }) : actor
}

/** The log comes from the machine, so its control characters are replaced. */
function renderLog(run: Run, log: string | null): Content {
  if (log === null) return null
  const shown = printableLines(log).join('\n')
  return card({
    title: t.log.title,
    id: 'log',
    aside: html`<a class="small" href="/machines/${run.mac}/runs/${run.id}/log"
      >${t.log.asText}</a
    >`,
    body: copyBlock(shown, t.log.label),
  })
}
