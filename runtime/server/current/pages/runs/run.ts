/** /ui/machines/{mac}/runs/{id}: one run with its steps, its facts and the log that the machine sent. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import { printable, printableLines } from '#kit/foundation/printable.ts'
import { renderDuration } from '#kit/foundation/size.ts'
import type { Run, RunDisk, RunPhase, Proof, RunMode } from '#engine/inventory/rules/run.ts'
import { secondsOf } from '#fleet/run/rules/run-record.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import {
  banner,
  card,
  copyBlock,
  factList,
  copyable,
  renderBytes,
  renderDiskBytes,
} from '#kit/web/ui/elements.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import {
  address,
  fillHtml,
  html,
  type Content,
  type Html,
  attributes,
  DIM,
} from '#kit/web/ui/html.ts'
import { refreshOnNews } from '#kit/web/ui/refresh.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { renderMoment, renderSpan, renderTime, type Clock } from '#kit/web/ui/times.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { nameOf, isWaiting, willFlash } from '../view/machine-view.ts'
import { renderRemovalButton } from './run-removal.ts'
import { renderBar, machinePath } from '#server/pages/machines/machines-list.ts'
import {
  renderRunState,
  runPath,
  renderRunList,
  renderArmer,
  renderRateOf,
  renderVerified,
} from '../view/run-table.ts'
import { divideRun, type Waterfall, type WaterfallPart } from '#fleet/run/rules/waterfall.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { opensQuestion, questionButton } from '#server/pages/question.ts'
import { isFlashMode, USUAL_FLASH_MODE } from '#server/current/rules/boot-mode.ts'
import type { Machine } from '#server/current/rules/machine.ts'
import { flashAgain } from '#server/current/rules/operator-edits.ts'
import { fingerprint, valuesOf } from '../machines/machine-form.ts'
import { parseMac } from '#kit/net/rules/mac.ts'

// The facts of a run as rows: what was written, and where.

const t = PAGES.runs.run

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

/** A line each; null: the image has one source. */
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

/** `shown`: characters; undefined: all. */
const copied = (text: string | null | undefined, shown?: number): Content =>
  text ? copyable(text, printable(text.slice(0, shown))) : null

function renderBy(run: Run): Content {
  const actor = renderArmer(run)
  const ip = run.armed_by?.ip
  return ip ? fillHtml(t.target.armerFrom, { actor, ip, ...DIM }) : actor
}

// The card of a run that sets its facts beside those of another one.

const titles = PAGES.view.runTable
const { target, compared } = PAGES.runs.run

/** Different in every run, so not worth showing. */
const OWN: ReadonlySet<string> = new Set([target.run, target.armed, titles.started])

function renderCompared(context: CurrentContext, run: Run, other: Run | null): Content {
  if (other === null) return null
  const [one, two] = [run, other].map((each) => new Map(listFacts(context, each)))
  if (one === undefined || two === undefined) return null
  const names = [...new Set([...one.keys(), ...two.keys()])]
  const rows = names
    .map((name) => ({ name, mine: one.get(name), others: two.get(name) }))
    .filter(({ mine, others }) => !isEmpty(mine) || !isEmpty(others))
    .map((row) => ({ ...row, differs: !OWN.has(row.name) && !isSame(row.mine, row.others) }))
  const differing = rows.filter(({ differs }) => differs).map(({ name }) => name)
  return card({
    title: compared.title,
    id: 'compared',
    aside: html`<a class="small" href="${runPath(run)}">${compared.end}</a>`,
    body: html`<p>
        ${differing.length === 0 ? compared.same : fill(compared.differ, { facts: differing.join(', ') })}
      </p>
      <table class="compared">
        <caption class="spoken">
          ${compared.title}
        </caption>
        <thead>
          <tr>
            <th scope="col">${compared.fact}</th>
            <th scope="col">${compared.mine}</th>
            <th scope="col">
              <a href="${swapped(run, other)}">${nameOther(context, run, other)}</a>
            </th>
          </tr>
        </thead>
        <tbody>
          ${rows.map(renderRow)}
        </tbody>
      </table>`,
  })
}

interface ComparedRow {
  readonly name: string
  readonly mine: Content
  readonly others: Content
  readonly differs: boolean
}

const renderRow = ({ name, mine, others, differs }: ComparedRow): Html =>
  html`<tr${attributes({ class: differs ? 'differs' : null })}>
    <th scope="row">${name}</th>
    <td>${isEmpty(mine) ? '–' : mine}</td>
    <td>${isEmpty(others) ? '–' : others}</td>
  </tr>`

const swapped = (run: Run, other: Run): string =>
  `${address(runPath(other), { with: `${run.mac}/${run.id}` })}#compared`

const listFacts = (context: CurrentContext, run: Run): RunRows => {
  const seconds = secondsOf(run)
  return [
    [titles.state, renderRunState(run)],
    [compared.reason, run.result === 'done' ? null : run.reason],
    [titles.started, renderTime(run.started_at ?? run.updated_at, context.clock())],
    [titles.duration, seconds === null ? null : renderSpan(seconds)],
    ...listWritten(run),
    ...listPlace(run, context.clock()),
  ]
}

const isEmpty = (value: Content): boolean => value === null || value === undefined || value === ''

const isSame = (one: Content, other: Content): boolean =>
  html`${one}`.toString() === html`${other}`.toString()

/** The run's id, with the MAC before it for another machine; null: no such run. */
function findOther({ site, query }: CurrentContext, run: Run): Run | null {
  const [id = '', text] = (query.get('with') ?? '').split('/').toReversed()
  const mac = text === undefined ? null : parseMac(text)
  if (mac?.ok === false) return null
  return id === '' ? null : site.runs.find(mac === null ? run.mac : mac.value, id)
}

/** By time, and by machine if that is another. */
function nameOther(context: CurrentContext, run: Run, other: Run): Content {
  const time = renderTime(other.started_at, context.clock())
  return other.mac === run.mac
    ? fillHtml(PAGES.runs.run.waterfall.other, { time })
    : fillHtml(PAGES.runs.run.waterfall.otherMachine, {
        time,
        machine: html`<bdi>${context.nameOf(other.mac)}</bdi>`,
      })
}

// What leads on from a run: the button that writes its image to its disk once more, and the runs of the machine before it.

const MAX_BEFORE = 5

/** Asks as every flash does. Nothing if the machine cannot be armed, or image or disk is gone. */
function renderAgain(context: CurrentContext, run: Run, machine: Machine | null): Content {
  if (machine === null || run.result === null) return null
  const armed = armAs(run, machine)
  if (armed === null || !canBeArmed(context, machine, armed)) return null
  const label = run.result === 'done' ? PAGES.machine.now.flashAgain : PAGES.machine.now.tryAgain
  const path = machinePath(machine.mac)
  if (fingerprint(armed) === fingerprint(machine)) {
    return questionButton({ action: `${path}/do/flash`, label })
  }
  return html`<form class="inline" ${opensQuestion(path)}>
    ${hidden({ ...valuesOf(armed), was: fingerprint(machine), confirm: 'ask' })}
    <button>${label}</button>
  </form>`
}

/** Null: the run names no image or disk. */
function armAs({ mode, image, disk }: Run, machine: Machine): Machine | null {
  const bty_image_ref = image?.ref ?? null
  const target_disk_serial = disk?.serial ?? null
  if (mode === 'capture' || bty_image_ref === null || target_disk_serial === null) return null
  const boot_mode = isFlashMode(machine.boot_mode) ? machine.boot_mode : USUAL_FLASH_MODE
  return { ...machine, boot_mode, bty_image_ref, target_disk_serial }
}

function canBeArmed(context: CurrentContext, machine: Machine, armed: Machine): boolean {
  const view = context.view(machine)
  const isTaken = view.run !== null || willFlash(view) || isWaiting(view)
  return (
    !isTaken &&
    context.services.images().some(({ ref }) => ref === armed.bty_image_ref) &&
    machine.known_disks?.some(({ serial }) => serial === armed.target_disk_serial) === true &&
    flashAgain(armed, context.site.now().toISOString()).ok
  )
}

function renderBefore({ site, clock }: CurrentContext, run: Run): Content {
  const until = run.started_at ?? run.updated_at
  const runs = site.runs.list({ mac: run.mac, until, limit: MAX_BEFORE }).map((each) => each.run)
  if (runs.length === 0) return null
  return card({
    title: t.before.title,
    id: 'before',
    aside: html`<a class="small" href="${address('/ui/runs', { mac: run.mac })}"
      >${t.before.all}</a
    >`,
    body: renderRunList(runs, clock()),
  })
}

/** In the drawing's units. */
const [WIDTH, ROW, LABEL, FIGURE] = [720, 22, 190, 80]

const FILLS: Readonly<Partial<Record<WaterfallPart, string>>> = {
  write: '#2f6fde',
  verify: '#5b8fe8',
  sync: '#5b8fe8',
  unattributed: '#b3402a',
}
const OTHERS = '#6d7f99'

/** `scale`: seconds for the full width, shared when two are compared. */
export function renderWaterfall(
  { bars, seconds, unattributed_seconds }: Waterfall,
  scale = seconds,
): Html {
  const room = WIDTH - LABEL - FIGURE
  const [first] = bars
  const begin = first === undefined ? 0 : Date.parse(first.from)
  const unit = room / Math.max(scale, 0.001)
  const place = (given: number) => (LABEL + given * unit).toFixed(1)
  return html`<svg
      xmlns="http://www.w3.org/2000/svg"
      viewBox="0 0 ${WIDTH} ${bars.length * ROW}"
      width="100%"
      role="img"
      aria-label="${fill(PAGES.runs.run.waterfall.summary, { seconds: seconds.toFixed(1) })}"
      font-family="sans-serif"
      font-size="13"
    >
      ${bars.map(({ part, from, seconds: length }, at) => {
        const start = (Date.parse(from) - begin) / 1000
        const words = { part: PAGES.runs.run.waterfall.parts[part], seconds: length.toFixed(1) }
        return html`<g>
          <title>${fill(PAGES.runs.run.waterfall.bar, words)}</title>
          <text x="0" y="${at * ROW + 15}" fill="currentColor"
            >${PAGES.runs.run.waterfall.parts[part]}</text
          >
          <rect
            x="${place(start)}"
            y="${at * ROW + 4}"
            width="${Math.max(1, length * unit).toFixed(1)}"
            height="${ROW - 8}"
            fill="${FILLS[part] ?? OTHERS}"
          ></rect>
          <text x="${WIDTH}" y="${at * ROW + 15}" text-anchor="end" fill="currentColor"
            >${fill(PAGES.runs.run.waterfall.figure, { seconds: length.toFixed(1) })}</text
          >
        </g>`
      })}
    </svg>
    <p class="small dim">
      ${fill(PAGES.runs.run.waterfall.total, { seconds: seconds.toFixed(1), lost: unattributed_seconds.toFixed(1) })}
    </p>`
}

/** Nothing before the run has ended. `found`: the other run. */
function renderTimes(context: CurrentContext, run: Run, found: Run | null): Content {
  const { site } = context
  const whole = divideRun(run)
  if (whole === null || whole.bars.length === 0) return null
  const other = found === null ? null : divideRun(found)
  const scale = Math.max(whole.seconds, other?.seconds ?? 0)
  return card({
    title: PAGES.runs.run.waterfall.title,
    id: 'times',
    body: html`${renderWaterfall(whole, scale)}
    ${
      found === null || other === null
        ? found === null && renderLinks(site, run)
        : html`<h3>
              <a href="${runPath(found)}">${nameOther(context, run, found)}</a>
            </h3>
            ${renderWaterfall(other, scale)}`
    }`,
  })
}

function renderLinks({ runs }: CurrentContext['site'], run: Run): Content {
  const others = runs.list({ mac: run.mac, result: 'done', limit: 2 }).map((each) => each.run)
  const other = others.find(({ id }) => id !== run.id)
  return other === undefined
    ? null
    : html`<p>
        <a href="${address(runPath(run), { with: other.id })}#compared"
          >${PAGES.runs.run.waterfall.compare}</a
        >
      </p>`
}

/** Nothing where nobody waits for the first boot. */
function renderProof(proof: Proof | null, clock: Clock): Content {
  if (proof === null) return null
  const { state, until, how, seconds, contacts, call_made_at: call, reason } = proof
  return card({
    title: PAGES.runs.run.proof.title,
    id: 'first-boot',
    body: html`<p>
        ${fillHtml(PAGES.runs.run.proof.sentences[state], { until: renderTime(until, clock) })}
      </p>
      ${factList([
        [PAGES.runs.run.proof.how, how === null ? null : PAGES.runs.run.proof.hows[how]],
        [PAGES.runs.run.proof.after, seconds === null ? null : renderSpan(seconds)],
        [PAGES.runs.run.proof.contacts, contacts === 0 ? null : contacts],
        [
          PAGES.runs.run.proof.call,
          call === null ? PAGES.runs.run.proof.noCall : PAGES.runs.run.proof.hasCall,
        ],
        [PAGES.runs.run.proof.seen, reason],
      ])}`,
  })
}

export const RUN_PAGE = pageAt('/ui/machines/:mac/runs/:id', 'read', show)

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
