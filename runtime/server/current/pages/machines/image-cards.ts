/** The images of the catalog as cards, for the form of a machine. */
import { isFlashable, type CatalogEntry } from '../../../../engine/catalog/rules/catalog.ts'
import { PAGES } from '../../../texts/texts.ts'
import { fill } from '../../../../kit/texts/text.ts'
import { radioCards, type RadioCard } from '../../../../kit/web/ui/fields.ts'
import { fillHtml, html, type Content, type Html } from '../../../../kit/web/ui/html.ts'
import type { Machine } from '../../rules/machine.ts'
import { aboutImage } from '../view/next-boot.ts'
import { isOtherArch } from './flash-question.ts'

const t = PAGES.machine.images

interface ImageCards {
  readonly machine: Machine
  readonly selected: string
  readonly images: readonly CatalogEntry[]
  /** Why the catalog may be out of date or empty; null: it was read. */
  readonly catalogError: string | null
}

/** The list has no search up to this number of images. */
const MAX_WITHOUT_SEARCH = 6

export const renderImages = ({ machine, selected, images, catalogError }: ImageCards): Html =>
  radioCards({
    id: 'images',
    name: 'bty_image_ref',
    legend: PAGES.machine.form.image,
    value: selected,
    stored: machine.bty_image_ref ?? '',
    className: 'images follows',
    before: renderTools(images.length, catalogError),
    cards: listCards(machine, selected, images),
  })

const renderTools = (count: number, error: string | null): Content => html`
  ${
    count > MAX_WITHOUT_SEARCH
      ? html`<input
          type="search"
          class="scripted-only"
          data-filter=".images"
          aria-label="${t.find}"
          placeholder="${t.find}"
        />`
      : null
  }
  ${
    error === null
      ? null
      : html`<p class="hint warning">
          ${fillHtml(t.unavailable, { error, link: html`<a href="/ui/settings#ramboot">${t.cacheService}</a>` })}
        </p>`
  }
`

function listCards(
  machine: Machine,
  selected: string,
  images: readonly CatalogEntry[],
): readonly RadioCard[] {
  const isGone = selected !== '' && !images.some(({ ref }) => ref === selected)
  const gone: RadioCard = {
    value: selected,
    title: fillHtml(t.gone, { ref: html`<code>${selected.slice(0, 12)}</code>` }),
    text: t.goneText,
  }
  return [
    ...(isGone ? [gone] : []),
    ...inOrder(images, machine.bty_image_ref).map((image) => renderCard(machine, image)),
    { value: '', title: t.none, keywords: t.noneKeywords },
  ]
}

/** Where the list is scrolled, what is in force comes first. */
const inOrder = (images: readonly CatalogEntry[], stored: string | null) =>
  images.length > MAX_WITHOUT_SEARCH
    ? images.toSorted((a, b) => Number(b.ref === stored) - Number(a.ref === stored))
    : images

function renderCard(machine: Machine, image: CatalogEntry): RadioCard {
  const { ref, name, format, arch } = image
  const canFlash = isFlashable(image)
  return {
    value: ref,
    title: html`<bdi>${name}</bdi>`,
    text: html`${format || t.unknownFormat},
    ${aboutImage(image)}${arch === null ? null : html`, ${arch}`}
    ${canFlash ? null : html`<span class="warning">${t.notFlashable}</span>`}
    ${isOtherArch(machine.arch, arch) ? html`<span class="warning">${fill(t.otherArch, { arch: machine.arch ?? '' })}</span>` : null}`,
    keywords: keywordsOf(image),
    disabled: !canFlash && ref !== machine.bty_image_ref,
  }
}

/** What finds it in a search. */
export const keywordsOf = ({ name, format, arch, sha256 }: CatalogEntry): string =>
  `${name} ${format} ${arch ?? ''} ${sha256?.slice(0, 12) ?? ''}`
