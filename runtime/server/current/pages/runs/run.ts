/** /ui/machines/{mac}/runs/{id}: one run with its steps, its facts and the log that the machine sent. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import { printable, printableLines } from '#kit/foundation/printable.ts'
import { renderDuration } from '#kit/foundation/rate.ts'
import type { Run, RunDisk, RunPhase } from '#engine/inventory/rules/run.ts'
import { secondsOf } from '#fleet/run/rules/run-view.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { banner, card, copyBlock, factList } from '#kit/web/ui/elements.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { address, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { refreshOnNews } from '#kit/web/ui/refresh.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { renderMoment } from '#kit/web/ui/times.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { nameOf } from '../view/machine-view.ts'
import { renderProof } from './first-boot-card.ts'
import { findOther, renderCompared } from './compared-card.ts'
import { listPlace, listWritten } from './run-facts.ts'
import { renderTimes } from './waterfall-card.ts'
import { renderAgain, renderBefore } from './run-again.ts'
import { renderRemovalButton } from './run-removal.ts'
import { renderBar } from '#server/pages/machines/run-bar.ts'
import { renderRunState, runPath } from '../view/run-table.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'

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
  const other = findOther(context, run)
  // A refresh keeps the comparison.
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
          ${renderCompared(context, run, other)}
          ${card({ title: t.steps.title, body: renderSteps(run, context.clock().zone) })}
          ${renderTimes(context, run, other)} ${renderProof(run.proof, context.clock())}
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

/** A log is the machine's text: control characters are replaced. */
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
