/** /ui/machines/{mac}: what happens next, the configuration of the machine, its facts and its history. */
import type { Answer } from '#kit/web/answers/answers.ts'
import {
  card,
  icon,
  copyable,
  factList,
  foldedCard,
  renderMemoryBytes,
} from '#kit/web/ui/elements.ts'
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
import type { Run } from '#engine/inventory/rules/run.ts'
import {
  type Machine,
  MACHINE_FIELDS,
  MAX_LABELS,
  MAX_NAME_CHARACTERS,
  isUnassigned,
  namesWith,
  type Column,
  type OptionTexts,
  targetOf,
} from './rules/machine.ts'
import { pageAt } from '#server/pages/context-routes.ts'
import { type CurrentContext, renderUndo } from '#server/current/view/page-context.ts'
import { renderCaptureCard } from '#server/current/captures/capture-card.ts'
import { renderOnceCard } from '#server/current/once/once-card.ts'
import { MACHINE_POSTS } from './machine-posts.ts'
import { renderPowerCard } from '#server/current/power/power-card.ts'
import { POWER_POSTS } from '#server/current/power/power-posts.ts'
import { renderFirstBootCard } from '#server/current/first-boot/machine-card.ts'
import { callSave, listActions } from './machine-calls.ts'
import {
  FIELDS,
  readValues,
  valuesOf,
  WRONG_FIELD,
  type FormValues,
  fingerprint,
  renderModes,
} from './machine-form.ts'
import { renderAgain, renderDone, renderNow, renderReasonAndScript } from './now-card.ts'
import { readEventWords } from '#server/current/view/event-list.ts'
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
import { listFirmwareFacts } from '#engine/inventory/rules/firmware-facts.ts'
import { parseHardware, type Hardware } from '#engine/inventory/rules/inventory.ts'
import type { JournalEvent } from '#fleet/state/journal.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { questionButton, opensQuestion } from '#server/pages/question.ts'
import { nameActor } from '#server/current/view/actor-name.ts'
import { renderTimeline, timelinePath } from './timeline.ts'
import { renderRunList } from '#server/current/view/run-table.ts'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { parseImageChoice } from '#server/current/channels/rules/channel-order.ts'
import { printable } from '#kit/foundation/printable.ts'
import { inOrder, renderFilter, renderImages } from './image-cards.ts'
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

// The form of a machine in three steps (image, disk, what it does on network boot); its names are beside the title.

const FORM = 'configuration'

interface ConfigurationForm {
  readonly context: CurrentContext
  readonly view: MachineView
  readonly values: FormValues
  readonly back: string
  /** Typed and refused values: updates of the machine must not replace them. */
  readonly isTyped: boolean
  readonly refused: { readonly field: string; readonly error: string } | null
}

function renderConfigurationForm(form: ConfigurationForm): Html {
  const { context, view, values, back } = form
  const { machine, boot } = view
  const { entries: images, error: catalogError } = context.site.catalog.snapshot()
  const channels = context.services.channels.list()
  const chosen = parseImageChoice(values.bty_image_ref).ref
  const selected = images.find(({ ref }) => ref === chosen) ?? null
  // It has listed its disks, and nobody has decided yet what comes after that.
  const isUndecided = boot.rule === 'disks-known' && values.boot_mode === machine.boot_mode
  const mode = isUndecided ? null : values.boot_mode
  return html`<form
    ${attributes({
      id: FORM,
      'data-dirty': form.isTyped,
      'data-mode-selected': `${MODES[USUAL_FLASH_MODE].title} selected`,
    })}
    ${opensQuestion(machinePath(machine.mac))}
  >
    ${hidden({ confirm: 'ask', was: fingerprint(machine), back })}
    <div class="choices">
      ${renderImages({ machine, selected: values.bty_image_ref, images, channels, catalogError })}
      ${renderDisks(machine, values.target_disk_serial, selected)}
      ${renderModes(mode, machine.boot_mode, describeStanding(view))}
    </div>
    ${renderAdvanced(form)}
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

/** A new machine asks for its name. Both fields are saved with the form below: nothing typed is lost. */
function renderNaming({ view: { machine }, values, refused }: ConfigurationForm): Html {
  const isAsked = nameOf(machine) === machine.mac && isUnassigned(machine)
  const errorOf = (name: string) => (refused?.field === name ? refused.error : null)
  const open = isAsked || (errorOf('name') ?? errorOf('labels')) !== null
  return html`<details class="naming" id="naming" ${attributes({ open })}>
    <summary>
      ${isAsked ? 'Name this machine' : html`Edit<span class="spoken"> name and labels</span>`}
    </summary>
    <div class="names">
      ${textField({
        name: 'name',
        label: 'Name',
        value: values.name,
        form: FORM,
        placeholder: machine.hostname ?? machine.mac,
        maxLength: 2 * MAX_NAME_CHARACTERS,
        hint: 'Shown instead of the host name or MAC address.',
        error: errorOf('name'),
      })}
      ${textField({
        name: 'labels',
        label: 'Labels',
        value: values.labels,
        form: FORM,
        placeholder: 'rack-1, bench 4',
        hint: `Separate with commas, ${MAX_LABELS} at most. Letters A to Z, digits, spaces and . _ -`,
        error: errorOf('labels'),
      })}
      <button form="${FORM}">Save</button>
    </div>
  </details>`
}

const renderAdvanced = ({ view, values, isTyped, refused }: ConfigurationForm): Html =>
  html`<details ${attributes({ open: isTyped })}>
    <summary>Advanced</summary>
    <div class="names">
      ${textField({
        name: 'sanboot_drive',
        label: 'BIOS drive of its disk',
        value: values.sanboot_drive,
        placeholder: '0x80',
        mono: true,
        maxLength: 8,
        hint: 'The drive that a legacy BIOS boots. UEFI machines follow their own boot order.',
        error: refused?.field === 'sanboot_drive' ? refused.error : null,
      })}
      ${namesWith('form').map((name) => renderOption(name, values[name]))}
      ${listClears(view.machine).map(
        ([name, text]) =>
          html`<label class="check"
            ><input${attributes({ type: 'radio', name, value: '', checked: values[name] === '' })} />
            ${text}</label
          >`,
      )}
    </div>
  </details>`

/** The choices that take away what is assigned; a field for a serial number is emptied instead. */
function listClears({ bty_image_ref: ref, target_disk_serial: serial, known_disks }: Machine) {
  return [
    ...(ref === null ? [] : [['bty_image_ref', 'No image'] as const]),
    ...(serial === null || known_disks === null
      ? []
      : [['target_disk_serial', 'No disk'] as const]),
  ]
}

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
    className: disks.length > MAX_AT_EASE ? 'disks follows compact' : 'disks follows',
    before: renderBefore(disks.length),
    cards: listCards(machine, disks, selected, image),
  })
}

/** Of longer lists, where a disk is attached is shown of the selected one alone. */
const MAX_AT_EASE = 10

const renderBefore = (count: number): Content =>
  count === 0
    ? html`<p class="hint warning">The machine reported that it has no disks.</p>`
    : renderFilter(count, '.disks', 'Find a disk by model, serial number, path or WWN')

/** Replaced as soon as the machine reports its disks. */
const renderUnknown = (typed: string): Html =>
  html`<fieldset class="cards disks follows" id="disks">
    <legend>Disk to erase</legend>
    <p class="hint">No disks reported yet. Boot the machine from the network to list them.</p>
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
  return [...(isGone ? [gone] : []), ...inOrder(cards, selected)]
}

const renderGone = (refusal: PickRefusal, selected: string): string =>
  refusal.why === 'disk-missing'
    ? 'Missing from the last report of the machine. It stays selected until you select another disk.'
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
  wwn: 'Selected by its WWN. You can move it to another slot.',
  eui: 'Selected by its EUI or NGUID. You can move it to another slot.',
  path: 'Selected by its slot. It is flashed only if the disk there keeps its size, model and serial number. If you move it, select it again.',
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
    path ? html`<span class="attached">${printable(path)}</span>` : null
  }${wwn ? html`<span class="attached">WWN ${printable(wwn)}</span>` : null}`
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
  readonly context: CurrentContext
  readonly view: MachineView
  /** The hardware tree as posted; null: not yet. */
  readonly posted: { readonly json: string; readonly at: string } | null
  readonly runs: readonly Run[]
  readonly events: readonly JournalEvent[]
}

const renderFacts = (facts: MachineFacts): Html =>
  html`<div class="columns even" id="facts">
    <div>${renderIdentity(facts)} ${renderDetails(facts)}</div>
    <div>${renderHistory(facts)} ${renderDeletion(facts.view.machine)}</div>
  </div>`

function renderIdentity({ context, view: { machine } }: MachineFacts): Html {
  const {
    mac,
    last_seen_ip: ip,
    armed_by: armer,
    secure_boot: isSecured,
    bmc_address: bmc,
  } = machine
  const clock = context.clock()
  return card({
    title: 'Identity',
    body: factList([
      ['MAC', copyable(mac)],
      ['Host name', machine.hostname],
      ['Address', ip === null ? null : copyable(ip)],
      ['Architecture', machine.arch],
      ['Secure Boot', isSecured === null ? null : isSecured ? 'On' : 'Off'],
      ['BMC address, as reported', bmc === null ? null : copyable(bmc)],
      ['Last seen', renderTime(machine.last_seen_at, clock, 'never')],
      ['Discovered', renderTime(machine.discovered_at, clock, 'added manually')],
      [
        isFlashMode(machine.boot_mode) ? 'Armed' : 'Configured',
        armer === null ? null : html`${renderTime(armer.at, clock)} by ${nameActor(armer.actor)}`,
      ],
      ['Last flashed', renderTime(machine.last_flashed_at, clock, 'never')],
      ['Disks listed', renderTime(machine.known_disks_at, clock, 'never')],
    ]),
  })
}

function renderDetails({ context, view, posted }: MachineFacts): Html {
  const { mac, known_disks: disks, firmware } = view.machine
  const hardware = posted === null ? null : parseHardware(posted.json)
  return foldedCard({
    title: 'Details',
    id: 'details',
    about: 'Reason, script, hardware, firmware',
    isOpen: false,
    body: html`<div class="stack">
      ${renderReasonAndScript(context, view)}
      <h3>Hardware</h3>
      ${hardware === null ? html`<p class="dim">Not reported yet.</p>` : renderHardware(hardware)}
      <h3>Firmware</h3>
      ${firmware === null ? html`<p class="dim">Not reported yet.</p>` : factList(listFirmwareFacts(firmware))}
      <p class="row small">
        ${posted === null ? null : html`<a href="/machines/${mac}/lshw.json">lshw.json</a>`}
        ${disks === null ? null : html`<a href="/machines/${mac}/disks.json">disks.json</a>`}
      </p>
    </div>`,
  })
}

function renderHistory({ context, view, runs, events }: MachineFacts): Html {
  const { mac, cycle } = view.machine
  const clock = context.clock()
  // Why it failed is said above.
  const isFailed = view.view.state === 'failed'
  const shown = runs.map((run, at) => (isFailed && at === 0 ? { ...run, reason: null } : run))
  const said = isFailed ? cycle.failure?.reason : undefined
  const news = events.map((event) => ({
    ...event,
    summary: event.summary.replace(`: ${said}`, ''),
  }))
  return html`${card({
    title: 'Runs',
    aside: html`<a class="small" href="/ui/runs?mac=${mac}">All runs</a>`,
    body:
      runs.length === 0 ? html`<p class="dim">Not flashed yet.</p>` : renderRunList(shown, clock),
  })}
  ${card({
    title: 'Timeline',
    id: 'timeline',
    aside: html`<a class="small" href="${timelinePath(mac)}">Whole timeline</a>`,
    body: renderTimeline(news, clock, readEventWords(context), MAX_SHOWN),
  })}`
}

const renderDeletion = ({ mac }: Machine): Html =>
  html`<details class="card">
    <summary>Delete this machine</summary>
    <p class="dim">
      ${'Its name, labels, image and disk are deleted; its events and runs are kept. The machine reappears as discovered when it next boots from the network.'}
    </p>
    ${questionButton({ action: `${machinePath(mac)}/delete`, label: 'Delete machine…', tone: 'danger' })}
  </details>`

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

const [MAX_RUNS, MAX_EVENTS, MAX_SHOWN] = [8, 20, 5]

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
  const back = backOf(context)
  const form: ConfigurationForm = {
    context,
    view,
    values: shownValues(context, machine, notice),
    back,
    isTyped: FIELDS.some((name) => notice?.typed[name] !== undefined),
    refused: refusedIn(notice),
  }
  return await context.show({
    title: nameOf(machine),
    learn: 'server.html#a-machine',
    trail: html`<a href="${back}">Machines</a>`,
    heading: renderHeading(machine),
    edit: mayChange ? renderNaming(form) : null,
    updates: address('/events/machines', { q: `mac:${mac}` }),
    actions: html`${renderUndo(context, mac)}${renderLock(machine)}`,
    messages: html`${context.message()}${renderDone(context.query, view)}`,
    body: html`${renderNow(context, view, machinePath(mac), runs.find(isFlash) ?? null)}
    ${mayChange ? renderIntent(form) : card({ title: 'Configuration', id: 'intent', body: renderAssignment(view) })}
    ${renderPowerCard(context, machine, notice)}
    ${mayChange ? html`${await renderFirstBootCard(context, machine)} ${renderCaptureCard(context, machine, notice)} ${renderOnceCard(context, machine)}` : null}
    ${renderFacts({ context, view, posted, runs, events })}`,
  })
}

const isFlash = ({ mode }: Run) => mode !== 'capture'

/** Folded where nothing is to be decided, or where a button above does what is usual. */
function renderIntent(form: ConfigurationForm): Html {
  const { context, view } = form
  const { state } = view.view
  const isDone = state === 'done'
  const flash = listActions(view).find(({ action }) => action === 'flash')
  return foldedCard({
    title: html`<span id="intent-title">${isDone ? 'Flash again…' : 'Configuration'}</span>`,
    id: 'intent',
    about: html`<bdi>${view.image?.name}</bdi>`,
    isOpen: form.isTyped || (flash?.isPrimary !== true && /^(ready|needs-you)$/.test(state)),
    body: html`${isDone && flash !== undefined ? renderAgain(context, view) : null}
    ${renderConfigurationForm(form)} ${renderCurlBlock(context, [callSave(view.machine)])}`,
  })
}

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
