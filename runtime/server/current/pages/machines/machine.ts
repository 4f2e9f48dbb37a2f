/** /ui/machines/{mac}: what happens next, the configuration of the machine, its facts and its history. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
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
import {
  address,
  html,
  type Html,
  DIM,
  fillHtml,
  type Content,
  attributes,
} from '#kit/web/ui/html.ts'
import { readMac, localPath } from '#kit/web/answers/checked.ts'
import type { Notice } from '#kit/web/ui/form-notices.ts'
import type { Run, Armer } from '#engine/inventory/rules/run.ts'
import {
  type Machine,
  MAX_LABELS,
  MAX_NAME_CHARACTERS,
  targetOf,
} from '#server/current/rules/machine.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import { type CurrentContext, renderUndo } from '../view/page-context.ts'
import { renderCaptureCard } from '#server/current/captures/capture-card.ts'
import { MACHINE_POSTS } from './machine-posts.ts'
import { renderPowerCard } from '../power/power-card.ts'
import { POWER_POSTS } from '../power/power-posts.ts'
import { renderFirstBootCard } from '../first-boot/machine-card.ts'
import { callSave } from './machine-calls.ts'
import {
  FIELDS,
  readValues,
  valuesOf,
  WRONG_FIELD,
  type FormValues,
  fingerprint,
  MODE_TEXTS,
  renderModes,
} from './machine-form.ts'
import { renderDone, renderNow } from './now-card.ts'
import { readEventWords, type EventWords } from '../view/event-list.ts'
import { labelLink } from '../view/machine-row.ts'
import {
  nameOf,
  modelOf,
  renderChannel,
  type MachineView,
  aboutDisk,
  warnOf,
} from '../view/machine-view.ts'
import { renderCurlBlock } from '#server/pages/curl-block.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import { isFlashMode, USUAL_FLASH_MODE } from '#server/current/rules/boot-mode.ts'
import { parseHardware, type Hardware } from '#engine/inventory/rules/hardware.ts'
import type { JournalEvent } from '#fleet/state/journal.ts'
import { renderTime, type Clock } from '#kit/web/ui/times.ts'
import { questionButton, opensQuestion } from '#server/pages/question.ts'
import { nameActor } from '../view/actor-name.ts'
import { renderTimeline, timelinePath } from '../timeline/timeline.ts'
import { renderRunList } from '../view/run-table.ts'
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
import { renderDiskMismatch, toMismatch } from '#server/current/rules/target.ts'

// The form of a machine in three steps (image, disk, what it does on network boot), then its names.

interface ConfigurationForm {
  readonly machine: Machine
  readonly values: FormValues
  /** Flashed as its mode says: it boots its disk now. */
  readonly isFlashed: boolean
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
      'data-mode-selected': fill(PAGES.machine.form.modeSelected, {
        mode: MODE_TEXTS[USUAL_FLASH_MODE].title,
      }),
    })}
    ${opensQuestion(machinePath(machine.mac))}
  >
    ${hidden({ confirm: 'ask', was: fingerprint(machine), back })}
    <div class="choices">
      ${renderImages({ machine, selected: values.bty_image_ref, images, channels, catalogError })}
      ${renderDisks(machine, values.target_disk_serial, selected)}
      ${renderModes(values.boot_mode, machine.boot_mode, form.isFlashed)}
    </div>
    ${renderNames(form)} ${renderBootOptions(form)}
    <div class="save-bar">
      <button class="primary">
        <span class="if-saves">${PAGES.machine.form.save}</span
        ><span class="if-arms">${PAGES.machine.form.arm}</span>
      </button>
      <span class="whose"><bdi>${nameOf(machine)}</bdi></span>
    </div>
  </form>`
}

/** Read-only. */
function renderAssignment({ machine, image, disk }: MachineView): Html {
  const { bty_image_ref: ref, target_disk_serial: serial } = machine
  const imageName = image?.name ?? ref?.slice(0, 12) ?? PAGES.machine.images.none
  const diskName = disk === null ? null : html`<bdi>${modelOf(disk)}</bdi> `
  return factList([
    [PAGES.machine.form.image, html`<bdi>${imageName}</bdi>${renderChannel(machine)}`],
    [
      PAGES.machine.form.disk,
      serial === null
        ? PAGES.machine.disks.none
        : html`${diskName}<code>${printable(serial)}</code>`,
    ],
    [PAGES.machine.form.mode, MODE_TEXTS[machine.boot_mode].title],
    [PAGES.firstBoot.template, machine.first_boot],
    [PAGES.machine.form.grow, machine.grow ? PAGES.machine.form.growths.yes : null],
  ])
}

const errorOf = ({ refused }: ConfigurationForm, field: keyof FormValues): string | null =>
  refused?.field === field ? refused.error : null

const renderNames = (form: ConfigurationForm): Html =>
  html`<div class="names">
    ${textField({
      name: 'name',
      label: PAGES.machine.form.name,
      value: form.values.name,
      placeholder: form.machine.hostname ?? form.machine.mac,
      maxLength: 2 * MAX_NAME_CHARACTERS,
      hint: PAGES.machine.form.nameHint,
      error: errorOf(form, 'name'),
    })}
    ${textField({
      name: 'labels',
      label: PAGES.machine.form.labels,
      value: form.values.labels,
      placeholder: PAGES.machine.form.labelsPlaceholder,
      hint: fill(PAGES.machine.form.labelsHint, { count: MAX_LABELS }),
      error: errorOf(form, 'labels'),
    })}
  </div>`

const renderBootOptions = (form: ConfigurationForm): Html =>
  html`<details ${attributes({ open: errorOf(form, 'sanboot_drive') !== null })}>
    <summary>${PAGES.machine.form.bootOptions}</summary>
    <div class="names">
      ${textField({
        name: 'sanboot_drive',
        label: PAGES.machine.form.drive,
        value: form.values.sanboot_drive,
        placeholder: '0x80',
        mono: true,
        maxLength: 8,
        hint: PAGES.machine.form.driveHint,
        error: errorOf(form, 'sanboot_drive'),
      })}
      ${renderChoice(form, 'serial_console', {
        label: PAGES.machine.form.console,
        options: {
          ttyS0: PAGES.machine.form.consoles.ttyS0,
          ttyS1: PAGES.machine.form.consoles.ttyS1,
        },
        hint: PAGES.machine.form.consoleHint,
      })}
      ${renderChoice(form, 'grow', {
        label: PAGES.machine.form.grow,
        options: { false: PAGES.machine.form.growths.no, true: PAGES.machine.form.growths.yes },
        hint: PAGES.machine.form.growHint,
      })}
    </div>
  </details>`

interface ChoiceTexts {
  readonly label: string
  readonly options: Readonly<Record<string, string>>
  readonly hint: string
}

const renderChoice = (
  form: ConfigurationForm,
  name: 'serial_console' | 'grow',
  { label, options, hint }: ChoiceTexts,
): Html =>
  selectField({
    name,
    label,
    value: form.values[name],
    options: Object.entries(options).map(([value, text]) => ({ value, text })),
    hint,
  })

// The disks that a machine reported as cards, for its form; nothing of a disk is ever shortened.

const LEGEND = PAGES.machine.form.disk

/** `image`: of the selected image, if known. */
export function renderDisks(machine: Machine, selected: string, image: CatalogEntry | null): Html {
  const disks = machine.known_disks
  const stored = machine.target_disk_serial ?? ''
  if (disks === null) return renderUnknown(selected)
  return radioCards({
    id: 'disks',
    name: 'target_disk_serial',
    legend: LEGEND,
    value: selected,
    stored,
    className: 'disks follows',
    before: renderBefore(disks.length),
    cards: listCards(machine, disks, selected, image),
  })
}

/** Longer lists have a filter. */
const MAX_WITHOUT_SEARCH = 6

function renderBefore(count: number): Content {
  if (count === 0) return html`<p class="hint warning">${PAGES.machine.disks.noneReported}</p>`
  if (count <= MAX_WITHOUT_SEARCH) return null
  return html`<input
    type="search"
    class="scripted-only"
    data-filter=".disks"
    aria-label="${PAGES.machine.disks.find}"
    placeholder="${PAGES.machine.disks.find}"
  />`
}

/** Replaced as soon as the machine reports its disks. */
const renderUnknown = (typed: string): Html =>
  html`<fieldset class="cards disks follows" id="disks">
    <legend>${LEGEND}</legend>
    <p class="hint">${PAGES.machine.disks.notReported}</p>
    ${textField({
      name: 'target_disk_serial',
      label: PAGES.machine.disks.serial,
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
    title: fillHtml(PAGES.machine.disks.gone, {
      serial: html`<code>${printable(selected)}</code>`,
    }),
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
  return [...(isGone ? [gone] : []), ...cards, { value: '', title: PAGES.machine.disks.none }]
}

const renderGone = (refusal: PickRefusal, selected: string): string =>
  refusal.why === 'disk-missing'
    ? PAGES.machine.disks.goneText
    : renderDiskMismatch(toMismatch(refusal), selected)

interface CardFacts {
  readonly all: readonly InventoryDisk[]
  readonly image: CatalogEntry | null
  readonly name: string | null
  readonly isSelected: boolean
  /** Null: it has no name of its own. */
  readonly value: string | null
}

function renderCard(
  disk: InventoryDisk,
  { all, image, name, value, isSelected }: CardFacts,
): RadioCard {
  const warnings = warnOf(disk, all, image)
  const kind = name === null ? 'serial' : kindOf(name)
  return {
    value: value ?? `-${disk.path}`,
    title: html`<bdi>${modelOf(disk)}</bdi>`,
    text: html`<code>${printable(name ?? PAGES.machine.disks.noSerial)}</code
      ><br />${aboutDisk(disk)}, ${printable(disk.path)}${renderAttachment(disk)}
      ${kind === 'serial' ? null : html`<span>${PAGES.machine.disks.pickedBy[kind]}</span>`}
      ${warnings.map(({ text }) => html`<span class="warning">${text}</span>`)}
      <span class="lost">${PAGES.machine.disks.lost}</span>`,
    keywords: keywordsOf(disk),
    disabled: warnings.some(({ isHard }) => isHard) && !isSelected,
  }
}

/** For people in front of a server's bays. */
function renderAttachment(disk: InventoryDisk): Content {
  const { wwn, by_path: path } = disk
  const port = portOf(disk)
  return html`${port === null ? null : html`, ${fill(PAGES.machine.disks.port, { port })}`}${
    path ? html`<br /><span class="attached">${printable(path)}</span>` : null
  }${wwn ? html`<br /><span class="attached">${fill(PAGES.machine.disks.wwn, { wwn: printable(wwn) })}</span>` : null}`
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

const renderFacts = (facts: MachineFacts): Html =>
  html`<div class="columns even" id="facts">
    <div>${renderIdentity(facts)} ${renderHardwareCard(facts)}</div>
    <div>${renderHistory(facts)} ${renderDeletion(facts.machine)}</div>
  </div>`

function renderIdentity({ machine, clock }: MachineFacts): Html {
  const { mac, last_seen_ip: ip, armed_by: armer } = machine
  const armedTitle = isFlashMode(machine.boot_mode)
    ? PAGES.machine.facts.armed
    : PAGES.machine.facts.configured
  return card({
    title: PAGES.machine.facts.identity,
    body: factList([
      [PAGES.machine.facts.mac, copyable(mac)],
      [PAGES.machine.facts.name, machine.name === null ? null : html`<bdi>${machine.name}</bdi>`],
      [PAGES.machine.facts.hostname, machine.hostname],
      [PAGES.machine.facts.address, ip === null ? null : copyable(ip)],
      [PAGES.machine.facts.arch, machine.arch],
      [PAGES.machine.facts.secureBoot.title, renderSecureBoot(machine)],
      [
        PAGES.machine.facts.bmc,
        machine.bmc_address === null ? null : copyable(machine.bmc_address),
      ],
      [
        PAGES.machine.facts.lastSeen,
        renderTime(machine.last_seen_at, clock, PAGES.machine.facts.never),
      ],
      [
        PAGES.machine.facts.discovered,
        renderTime(machine.discovered_at, clock, PAGES.machine.facts.addedManually),
      ],
      [armedTitle, armer === null ? null : renderArmed(armer, clock)],
      [
        PAGES.machine.facts.lastFlashed,
        renderTime(machine.last_flashed_at, clock, PAGES.machine.facts.never),
      ],
      [
        PAGES.machine.facts.disksListed,
        renderTime(machine.known_disks_at, clock, PAGES.machine.facts.never),
      ],
    ]),
  })
}

function renderSecureBoot({ secure_boot: isOn }: Machine): string | null {
  if (isOn === null) return null
  return isOn ? PAGES.machine.facts.secureBoot.on : PAGES.machine.facts.secureBoot.off
}

function renderHardwareCard({ machine, posted }: MachineFacts): Html {
  const { mac, known_disks: disks } = machine
  const hardware = posted === null ? null : parseHardware(posted.json)
  return card({
    title: PAGES.machine.facts.hardware,
    aside: html`<span class="small"
      >${posted === null ? null : html`<a href="/machines/${mac}/lshw.json">lshw.json</a> `}${disks === null ? null : html`<a href="/machines/${mac}/disks.json">disks.json</a>`}</span
    >`,
    body:
      hardware === null
        ? html`<p class="dim">${PAGES.machine.facts.noHardware}</p>`
        : renderHardware(hardware),
  })
}

const renderHistory = ({ machine: { mac }, runs, events, clock, words }: MachineFacts): Html =>
  html`${card({
    title: PAGES.machine.facts.runs,
    aside: html`<a class="small" href="/ui/runs?mac=${mac}">${PAGES.machine.facts.allRuns}</a>`,
    body:
      runs.length === 0
        ? html`<p class="dim">${PAGES.machine.facts.noRuns}</p>`
        : renderRunList(runs, clock),
  })}
  ${card({
    title: PAGES.machine.facts.timeline,
    id: 'timeline',
    aside: html`<a class="small" href="${timelinePath(mac)}"
      >${PAGES.machine.facts.wholeTimeline}</a
    >`,
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
    ? fillHtml(PAGES.machine.facts.by, { time, actor })
    : fillHtml(PAGES.machine.facts.byFrom, { time, actor, ip, ...DIM })
}

const renderHardware = (hardware: Hardware): Html => {
  const { processors, cores, networks } = hardware
  return factList([
    [PAGES.machine.facts.vendor, hardware.vendor],
    [PAGES.machine.facts.model, hardware.model],
    [
      PAGES.machine.facts.serial,
      hardware.serial === null ? null : html`<code>${hardware.serial}</code>`,
    ],
    [PAGES.machine.facts.processor, lines(counted(processors))],
    [PAGES.machine.facts.cores, cores],
    [
      PAGES.machine.facts.memory,
      hardware.memoryBytes === null ? null : renderMemoryBytes(hardware.memoryBytes),
    ],
    [PAGES.machine.facts.network, lines(networks)],
    [PAGES.machine.facts.firmware, hardware.firmware],
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

const t = PAGES.machine.page

const [MAX_RUNS, MAX_EVENTS] = [8, 20]

const PATH = '/ui/machines/:mac'
export const MACHINE_PAGES = [pageAt(PATH, 'read', show), ...MACHINE_POSTS, ...POWER_POSTS]

async function show(context: CurrentContext): Promise<Answer> {
  const { site } = context
  const mac = readMac(context.event)
  const notice = context.notice()
  const machine = await site.machines.find(mac)
  if (machine === null) {
    const hint = notice?.error ?? t.missingHint
    throw refuse(404, fill(t.missing, { mac }), { hint })
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
    isFlashed: view.boot.rule === 'flashed',
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
    section: '/ui/machines',
    trail: html`<a href="${back}">${PAGES.frame.titles.machines}</a>`,
    heading: renderHeading(machine),
    updates: address('/events/machines', { q: `mac:${mac}` }),
    actions: html`${renderUndo(context, mac)}${renderLock(machine)}`,
    messages: html`${context.message()}${renderDone(context.query, view)}`,
    body: html`${renderNow(context, view, machinePath(mac), runs.find(isFlash) ?? null)}
    ${renderPowerCard(context, machine, notice)}
    ${card({ title: PAGES.machine.form.title, id: 'intent', body: mayChange ? html`${form}${renderCurlBlock(context, [callSave(machine)])}` : renderAssignment(view) })}
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
    ${machine.locked ? html`<span class="tag">${icon('lock')} ${t.locked}</span>` : null}
    ${machine.labels.map((label) => html`${labelLink(label)} `)}`

const renderLock = ({ mac, locked }: Machine): Html =>
  locked
    ? postButton({ action: `${machinePath(mac)}/do/unlock`, label: t.unlock })
    : postButton({ action: `${machinePath(mac)}/do/lock`, label: html`${icon('lock')}${t.lock}` })
