/** The disks that a machine reported as cards, for its form; nothing of a disk is ever shortened. */
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import {
  ANEW,
  findPicked,
  kindOf,
  nameAmong,
  pickDisk,
  type PickRefusal,
} from '#engine/inventory/rules/disk-pick.ts'
import type { InventoryDisk } from '#engine/inventory/rules/machine.ts'
import { printable } from '#kit/foundation/printable.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { radioCards, textField, type RadioCard } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { targetOf, type Machine } from '#server/current/rules/machine.ts'
import { renderDiskMismatch, toMismatch } from '#server/current/rules/target.ts'
import { aboutDisk, modelOf, warnOf } from '../view/disk-text.ts'

const t = PAGES.machine.disks
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
  if (count === 0) return html`<p class="hint warning">${t.noneReported}</p>`
  if (count <= MAX_WITHOUT_SEARCH) return null
  return html`<input
    type="search"
    class="scripted-only"
    data-filter=".disks"
    aria-label="${t.find}"
    placeholder="${t.find}"
  />`
}

/** Replaced as soon as the machine reports its disks. */
const renderUnknown = (typed: string): Html =>
  html`<fieldset class="cards disks follows" id="disks">
    <legend>${LEGEND}</legend>
    <p class="hint">${t.notReported}</p>
    ${textField({
      name: 'target_disk_serial',
      label: t.serial,
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
    title: fillHtml(t.gone, { serial: html`<code>${printable(selected)}</code>` }),
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
  return [...(isGone ? [gone] : []), ...cards, { value: '', title: t.none }]
}

const renderGone = (refusal: PickRefusal, selected: string): string =>
  refusal.why === 'disk-missing' ? t.goneText : renderDiskMismatch(toMismatch(refusal), selected)

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
    text: html`<code>${printable(name ?? t.noSerial)}</code><br />${aboutDisk(disk)},
      ${printable(disk.path)}${renderAttachment(disk)}
      ${kind === 'serial' ? null : html`<span>${t.pickedBy[kind]}</span>`}
      ${warnings.map(({ text }) => html`<span class="warning">${text}</span>`)}
      <span class="lost">${t.lost}</span>`,
    keywords: keywordsOf(disk),
    disabled: warnings.some(({ isHard }) => isHard) && !isSelected,
  }
}

/** For people in front of a server's bays. */
function renderAttachment(disk: InventoryDisk): Content {
  const { wwn, by_path: path } = disk
  const port = portOf(disk)
  return html`${port === null ? null : html`, ${fill(t.port, { port })}`}${
    path ? html`<br /><span class="attached">${printable(path)}</span>` : null
  }${wwn ? html`<br /><span class="attached">${fill(t.wwn, { wwn: printable(wwn) })}</span>` : null}`
}

/** The port of `…-ata-3` or `…-phy7-lun-0`, as printed on the bay. */
export const portOf = ({ by_path: path }: Pick<InventoryDisk, 'by_path'>): string | null =>
  /-(?:ata-|phy)(\d{1,4})(?=[-.]|$)/.exec(path ?? '')?.[1] ?? null

const keywordsOf = (disk: InventoryDisk): string =>
  [modelOf(disk), disk.serial, disk.path, disk.by_path, disk.wwn, disk.tran, disk.size]
    .filter(Boolean)
    .map((text) => printable(String(text)))
    .join(' ')
