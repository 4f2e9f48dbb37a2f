/** /ui/machines/{mac}: what happens next, the configuration of the machine, its facts and its history. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { card, icon, copyable, factList, renderMemoryBytes } from '#kit/web/ui/elements.ts'
import {
  postButton,
  hidden,
  selectField,
  textField,
  radioCards,
  type RadioCard,
} from '#kit/web/ui/fields.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { address, html, type Html, type Content, attributes } from '#kit/web/ui/html.ts'
import { readMac, localPath } from '#kit/web/answers/checked.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import type { Run, Armer } from '#engine/inventory/rules/run.ts'
import {
  type Machine,
  MACHINE_FIELDS,
  MAX_LABELS,
  MAX_NAME_CHARACTERS,
  namesWith,
  type Column,
  type OptionTexts,
  targetOf,
} from './rules/machine.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import { type CurrentContext, renderUndo } from '#server/current/view/page-context.ts'
import { renderCaptureCard } from '#server/current/captures/capture-card.ts'
import { MACHINE_POSTS } from './machine-posts.ts'
import { renderPowerCard } from '#server/current/power/power-card.ts'
import { POWER_POSTS } from '#server/current/power/power-posts.ts'
import { renderFirstBootCard } from '#server/current/first-boot/machine-card.ts'
import { callSave } from './machine-calls.ts'
import {
  FIELDS,
  readValues,
  valuesOf,
  WRONG_FIELD,
  type FormValues,
  fingerprint,
  renderModes,
} from './machine-form.ts'
import { renderDone, renderNow } from './now-card.ts'
import { readEventWords, type EventWords } from '#server/current/view/event-list.ts'
import { labelLink } from '#server/current/view/machine-row.ts'
import {
  nameOf,
  modelOf,
  renderChannel,
  type MachineView,
  aboutDisk,
  describeStanding,
  warnOf,
} from '#server/current/view/machine-view.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { MODES, isFlashMode, USUAL_FLASH_MODE } from './rules/boot-mode.ts'
import { parseHardware, type Hardware } from '#engine/inventory/rules/inventory.ts'
import type { JournalEvent } from '#fleet/state/journal.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { questionButton, opensQuestion } from '#server/pages/question.ts'
import { nameActor } from '#server/current/view/actor-name.ts'
import { renderTimeline, timelinePath } from './timeline.ts'
import { renderRunList } from '#server/current/view/run-table.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import type { ImageChannel } from '#fleet/channel/rules/channel.ts'
import { parseImageChoice } from '#server/current/channels/rules/channel-order.ts'
import { printable } from '#kit/foundation/printable.ts'
import { renderImages } from './image-cards.ts'
import {
  ANEW,
  findPicked,
  kindOf,
  nameAmong,
  pickDisk,
  type PickRefusal,
  type InventoryDisk,
} from '#engine/inventory/rules/machine.ts'
import { renderDiskMismatch, toMismatch } from './rules/target.ts'

// The form of a machine in three steps (image, disk, what it does on network boot), then its names.

interface ConfigurationForm {
  readonly machine: Machine
  readonly values: FormValues
  /** What its stored mode does now; null: what its text says. */
  readonly standing: string | null
  readonly images: readonly CatalogEntry[]
  readonly channels: readonly ImageChannel[]
  /** Why the catalog may be out of date; null: it was read. */
  readonly catalogError: string | null
  readonly back: string
  /** Typed and refused values: updates of the machine must not replace them. */
  readonly isTyped: boolean
  readonly refused: { readonly field: string; readonly error: string } | null
}

function renderConfigurationForm(form: ConfigurationForm): Html {
  const { machine, values, images, channels, catalogError, back } = form
  const chosen = parseImageChoice(values.bty_image_ref).ref
  const selected = images.find(({ ref }) => ref === chosen) ?? null
  return html`<form
    id="configuration"
    ${attributes({
      'data-dirty': form.isTyped,
      'data-mode-selected': `${MODES[USUAL_FLASH_MODE].title} selected`,
    })}
    ${opensQuestion(machinePath(machine.mac))}
  >
    ${hidden({ confirm: 'ask', was: fingerprint(machine), back })}
    <div class="choices">
      ${renderImages({ machine, selected: values.bty_image_ref, images, channels, catalogError })}
      ${renderDisks(machine, values.target_disk_serial, selected)}
      ${renderModes(values.boot_mode, machine.boot_mode, form.standing)}
    </div>
    ${renderNames(form)} ${renderBootOptions(form)}
    <div class="save-bar">
      <button class="primary">
        <span class="if-saves">Save</span><span class="if-arms">Review and arm…</span>
      </button>
      <span class="whose"><bdi>${nameOf(machine)}</bdi></span>
    </div>
  </form>`
}

/** Read-only. */
function renderAssignment({ machine, image, disk }: MachineView): Html {
  const { bty_image_ref: ref, target_disk_serial: serial } = machine
  const imageName = image?.name ?? ref?.slice(0, 12) ?? 'No image'
  const diskName = disk === null ? null : html`<bdi>${modelOf(disk)}</bdi> `
  const { form: growing } = MACHINE_FIELDS.grow
  return factList([
    ['Image', html`<bdi>${imageName}</bdi>${renderChannel(machine)}`],
    [
      'Disk to erase',
      serial === null ? 'No disk' : html`${diskName}<code>${printable(serial)}</code>`,
    ],
    ['On network boot', MODES[machine.boot_mode].title],
    ['Template', machine.first_boot],
    [growing.label, machine.grow ? growing.choices.true : null],
  ])
}

const errorOf = ({ refused }: ConfigurationForm, field: keyof FormValues): string | null =>
  refused?.field === field ? refused.error : null

const renderNames = (form: ConfigurationForm): Html =>
  html`<div class="names">
    ${textField({
      name: 'name',
      label: 'Name',
      value: form.values.name,
      placeholder: form.machine.hostname ?? form.machine.mac,
      maxLength: 2 * MAX_NAME_CHARACTERS,
      hint: 'Any text; shown instead of the host name or MAC address.',
      error: errorOf(form, 'name'),
    })}
    ${textField({
      name: 'labels',
      label: 'Labels',
      value: form.values.labels,
      placeholder: 'rack-1, bench 4',
      hint: `Separate with commas; at most ${MAX_LABELS}. Letters A to Z, digits, spaces and . _ -`,
      error: errorOf(form, 'labels'),
    })}
  </div>`

const renderBootOptions = (form: ConfigurationForm): Html =>
  html`<details ${attributes({ open: errorOf(form, 'sanboot_drive') !== null })}>
    <summary>Boot drive, serial console and last partition</summary>
    <div class="names">
      ${textField({
        name: 'sanboot_drive',
        label: 'BIOS drive of its disk',
        value: form.values.sanboot_drive,
        placeholder: '0x80',
        mono: true,
        maxLength: 8,
        hint: 'The drive that a legacy BIOS boots. UEFI machines follow their own boot order.',
        error: errorOf(form, 'sanboot_drive'),
      })}
      ${namesWith('form').map((name) => renderOption(name, form.values[name]))}
    </div>
  </details>`

function renderOption(name: keyof Column<'form'>, value: string): Html {
  const { label, hint, choices }: OptionTexts = MACHINE_FIELDS[name].form
  if (choices === undefined) return textField({ name, label, value, hint })
  const options = Object.entries(choices).map(([each, text]) => ({ value: each, text }))
  return selectField({ name, label, value, options, hint })
}

// The disks that a machine reported as cards, for its form; nothing of a disk is ever shortened.

/** `image`: of the selected image, if known. */
export function renderDisks(machine: Machine, selected: string, image: CatalogEntry | null): Html {
  const disks = machine.known_disks
  const stored = machine.target_disk_serial ?? ''
  if (disks === null) return renderUnknown(selected)
  return radioCards({
    id: 'disks',
    name: 'target_disk_serial',
    legend: 'Disk to erase',
    value: selected,
    stored,
    className: 'disks follows',
    before: renderBefore(disks.length),
    cards: listCards(machine, disks, selected, image),
  })
}

/** Longer lists have a filter. */
const MAX_WITHOUT_SEARCH = 6

const FIND = 'Find a disk by model, serial number, path or WWN'

function renderBefore(count: number): Content {
  if (count === 0)
    return html`<p class="hint warning">The machine reported that it has no disks.</p>`
  if (count <= MAX_WITHOUT_SEARCH) return null
  return html`<input
    type="search"
    class="scripted-only"
    data-filter=".disks"
    aria-label="${FIND}"
    placeholder="${FIND}"
  />`
}

/** Replaced as soon as the machine reports its disks. */
const renderUnknown = (typed: string): Html =>
  html`<fieldset class="cards disks follows" id="disks">
    <legend>Disk to erase</legend>
    <p class="hint">
      ${'No disks reported yet. They appear here when the machine has booted from the network into the live system.'}
    </p>
    ${textField({
      name: 'target_disk_serial',
      label: 'Serial number, if you know it',
      value: typed,
      // For the stylesheet: whether the field is empty.
      placeholder: ' ',
      mono: true,
      maxLength: 128,
    })}
  </fieldset>`

function listCards(
  machine: Machine,
  disks: readonly InventoryDisk[],
  selected: string,
  image: CatalogEntry | null,
): readonly RadioCard[] {
  const pick = pickDisk(selected || null, targetOf(machine), disks)
  const found = pick === null ? null : findPicked(disks, pick)
  const isGone = found !== null && !found.ok
  const gone: RadioCard = {
    value: selected,
    title: html`<code>${printable(selected)}</code> (gone)`,
    text: isGone ? renderGone(found.refusal, selected) : '',
  }
  const cards = disks.map((disk): RadioCard => {
    const isSelected = found?.ok === true && found.value === disk
    const name = nameAmong(disk, disks)
    // The name is the place of a former disk: this one is picked anew.
    const other = name === selected ? `${ANEW}${name}` : name
    return renderCard(disk, {
      all: disks,
      image,
      name,
      isSelected,
      value: isSelected ? selected : other,
    })
  })
  return [...(isGone ? [gone] : []), ...cards, { value: '', title: 'No disk' }]
}

const renderGone = (refusal: PickRefusal, selected: string): string =>
  refusal.why === 'disk-missing'
    ? 'Not among the disks that the machine reported last. It stays selected until you select another disk.'
    : renderDiskMismatch(toMismatch(refusal), selected)

interface CardFacts {
  readonly all: readonly InventoryDisk[]
  readonly image: CatalogEntry | null
  readonly name: string | null
  readonly isSelected: boolean
  /** Null: it has no name of its own. */
  readonly value: string | null
}

const PICKED_BY = {
  wwn: 'Selected by its WWN, which the disk or RAID volume keeps in every slot.',
  eui: 'Selected by its EUI or NGUID, which the NVMe namespace keeps in every slot.',
  path: 'Selected by where it is attached: it is only flashed while the disk there has the same size, model and serial number. If you move it, select it again.',
} as const

function renderCard(
  disk: InventoryDisk,
  { all, image, name, value, isSelected }: CardFacts,
): RadioCard {
  const warnings = warnOf(disk, all, image)
  const kind = name === null ? 'serial' : kindOf(name)
  return {
    value: value ?? `-${disk.path}`,
    title: html`<bdi>${modelOf(disk)}</bdi>`,
    text: html`<code>${printable(name ?? 'no serial')}</code><br />${aboutDisk(disk)},
      ${printable(disk.path)}${renderAttachment(disk)}
      ${kind === 'serial' ? null : html`<span>${PICKED_BY[kind]}</span>`}
      ${warnings.map(({ text }) => html`<span class="warning">${text}</span>`)}
      <span class="lost">Everything on this disk will be lost.</span>`,
    keywords: keywordsOf(disk),
    disabled: warnings.some(({ isHard }) => isHard) && !isSelected,
  }
}

/** For people in front of a server's bays. */
function renderAttachment(disk: InventoryDisk): Content {
  const { wwn, by_path: path } = disk
  const port = portOf(disk)
  return html`${port === null ? null : html`, port ${port}`}${
    path ? html`<br /><span class="attached">${printable(path)}</span>` : null
  }${wwn ? html`<br /><span class="attached">WWN ${printable(wwn)}</span>` : null}`
}

/** The port of `…-ata-3` or `…-phy7-lun-0`, as printed on the bay. */
export const portOf = ({ by_path: path }: Pick<InventoryDisk, 'by_path'>): string | null =>
  /-(?:ata-|phy)(\d{1,4})(?=[-.]|$)/.exec(path ?? '')?.[1] ?? null

const keywordsOf = (disk: InventoryDisk): string =>
  [modelOf(disk), disk.serial, disk.path, disk.by_path, disk.wwn, disk.tran, disk.size]
    .filter(Boolean)
    .map((text) => printable(String(text)))
    .join(' ')

/** The facts of a machine's page: identity, hardware, runs, events, and its deletion. */

interface MachineFacts {
  readonly machine: Machine
  /** The hardware tree as posted; null: not yet. */
  readonly posted: { readonly json: string; readonly at: string } | null
  readonly runs: readonly Run[]
  readonly events: readonly JournalEvent[]
  readonly clock: Clock
  readonly words: EventWords
}

const renderFacts = (facts: MachineFacts): Html =>
  html`<div class="columns even" id="facts">
    <div>${renderIdentity(facts)} ${renderHardwareCard(facts)}</div>
    <div>${renderHistory(facts)} ${renderDeletion(facts.machine)}</div>
  </div>`

function renderIdentity({ machine, clock }: MachineFacts): Html {
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
      ['Secure Boot', renderSecureBoot(machine)],
      [
        'Address of its BMC, as it reports',
        machine.bmc_address === null ? null : copyable(machine.bmc_address),
      ],
      ['Last seen', renderTime(machine.last_seen_at, clock, 'never')],
      ['Discovered', renderTime(machine.discovered_at, clock, 'added manually')],
      [armedTitle, armer === null ? null : renderArmed(armer, clock)],
      ['Last flashed', renderTime(machine.last_flashed_at, clock, 'never')],
      ['Disks listed', renderTime(machine.known_disks_at, clock, 'never')],
    ]),
  })
}

function renderSecureBoot({ secure_boot: isOn }: Machine): string | null {
  if (isOn === null) return null
  return isOn ? 'On at its last live boot' : 'Off at its last live boot'
}

function renderHardwareCard({ machine, posted }: MachineFacts): Html {
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

const renderHistory = ({ machine: { mac }, runs, events, clock, words }: MachineFacts): Html =>
  html`${card({
    title: 'Runs',
    aside: html`<a class="small" href="/ui/runs?mac=${mac}">All runs</a>`,
    body:
      runs.length === 0 ? html`<p class="dim">Not flashed yet.</p>` : renderRunList(runs, clock),
  })}
  ${card({
    title: 'Timeline',
    id: 'timeline',
    aside: html`<a class="small" href="${timelinePath(mac)}">Whole timeline</a>`,
    body: renderTimeline(events, clock, words),
  })}`

const renderDeletion = ({ mac }: Machine): Html =>
  html`<details class="card">
    <summary>Delete this machine</summary>
    <p class="dim">
      ${'Its name, labels, image and disk are deleted; its events and runs are kept. The machine reappears as discovered when it next boots from the network.'}
    </p>
    ${questionButton({ action: `${machinePath(mac)}/delete`, label: 'Delete machine…', tone: 'danger' })}
  </details>`

function renderArmed({ actor: by, ip, at }: Armer, clock: Clock): Html {
  const actor = nameActor(by)
  const time = renderTime(at, clock)
  return ip === null
    ? html`${time} by ${actor}`
    : html`${time} by ${actor} <span class="dim">from ${ip}</span>`
}

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

const [MAX_RUNS, MAX_EVENTS] = [8, 20]

const PATH = '/ui/machines/:mac'
export const MACHINE_PAGES = [pageAt(PATH, 'read', show), ...MACHINE_POSTS, ...POWER_POSTS]

async function show(context: CurrentContext): Promise<Answer> {
  const { site } = context
  const mac = readMac(context.event)
  const notice = context.notice()
  const machine = await site.machines.find(mac)
  if (machine === null) {
    const hint = notice?.error ?? 'It appears when it boots from the network.'
    throw refuse(404, `no machine record for ${mac}`, { hint })
  }
  const view = context.view(machine)
  const mayChange = site.mayOpen(context.event, PATH, 'POST')
  const [posted, events] = await Promise.all([
    site.machines.findHardware(mac),
    site.journal.list({ subject_id: mac, limit: MAX_EVENTS }),
  ])
  const runs = site.runs.list({ mac, limit: MAX_RUNS }).map(({ run }) => run)
  const { entries, error } = site.catalog.snapshot()
  const back = backOf(context)
  const form = renderConfigurationForm({
    machine,
    standing: describeStanding(view),
    images: entries,
    channels: context.services.channels.list(),
    catalogError: error,
    values: shownValues(context, machine, notice),
    back,
    isTyped: FIELDS.some((name) => notice?.typed[name] !== undefined),
    refused: refusedIn(notice),
  })
  return await context.show({
    title: nameOf(machine),
    learn: 'server.html#a-machine',
    trail: html`<a href="${back}">Machines</a>`,
    heading: renderHeading(machine),
    updates: address('/events/machines', { q: `mac:${mac}` }),
    actions: html`${renderUndo(context, mac)}${renderLock(machine)}`,
    messages: html`${context.message()}${renderDone(context.query, view)}`,
    body: html`${renderNow(context, view, machinePath(mac), runs.find(isFlash) ?? null)}
    ${renderPowerCard(context, machine, notice)}
    ${card({ title: 'Configuration', id: 'intent', body: mayChange ? html`${form}${renderCurlBlock(context, [callSave(machine)])}` : renderAssignment(view) })}
    ${mayChange ? html`${await renderFirstBootCard(context, machine)} ${renderCaptureCard(context, machine, notice)}` : null}
    ${renderFacts({ machine, posted, runs, events, clock: context.clock(), words: readEventWords(context) })}`,
  })
}

const isFlash = ({ mode }: Run) => mode !== 'capture'

/**
 * A refused form comes back as typed. A refresh during an edit (`configuration.js`) says which
 * image and disk are selected; a made-up address does not.
 */
function shownValues(
  { event, query }: CurrentContext,
  machine: Machine,
  notice: Notice | null,
): FormValues {
  const typed = readValues(new URLSearchParams(notice?.typed), valuesOf(machine))
  if (!event.req.headers.has('hx-request')) return typed
  return {
    ...typed,
    bty_image_ref: query.get('bty_image_ref') ?? typed.bty_image_ref,
    target_disk_serial: query.get('target_disk_serial') ?? typed.target_disk_serial,
  }
}

function refusedIn(notice: Notice | null) {
  const field = notice?.typed[WRONG_FIELD]
  return notice === null || field === undefined ? null : { field, error: notice.error }
}

/** The table that led here, with its search. */
function backOf({ event, query }: CurrentContext): string {
  const given = query.get('back')
  if (given !== null) return localPath(given, '/ui/machines')
  const from = URL.parse(event.req.headers.get('referer') ?? '')
  return from?.pathname === '/ui/machines' ? `${from.pathname}${from.search}` : '/ui/machines'
}

const renderHeading = (machine: Machine): Html =>
  html`<bdi>${nameOf(machine)}</bdi>
    ${nameOf(machine) === machine.mac ? null : html`<span class="count mono">${machine.mac}</span>`}
    ${machine.locked ? html`<span class="tag">${icon('lock')} locked</span>` : null}
    ${machine.labels.map((label) => html`${labelLink(label)} `)}`

const renderLock = ({ mac, locked }: Machine): Html =>
  locked
    ? postButton({ action: `${machinePath(mac)}/do/unlock`, label: 'Unlock' })
    : postButton({ action: `${machinePath(mac)}/do/lock`, label: html`${icon('lock')}Lock` })
