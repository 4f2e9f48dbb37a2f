/** /ui/machines/{mac}: what happens next, the configuration of the machine, its facts and its history. */
import type { H3Event, HTTPResponse } from 'h3'
import { renderBoot } from '../../../../core/boot/boot-script.ts'
import { parseHardware, type Hardware } from '../../../../core/machine/hardware.ts'
import {
  badge,
  banner,
  card,
  copyable,
  copyBlock,
  factList,
  icon,
  renderMemoryBytes,
  tag,
} from '../../../../web/ui/elements.ts'
import { postButton } from '../../../../web/ui/fields.ts'
import { refuse } from '../../../../web/http/faults.ts'
import { address, html, type Content, type Html } from '../../../../web/ui/html.ts'
import { refreshOnNews } from '../../../../web/ui/refresh.ts'
import { readMac } from '../../../../web/http/checked.ts'
import type { Route } from '../../../../web/http/route.ts'
import { renderTime, type Clock } from '../../../../web/ui/times.ts'
import type { Armer } from '../../../../core/machine/run.ts'
import { localPath } from '../../../../web/http/local-path.ts'
import type { JournalEvent } from '../../../../services/state/journal.ts'
import { isFlashMode, type Machine } from '../../rules/machine.ts'
import { messageOf, type PageContext } from '../frame/page-context.ts'
import { renderConfigurationForm } from './configuration-form.ts'
import { machinePosts } from './machine-posts.ts'
import { pageRoute } from '../frame/page-routes.ts'
import { questionButton } from '../frame/question.ts'
import { readValues, valuesOf } from './machine-form.ts'
import { isHeldBack, nameOf, type MachineView } from '../view/machine-view.ts'
import { machinePath } from '../view/machine-row.ts'
import { renderSentence } from '../view/next-boot.ts'
import { renderEventList } from '../view/event-list.ts'
import { renderBar } from '../view/run-bar.ts'
import { renderRunList } from '../view/run-table.ts'

export const machinePages = (context: PageContext): readonly Route[] => [
  pageRoute('/ui/machines/:mac', (event) => show(context, event)),
  ...machinePosts(context),
]

async function show(context: PageContext, event: H3Event): Promise<HTTPResponse> {
  const { site } = context
  const mac = readMac(event)
  const machine = await site.machines.find(mac)
  if (machine === null) {
    throw refuse(404, `no machine record for ${mac}`, {
      hint: site.notices.read(event)?.error ?? 'It appears when it boots from the network.',
    })
  }
  const typed = site.notices.read(event)?.typed
  const view = context.view(machine, event)
  const [hardware, events] = await Promise.all([
    site.machines.findHardware(mac),
    site.journal.list({ subject_id: mac, limit: 20 }),
  ])
  const { entries, error } = site.catalog.snapshot()
  const back = backOf(event)
  const here = machinePath(mac)
  return await context.show(event, {
    title: nameOf(machine),
    section: '/ui/machines',
    trail: html`<a href="${back}">Machines</a>`,
    heading: html`${nameOf(machine)}
    ${machine.locked ? html`<span class="tag">${icon('lock')} locked</span>` : null}`,
    live: address('/events/machines', { q: `mac:${mac}` }),
    actions: renderActions(view, here),
    messages: html`${messageOf(context, event)}${Object.entries(DONE)
      .filter(([name]) => event.url.searchParams.has(name))
      .map(([, text]) => banner('done', text))}`,
    body: html`
      ${renderNow(context, view, here)}
      <div class="columns">
        <div>
          ${card({
            title: 'Configuration',
            id: 'intent',
            body: renderConfigurationForm({
              machine,
              images: entries,
              catalogError: error,
              values: readValues(new URLSearchParams(typed), valuesOf(machine)),
              back,
            }),
          })}
        </div>
        <div id="facts">${renderFacts(context, machine, hardware, events)}</div>
      </div>
    `,
  })
}

const DONE = {
  saved: 'Saved.',
  armed: 'Armed. Boot the machine from the network now.',
  disk: 'Saved. Its next network boot starts its own disk.',
} as const

/** The table with its search, from where this page was opened; forms pass it on. */
function backOf(event: H3Event): string {
  const given = event.url.searchParams.get('back')
  if (given !== null) return localPath(given, '/ui/machines')
  const from = URL.parse(event.req.headers.get('referer') ?? '')
  return from?.pathname === '/ui/machines' ? `${from.pathname}${from.search}` : '/ui/machines'
}

function renderActions({ machine }: MachineView, here: string): Content {
  const { boot_mode: mode, bty_image_ref: ref, target_disk_serial: serial, locked } = machine
  const lock = locked
    ? postButton({ action: `${here}/do/unlock`, label: 'Unlock' })
    : postButton({ action: `${here}/do/lock`, label: html`${icon('lock')}Lock` })
  if (mode === 'flasher-inventory') {
    return html`${lock}${postButton({ action: `${here}/do/refresh`, label: 'Refresh inventory' })}`
  }
  if (!isFlashMode(mode)) return lock
  const obstacle = locked
    ? 'The machine is locked.'
    : ref === null || serial === null
      ? 'No image or no target disk selected.'
      : null
  return html`${lock}${postButton({
    action: `${here}/do/flash`,
    label: 'Flash again',
    tone: 'primary',
    values: { confirm: 'ask' },
    disabled: obstacle,
  })}`
}

/** As the machine would get it now, without its token, which is secret. */
function renderScript(context: PageContext, { machine, boot }: MachineView): string {
  const { decision, rule, reason } = boot
  const hasToken = context.services.config.current().pxe.tokens !== 'off'
  const shown =
    decision.kind === 'to-live' && hasToken ? { ...decision, token: 'hidden' } : decision
  return renderBoot(shown, { mac: machine.mac, mode: machine.boot_mode, rule, reason })
}

const renderNow = (context: PageContext, view: MachineView, here: string): Html =>
  html`<section class="card stack" hx-select-oob="#facts" ${refreshOnNews('now', here, 1000)}>
    ${badge(view.view.state)} ${renderSentence(view)}
    ${view.run === null ? null : html`<div class="wide-bar">${renderBar(view.run)}</div>`}
    ${isHeldBack(view) ? renderBootDisk(here) : null}
    <details>
      <summary>Reason and boot script</summary>
      <div class="stack">
        <p>
          ${view.boot.reason}
          <span class="dim"
            >(rule <code>${view.boot.rule}</code>, plan <code>${view.plan.plan.mode}</code>)</span
          >
        </p>
        ${copyBlock(renderScript(context, view), 'Boot script')}
      </div>
    </details>
  </section>`

const renderBootDisk = (here: string): Html =>
  postButton({
    action: `${here}/do/boot-disk`,
    label: 'Boot its disk anyway',
    values: { confirm: 'ask' },
    tone: 'danger',
  })

function renderFacts(
  context: PageContext,
  machine: Machine,
  posted: { readonly json: string; readonly at: string } | null,
  events: readonly JournalEvent[],
): Html {
  const clock = context.clock()
  const runs = context.site.runs.list({ mac: machine.mac, limit: 8 }).map(({ run }) => run)
  const hardware = posted === null ? null : parseHardware(posted.json)
  const { mac, last_seen_ip: ip } = machine
  return html`${card({
      title: 'Identity',
      body: factList([
        ['MAC', copyable(mac)],
        ['Name', machine.name],
        ['Host name', machine.hostname],
        [
          'Labels',
          machine.labels.length === 0
            ? null
            : html`${machine.labels.map((each) => html`${tag(each)} `)}`,
        ],
        ['Address', ip === null ? null : copyable(ip)],
        ['Architecture', machine.arch],
        ['Last seen', renderTime(machine.last_seen_at, clock, 'never')],
        ['Discovered', renderTime(machine.discovered_at, clock, 'added manually')],
        ['Armed', machine.armed_by === null ? null : renderArmed(machine.armed_by, clock)],
        ['Last flashed', renderTime(machine.last_flashed_at, clock, 'never')],
        ['Disks listed', renderTime(machine.known_disks_at, clock, 'never')],
      ]),
    })}
    ${card({
      title: 'Hardware',
      aside: html`<span class="small"
        >${
          posted === null ? null : html`<a href="/machines/${mac}/lshw.json">lshw.json</a> `
        }${machine.known_disks === null ? null : html`<a href="/machines/${mac}/disks.json">disks.json</a>`}</span
      >`,
      body:
        hardware === null
          ? html`<p class="dim">Reported at first live boot.</p>`
          : renderHardware(hardware),
    })}
    ${card({
      title: 'Runs',
      aside: html`<a class="small" href="/ui/runs?mac=${mac}">All runs</a>`,
      body:
        runs.length === 0 ? html`<p class="dim">Not flashed yet.</p>` : renderRunList(runs, clock),
    })}
    ${card({
      title: 'Timeline',
      aside: html`<a class="small" href="/ui/events?subject_id=${mac}">All events</a>`,
      body: renderEventList(events, clock, mac),
    })}
    <details class="card">
      <summary>Delete this machine</summary>
      <p class="dim">
        Its image, disk and labels are deleted; its events and runs are kept. The machine reappears
        as discovered when it next boots from the network.
      </p>
      ${questionButton({ action: `${machinePath(mac)}/delete`, label: 'Delete machine…', tone: 'danger' })}
    </details>`
}

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
