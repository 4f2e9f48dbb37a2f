/** The facts of a machine's page: identity, hardware, runs, events, and its deletion. */
import { isFlashMode } from '#server/current/rules/boot-mode.ts'
import { parseHardware, type Hardware } from '#engine/inventory/rules/hardware.ts'
import type { Armer, Run } from '#engine/inventory/rules/run.ts'
import type { JournalEvent } from '#fleet/state/journal.ts'
import { PAGES } from '#server/texts/texts.ts'
import { card, copyable, factList, renderMemoryBytes } from '#kit/web/ui/elements.ts'
import { DIM, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { type Machine } from '#server/current/rules/machine.ts'
import { questionButton } from '#server/pages/question.ts'
import { nameActor } from '../view/actor-name.ts'
import type { EventWords } from '../view/event-words.ts'
import { renderTimeline, timelinePath } from '../timeline/timeline-list.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { renderRunList } from '../view/run-table.ts'

const t = PAGES.machine.facts
const deletion = PAGES.machine.deletion

interface MachineFacts {
  readonly machine: Machine
  /** The hardware tree as posted; null: not yet. */
  readonly posted: { readonly json: string; readonly at: string } | null
  readonly runs: readonly Run[]
  readonly events: readonly JournalEvent[]
  readonly clock: Clock
  readonly words: EventWords
}

export const renderFacts = (facts: MachineFacts): Html =>
  html`<div class="columns even" id="facts">
    <div>${renderIdentity(facts)} ${renderHardwareCard(facts)}</div>
    <div>${renderHistory(facts)} ${renderDeletion(facts.machine)}</div>
  </div>`

function renderIdentity({ machine, clock }: MachineFacts): Html {
  const { mac, last_seen_ip: ip, armed_by: armer } = machine
  const armedTitle = isFlashMode(machine.boot_mode) ? t.armed : t.configured
  return card({
    title: t.identity,
    body: factList([
      [t.mac, copyable(mac)],
      [t.name, machine.name === null ? null : html`<bdi>${machine.name}</bdi>`],
      [t.hostname, machine.hostname],
      [t.address, ip === null ? null : copyable(ip)],
      [t.arch, machine.arch],
      [t.secureBoot.title, renderSecureBoot(machine)],
      [t.bmc, machine.bmc_address === null ? null : copyable(machine.bmc_address)],
      [t.lastSeen, renderTime(machine.last_seen_at, clock, t.never)],
      [t.discovered, renderTime(machine.discovered_at, clock, t.addedManually)],
      [armedTitle, armer === null ? null : renderArmed(armer, clock)],
      [t.lastFlashed, renderTime(machine.last_flashed_at, clock, t.never)],
      [t.disksListed, renderTime(machine.known_disks_at, clock, t.never)],
    ]),
  })
}

function renderSecureBoot({ secure_boot: isOn }: Machine): string | null {
  if (isOn === null) return null
  return isOn ? t.secureBoot.on : t.secureBoot.off
}

function renderHardwareCard({ machine, posted }: MachineFacts): Html {
  const { mac, known_disks: disks } = machine
  const hardware = posted === null ? null : parseHardware(posted.json)
  return card({
    title: t.hardware,
    aside: html`<span class="small"
      >${posted === null ? null : html`<a href="/machines/${mac}/lshw.json">lshw.json</a> `}${disks === null ? null : html`<a href="/machines/${mac}/disks.json">disks.json</a>`}</span
    >`,
    body: hardware === null ? html`<p class="dim">${t.noHardware}</p>` : renderHardware(hardware),
  })
}

const renderHistory = ({ machine: { mac }, runs, events, clock, words }: MachineFacts): Html =>
  html`${card({
    title: t.runs,
    aside: html`<a class="small" href="/ui/runs?mac=${mac}">${t.allRuns}</a>`,
    body: runs.length === 0 ? html`<p class="dim">${t.noRuns}</p>` : renderRunList(runs, clock),
  })}
  ${card({
    title: t.timeline,
    id: 'timeline',
    aside: html`<a class="small" href="${timelinePath(mac)}">${t.wholeTimeline}</a>`,
    body: renderTimeline(events, clock, words),
  })}`

const renderDeletion = ({ mac }: Machine): Html =>
  html`<details class="card">
    <summary>${deletion.summary}</summary>
    <p class="dim">${deletion.text}</p>
    ${questionButton({ action: `${machinePath(mac)}/delete`, label: deletion.ask, tone: 'danger' })}
  </details>`

function renderArmed({ actor: by, ip, at }: Armer, clock: Clock): Html {
  const actor = nameActor(by)
  const time = renderTime(at, clock)
  return ip === null
    ? fillHtml(t.by, { time, actor })
    : fillHtml(t.byFrom, { time, actor, ip, ...DIM })
}

const renderHardware = (hardware: Hardware): Html => {
  const { processors, cores, networks } = hardware
  return factList([
    [t.vendor, hardware.vendor],
    [t.model, hardware.model],
    [t.serial, hardware.serial === null ? null : html`<code>${hardware.serial}</code>`],
    [t.processor, lines(counted(processors))],
    [t.cores, cores],
    [t.memory, hardware.memoryBytes === null ? null : renderMemoryBytes(hardware.memoryBytes)],
    [t.network, lines(networks)],
    [t.firmware, hardware.firmware],
  ])
}

const lines = (texts: readonly string[]): Content =>
  texts.map((text, at) => (at === 0 ? text : html`<br />${text}`))

/** Equal sockets share a line. */
function counted(texts: readonly string[]): readonly string[] {
  return [...Map.groupBy(texts, (text) => text)].map(([text, all]) =>
    all.length === 1 ? text : `${all.length} × ${text}`,
  )
}
