/** /ui/machines/{mac}/runs/{id}: one run with its steps, its facts and the log that the machine sent. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import { printable, printableLines } from '#kit/foundation/printable.ts'
import { fillCount } from '#kit/foundation/text.ts'
import { renderDuration } from '#kit/foundation/size.ts'
import type { Run, RunDisk, RunPhase, Proof, RunMode } from '#engine/inventory/rules/run.ts'
import { secondsOf } from '#fleet/run/rules/run-record.ts'
import {
  banner,
  card,
  copyable,
  copyBlock,
  factList,
  refreshOnNews,
  renderBytes,
  renderDiskBytes,
} from '#kit/web/ui/elements.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { address, fillHtml, html, type Content, type Html, attributes } from '#kit/web/ui/html.ts'
import { readMac } from '#kit/web/answers/checked.ts'
import { renderMoment, renderSpan, renderTime, type Clock } from '#kit/web/ui/times.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'
import { nameOf, isWaiting, willFlash } from '#server/current/view/machine-view.ts'
import { findMovedChannel } from '#server/current/machines/now-card.ts'
import { renderRemovalButton } from './run-removal.ts'
import { renderBar, machinePath } from '#server/pages/machines/machines-list.ts'
import {
  renderRunState,
  runPath,
  renderRunList,
  renderArmer,
  renderRateOf,
  renderVerified,
} from '#server/current/view/run-table.ts'
import {
  PART_TITLES,
  divideRun,
  type Waterfall,
  type WaterfallPart,
} from '#fleet/run/rules/waterfall.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { opensQuestion, questionButton } from '#server/pages/question.ts'
import { isFlashMode, USUAL_FLASH_MODE } from '#server/current/machines/rules/boot-mode.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { flashAgain } from '#server/current/machines/rules/operator-edits.ts'
import { fingerprint, valuesOf } from '#server/current/machines/machine-form.ts'
import { parseMac } from '#kit/net/rules/mac.ts'

// The facts of a run as rows: what was written, and where.

const MODES: Readonly<Record<RunMode, string>> = {
  flash: 'started by the server',
  interactive: 'started in the wizard',
  capture: 'capture',
}

type RunRows = readonly (readonly [string, Content])[]

const DELTA_STATES = {
  compared: 'yes',
  'mostly-different': 'no, the disk held something else',
  'no-index': 'no, the image has no index',
  untrusted: 'no, the checksum of the image index is unknown',
} as const

function listWritten(run: Run): RunRows {
  const { image, bottleneck, mode } = run
  const counted: RunRows = [
    ['Read', renderBytes(run.bytes_read)],
    [mode === 'capture' ? 'Captured' : 'Written', renderBytes(run.bytes_written)],
    ['Only what differs', run.delta === null ? null : DELTA_STATES[run.delta]],
    ['Already on the disk', run.bytes_kept === null ? null : renderBytes(run.bytes_kept)],
    ['Rate', renderRateOf(run)],
  ]
  return [
    ['Image', image?.name],
    ['Source', image?.src ? printable(image.src) : null],
    ['Digest', copied(image?.sha256, 12)],
    ['Format', image?.format],
    ...(run.reported ? counted : []),
    ['Read from', renderSources(run)],
    ['Bottleneck', renderBottleneck(bottleneck)],
    ['Verified', renderVerified(run)],
    ['Warning', run.warning],
    ['Reported to', run.server],
  ]
}

/** In words; another program may report others. */
const BOTTLENECKS: ReadonlyMap<string, string> = new Map([
  ['disk', 'the target disk: writing to it took longest'],
  ['decoder', 'the processor: it spent longest on decompressing the image'],
  ['network', 'the network: fetching the image took longest'],
  ['source', 'the source: reading the image took longest'],
])

const renderBottleneck = (bottleneck: string | null): Content =>
  BOTTLENECKS.get(bottleneck ?? '') ?? bottleneck

/** A line each; null: the image has one source. */
function renderSources({ sources }: Run): Content {
  if (sources === null) return null
  return sources.map(({ name, bytes, trouble }) => {
    const words = { name: printable(name), bytes: renderBytes(bytes) }
    return html`<div>
      ${trouble === null ? fillHtml('{name}: {bytes}', words) : fillHtml('{name}: {bytes}, then left ({trouble})', { ...words, trouble: printable(trouble) })}
    </div>`
  })
}

function listPlace(run: Run, clock: Clock): RunRows {
  const { id, mode, disk, armed_by: armer } = run
  return [
    ['Disk', disk?.model],
    ['Serial', copied(disk?.serial)],
    ['Size', disk?.size_bytes ? renderDiskBytes(disk.size_bytes) : null],
    ['Path', copied(disk?.path)],
    ['Connection', disk?.tran],
    ['Mode', MODES[mode]],
    ['Armed by', armer === null ? null : renderBy(run)],
    ['Armed', armer === null ? null : renderTime(armer.at, clock)],
    ['Run', copied(id)],
  ]
}

/** `shown`: characters; undefined: all. */
const copied = (text: string | null | undefined, shown?: number): Content =>
  text ? copyable(text, printable(text.slice(0, shown))) : null

function renderBy(run: Run): Content {
  const actor = renderArmer(run)
  const ip = run.armed_by?.ip
  return ip ? html`${actor} <span class="dim">from ${ip}</span>` : actor
}

/** Different in every run, so not worth showing. */
const OWN: ReadonlySet<string> = new Set(['Run', 'Armed', 'Started'])

/** What differs, then what does not, folded. */
function renderCompared(context: CurrentContext, run: Run, other: Run): Html {
  const [one, two] = [run, other].map((each) => new Map(listFacts(context, each)))
  const rows = [...new Set([...(one?.keys() ?? []), ...(two?.keys() ?? [])])]
    .map((name) => ({ name, mine: one?.get(name), others: two?.get(name) }))
    .filter(({ mine, others }) => !isEmpty(mine) || !isEmpty(others))
  const differing = rows.filter((row) => differs(row) && !OWN.has(row.name))
  const same = rows.filter((row) => !differs(row))
  const table = (shown: readonly ComparedRow[]) =>
    html`<table class="compared">
      <caption class="spoken">
        Two runs compared
      </caption>
      <thead>
        <tr>
          <th scope="col">Fact</th>
          ${[run, other].map((each) => html`<th scope="col">${renderLink(context, each)}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${shown.map(renderRow)}
      </tbody>
    </table>`
  return card({
    title: 'What differs',
    id: 'compared',
    body: html`${
      differing.length === 0
        ? html`<p>Nothing differs but their times.</p>`
        : table(differing.toSorted((a, b) => rankOf(a) - rankOf(b)))
    }
    ${
      same.length === 0
        ? null
        : html`<details id="same">
            <summary>
              ${fillCount({ one: '1 fact is the same', other: '{count} facts are the same' }, same.length)}
            </summary>
            ${table(same)}
          </details>`
    }`,
  })
}

const differs = ({ mine, others }: ComparedRow): boolean =>
  html`${mine}`.toString() !== html`${others}`.toString()

interface ComparedRow {
  readonly name: string
  readonly mine: Content
  readonly others: Content
}

/** They follow from other facts. */
const MINOR: ReadonlySet<string> = new Set(['Source', 'Digest', 'Bottleneck', 'Read', 'Path'])

const rankOf = ({ name }: ComparedRow): number => Number(MINOR.has(name))

const renderRow = ({ name, mine, others }: ComparedRow): Html =>
  html`<tr${attributes({ class: MINOR.has(name) ? 'dim' : null })}>
    <th scope="row">${name}</th>
    <td>${isEmpty(mine) ? '–' : mine}</td>
    <td>${isEmpty(others) ? '–' : others}</td>
  </tr>`

const renderLink = (context: CurrentContext, run: Run): Html =>
  html`<a href="${runPath(run)}"><bdi>${context.nameOf(run.mac)}</bdi></a
    >, ${renderTime(run.started_at, context.clock())}`

const listFacts = (context: CurrentContext, run: Run): RunRows => {
  const seconds = secondsOf(run)
  return [
    ['State', renderRunState(run)],
    ['Reason', run.result === 'done' ? null : run.reason],
    ['Started', renderTime(run.started_at ?? run.updated_at, context.clock())],
    ['Duration', seconds === null ? null : renderSpan(seconds)],
    ...listWritten(run),
    ...listPlace(run, context.clock()),
  ]
}

const isEmpty = (value: Content): boolean => value === null || value === undefined || value === ''

/** The run's id, with the MAC before it for another machine; null: no such run. */
function findOther({ site, query }: CurrentContext, run: Run): Run | null {
  const [id = '', text] = (query.get('with') ?? '').split('/').toReversed()
  const mac = text === undefined ? null : parseMac(text)
  if (mac?.ok === false) return null
  return id === '' ? null : site.runs.find(mac === null ? run.mac : mac.value, id)
}

// What leads on from a run: the button that writes its image to its disk once more, and the runs of the machine before it.

const MAX_BEFORE = 5

/** Asks as every flash does. Nothing if the machine cannot be armed, or image or disk is gone. */
function renderAgain(context: CurrentContext, run: Run, machine: Machine | null): Content {
  if (machine === null || run.result === null) return null
  const armed = armAs(run, machine)
  if (armed === null || !canBeArmed(context, machine, armed)) return null
  const label = run.result === 'done' ? 'Flash again…' : 'Try again…'
  const path = machinePath(machine.mac)
  if (fingerprint(armed) === fingerprint(machine)) {
    const moved = findMovedChannel(context, machine)
    return questionButton({
      action: `${path}/do/flash`,
      label: moved === null ? label : html`Flash with the new image of <bdi>${moved}</bdi>…`,
    })
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
  // A failed flash is tried again by itself; the button asks first, as on the machine's page.
  const isArmed = view.view.state !== 'failed' && willFlash(view)
  const isTaken = view.run !== null || isArmed || isWaiting(view)
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
    title: 'Earlier runs of this machine',
    id: 'before',
    aside: html`<a class="small" href="${address('/ui/runs', { mac: run.mac })}"
      >All runs of this machine</a
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
      aria-label="The parts of ${seconds.toFixed(1)} seconds"
      font-family="sans-serif"
      font-size="13"
    >
      ${bars.map(({ part, from, seconds: length }, at) => {
        const start = (Date.parse(from) - begin) / 1000
        const title = PART_TITLES[part]
        return html`<g>
          <title>${title}: ${length.toFixed(1)} s</title>
          <text x="0" y="${at * ROW + 15}" fill="currentColor">${title}</text>
          <rect
            x="${place(start)}"
            y="${at * ROW + 4}"
            width="${Math.max(1, length * unit).toFixed(1)}"
            height="${ROW - 8}"
            fill="${FILLS[part] ?? OTHERS}"
          ></rect>
          <text x="${WIDTH}" y="${at * ROW + 15}" text-anchor="end" fill="currentColor"
            >${length.toFixed(1)} s</text
          >
        </g>`
      })}
    </svg>
    <p class="small dim">
      ${`${seconds.toFixed(1)} s total, ${unattributed_seconds.toFixed(1)} s unaccounted for.`}
    </p>`
}

/** Nothing before the run has ended. `found`: the other run. */
function renderTimes(context: CurrentContext, run: Run, found: Run | null): Content {
  const divided = [run, found].flatMap((each) => {
    const waterfall = each === null ? null : divideRun(each)
    return each === null || !waterfall?.bars.length ? [] : [{ each, waterfall }]
  })
  if (divided.length === 0) return null
  const scale = Math.max(...divided.map(({ waterfall }) => waterfall.seconds))
  return card({
    title: 'Where the time went',
    id: 'times',
    body: html`${divided.map(
      ({ each, waterfall }) =>
        html`${found === null ? null : html`<h3>${renderLink(context, each)}</h3>`}
        ${renderWaterfall(waterfall, scale)}`,
    )}
    ${found === null ? renderLinks(context.site, run) : null}`,
  })
}

function renderLinks({ runs }: CurrentContext['site'], run: Run): Content {
  const others = runs.list({ mac: run.mac, result: 'done', limit: 2 }).map((each) => each.run)
  const other = others.find(({ id }) => id !== run.id)
  return other === undefined
    ? null
    : html`<p>
        <a href="${address(runPath(run), { with: other.id })}#compared"
          >Compare with another run of this machine</a
        >
      </p>`
}

const SENTENCES = {
  watching: 'Waiting until the new system has booted, at most until {until}.',
  booted: 'The new system has booted.',
  seen: 'The machine answered on the network again. It is not certain that the new system is running.',
  'not-seen': 'Flashed, and the new system was not seen.',
  failed: 'The new system failed to boot.',
} as const

const HOWS = {
  call: 'a call to its one-time address',
  ssh: 'a new SSH host key',
  network: 'a reply from its network card',
} as const

/** Nothing where nobody waits for the first boot. */
function renderProof(proof: Proof | null, clock: Clock): Content {
  if (proof === null) return null
  const { state, until, how, seconds, contacts, call_made_at: call, reason } = proof
  return card({
    title: 'First boot',
    id: 'first-boot',
    body: html`<p>${fillHtml(SENTENCES[state], { until: renderTime(until, clock) })}</p>
      ${factList([
        ['Seen by', how === null ? null : HOWS[how]],
        ['After the flash', seconds === null ? null : renderSpan(seconds)],
        ['Network boots since', contacts === 0 ? null : contacts],
        [
          'One-time address',
          call === null
            ? 'none: its first-boot template has none, or it had no template'
            : 'in its first-boot configuration',
        ],
        ['Seen instead', reason],
      ])}`,
  })
}

export const RUN_PAGE = pageAt('/ui/machines/:mac/runs/:id', 'read', show)

async function show(context: CurrentContext): Promise<Answer> {
  const { site } = context
  const mac = readMac(context.event)
  const run = site.runs.find(mac, getRouterParam(context.event, 'id') ?? '')
  if (run === null) {
    throw refuse(404, `${mac} has no such run`, {
      hint: 'It was removed, or it was older than the history that is kept.',
    })
  }
  const machine = await site.machines.find(mac)
  const log = await site.runs.findLog(mac, run.id)
  const name = machine === null ? mac : nameOf(machine)
  const other = findOther(context, run)
  // A refresh keeps the comparison.
  const here = address(runPath(run), { with: context.query.get('with') })
  return await context.show({
    title: other === null ? `Run of ${name}` : 'Two runs compared',
    learn: 'waterfall.html',
    ...(other === null && {
      heading: html`Run of <a href="${machinePath(mac)}"><bdi>${name}</bdi></a>`,
    }),
    trail: html`<a href="/ui/runs">Runs</a> / <a href="${machinePath(mac)}">${mac}</a>`,
    actions: other === null ? renderAgain(context, run, machine) : null,
    updates: address('/events/machines', { q: `mac:${mac}` }),
    body: html`<div class="stack" ${refreshOnNews('run', here, 1000)}>
      ${
        other === null
          ? renderWhole(context, run, log)
          : html`${renderCompared(context, run, other)} ${renderTimes(context, run, other)}`
      }
    </div>`,
  })
}

const renderWhole = (context: CurrentContext, run: Run, log: string | null): Html =>
  html`<section class="card stack">
      ${renderRunState(run)} ${renderSentence(run)}
      ${run.result === null ? html`<div class="wide-bar">${renderBar(run)}</div>` : null}
      ${run.reason === null || run.result === 'done' ? null : banner('failed', run.reason)}
    </section>
    <div class="columns">
      <div>
        ${card({ title: 'Steps', body: renderSteps(run, context.clock().zone) })}
        ${renderTimes(context, run, null)} ${renderProof(run.proof, context.clock())}
        ${renderLog(run, log)} ${renderBefore(context, run)}
      </div>
      <div>
        ${renderFacts(context, run)}
        ${run.result === null ? null : html`<div class="row">${renderRemovalButton(run)}</div>`}
      </div>
    </div>`

const CAPTURE_SENTENCES = {
  running: 'Capturing {disk} as {image}.',
  done: 'Captured {disk} as {image}.',
  failed: 'Failed to capture {disk} as {image}.',
  cancelled: 'Cancelled while capturing {disk} as {image}.',
  lost: 'Lost contact while capturing {disk} as {image}.',
} as const

const RUN_SENTENCES = {
  running: 'Writing {image} to {disk}.',
  done: 'Wrote {image} to {disk}.',
  failed: 'Failed to write {image} to {disk}.',
  cancelled: 'Cancelled while writing {image} to {disk}.',
  lost: 'Lost contact while writing {image} to {disk}.',
} as const

function renderSentence({ image, disk, result, mode }: Run): Html {
  const sentences = mode === 'capture' ? CAPTURE_SENTENCES : RUN_SENTENCES
  const sentence = fillHtml(sentences[result ?? 'running'], {
    image: html`<strong><bdi>${image?.name ?? 'an unknown image'}</bdi></strong>`,
    disk: disk === null ? 'an unknown disk' : renderTarget(disk),
  })
  return html`<p class="sentence">${sentence}</p>`
}

const renderTarget = ({ model, path, serial }: RunDisk): Html =>
  html`<strong><bdi>${printable(model?.trim() || path || 'a disk')}</bdi></strong
    >${serial === null ? null : html` (<code>${printable(serial)}</code>)`}`

function renderSteps(run: Run, zone: string): Html {
  const steps = run.steps.map((step, at) => {
    const next = run.steps[at + 1]?.at ?? run.ended_at ?? run.updated_at
    return { ...step, seconds: Math.max(0, (Date.parse(next) - Date.parse(step.at)) / 1000) }
  })
  if (steps.length === 0) return html`<p class="dim">No steps were reported.</p>`
  const names = run.mode === 'capture' ? CAPTURE_NAMES : NAMES
  const total = Math.max(secondsOf(run) ?? 0, 0.001)
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
                  value="${(seconds / total).toFixed(4)}"
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
const CAPTURE_NAMES = { ...NAMES, write: 'Capture', verify: 'Verify in the cache' }

const renderFacts = (context: CurrentContext, run: Run): Html =>
  html`${card({ title: 'Data', body: factList(listWritten(run)) })}
  ${card({ title: 'Target', body: factList(listPlace(run, context.clock())) })}`

/** A log is the machine's text: control characters are replaced. */
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
