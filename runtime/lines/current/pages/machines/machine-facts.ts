/** The facts of a machine's page: identity, hardware, runs, events, and its deletion. */
import { parseHardware, type Hardware } from '../../../../core/machine/hardware.ts'
import type { Armer, Run } from '../../../../core/machine/run.ts'
import type { JournalEvent } from '../../../../services/state/journal.ts'
import { card, copyable, factList, renderMemoryBytes } from '../../../../web/ui/elements.ts'
import { html, type Content, type Html } from '../../../../web/ui/html.ts'
import { renderTime, type Clock } from '../../../../web/ui/times.ts'
import { isFlashMode, type Machine } from '../../rules/machine.ts'
import { questionButton } from '../frame/question.ts'
import { renderEventList } from '../view/event-list.ts'
import { machinePath } from '../view/machine-row.ts'
import { renderRunList } from '../view/run-table.ts'

interface Facts {
  readonly machine: Machine
  /** The hardware tree as the machine posted it; null: it did not yet. */
  readonly posted: { readonly json: string; readonly at: string } | null
  /** The newest. */
  readonly runs: readonly Run[]
  readonly events: readonly JournalEvent[]
  readonly clock: Clock
}

export const renderFacts = (facts: Facts): Html =>
  html`<div class="columns even" id="facts">
    <div>${renderIdentity(facts)} ${renderHardwareCard(facts)}</div>
    <div>${renderHistory(facts)} ${renderDeletion(facts.machine)}</div>
  </div>`

function renderIdentity({ machine, clock }: Facts): Html {
  const { mac, last_seen_ip: ip, armed_by: armer } = machine
  const armedTitle = isFlashMode(machine.boot_mode) ? 'Armed' : 'Configured'
  return card({
    title: 'Identity',
    body: factList([
      ['MAC', copyable(mac)],
      ['Name', machine.name === null ? null : html`<bdi>${machine.name}</bdi>`],
      ['Host name', machine.hostname],
      ['Address', ip === null ? null : copyable(ip)],
      ['Architecture', machine.arch],
      ['Last seen', renderTime(machine.last_seen_at, clock, 'never')],
      ['Discovered', renderTime(machine.discovered_at, clock, 'added manually')],
      [armedTitle, armer === null ? null : renderArmed(armer, clock)],
      ['Last flashed', renderTime(machine.last_flashed_at, clock, 'never')],
      ['Disks listed', renderTime(machine.known_disks_at, clock, 'never')],
    ]),
  })
}

function renderHardwareCard({ machine, posted }: Facts): Html {
  const { mac, known_disks: disks } = machine
  const hardware = posted === null ? null : parseHardware(posted.json)
  return card({
    title: 'Hardware',
    aside: html`<span class="small"
      >${posted === null ? null : html`<a href="/machines/${mac}/lshw.json">lshw.json</a> `}${disks === null ? null : html`<a href="/machines/${mac}/disks.json">disks.json</a>`}</span
    >`,
    body:
      hardware === null
        ? html`<p class="dim">Reported at first live boot.</p>`
        : renderHardware(hardware),
  })
}

const renderHistory = ({ machine: { mac }, runs, events, clock }: Facts): Html =>
  html`${card({
    title: 'Runs',
    aside: html`<a class="small" href="/ui/runs?mac=${mac}">All runs</a>`,
    body:
      runs.length === 0 ? html`<p class="dim">Not flashed yet.</p>` : renderRunList(runs, clock),
  })}
  ${card({
    title: 'Timeline',
    aside: html`<a class="small" href="/ui/events?subject_id=${mac}">All events</a>`,
    body: renderEventList(events, clock, mac),
  })}`

const renderDeletion = ({ mac }: Machine): Html =>
  html`<details class="card">
    <summary>Delete this machine</summary>
    <p class="dim">
      Its name, labels, image and disk are deleted; its events and runs are kept. The machine
      reappears as discovered when it next boots from the network.
    </p>
    ${questionButton({ action: `${machinePath(mac)}/delete`, label: 'Delete machine…', tone: 'danger' })}
  </details>`

const renderArmed = ({ actor, ip, at }: Armer, clock: Clock): Html =>
  html`${renderTime(at, clock)} by
  ${actor}${ip === null ? null : html` <span class="dim">from ${ip}</span>`}`

const renderHardware = (hardware: Hardware): Html => {
  const { processors, cores, networks } = hardware
  return factList([
    ['Vendor', hardware.vendor],
    ['Model', hardware.model],
    ['Serial', hardware.serial === null ? null : html`<code>${hardware.serial}</code>`],
    ['Processor', lines(counted(processors))],
    ['Cores', cores],
    ['Memory', hardware.memoryBytes === null ? null : renderMemoryBytes(hardware.memoryBytes)],
    ['Network', lines(networks)],
    ['Firmware', hardware.firmware],
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
