/** The disks that a machine reported as cards, for its form; nothing of a disk is ever shortened. */
import type { CatalogEntry } from '../../../../core/catalog/catalog.ts'
import { identifyDisk, type InventoryDisk } from '../../../../core/machine/machine.ts'
import { printable } from '../../../../core/foundation/printable.ts'
import { PAGES } from '../../../../core/texts/pages/texts.ts'
import { radioCards, textField, type RadioCard } from '../../../../web/ui/fields.ts'
import { fillHtml, html, type Html } from '../../../../web/ui/html.ts'
import type { Machine } from '../../rules/machine.ts'
import { aboutDisk, modelOf, warnOf } from '../view/disk-text.ts'

const t = PAGES.machine.disks
const LEGEND = PAGES.machine.form.disk

/** `image`: the one that is selected, or none that is known. */
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
    before: disks.length === 0 ? html`<p class="hint warning">${t.noneReported}</p>` : null,
    cards: listCards(disks, selected, image),
  })
}

/** The cards replace this as soon as the machine reports its disks. */
const renderUnknown = (typed: string): Html =>
  html`<fieldset class="cards disks follows" id="disks">
    <legend>${LEGEND}</legend>
    <p class="hint">${t.notReported}</p>
    ${textField({
      name: 'target_disk_serial',
      label: t.serial,
      value: typed,
      // Tells the stylesheet whether the field is empty.
      placeholder: ' ',
      mono: true,
      maxLength: 128,
    })}
  </fieldset>`

function listCards(
  disks: readonly InventoryDisk[],
  selected: string,
  image: CatalogEntry | null,
): readonly RadioCard[] {
  const isThere = disks.some((disk) => identifyDisk(disk) === selected)
  const gone: RadioCard = {
    value: selected,
    title: fillHtml(t.gone, { serial: html`<code>${printable(selected)}</code>` }),
    text: t.goneText,
  }
  return [
    ...(selected !== '' && !isThere ? [gone] : []),
    ...disks.map((disk) => renderCard(disk, disks, selected, image)),
    { value: '', title: t.none },
  ]
}

function renderCard(
  disk: InventoryDisk,
  all: readonly InventoryDisk[],
  selected: string,
  image: CatalogEntry | null,
): RadioCard {
  const id = identifyDisk(disk)
  const warnings = warnOf(disk, all, image)
  return {
    value: id ?? `-${disk.path}`,
    title: html`<bdi>${modelOf(disk)}</bdi>`,
    text: html`<code>${printable(id ?? t.noSerial)}</code><br />${aboutDisk(disk)},
      ${printable(disk.path)}
      ${warnings.map(({ text }) => html`<span class="warning">${text}</span>`)}
      <span class="lost">${t.lost}</span>`,
    disabled: warnings.some(({ isHard }) => isHard) && id !== selected,
  }
}
