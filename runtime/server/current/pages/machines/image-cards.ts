/** The images of the catalog as cards, for the form of a machine. */
import { isFlashable, type CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import type { ImageChannel } from '#fleet/channel/rules/channel.ts'
import {
  parseImageChoice,
  renderImageChoice,
  type ImageChoice,
} from '#server/current/channels/rules/image-choice.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'
import { radioCards, type RadioCard } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import type { Machine } from '#server/current/rules/machine.ts'
import { aboutImage } from '../view/next-boot.ts'
import { choiceOf } from './machine-form.ts'
import { isOtherArch } from './flash-question.ts'

const t = PAGES.machine.images

interface ImageCards {
  readonly machine: Machine
  /** As `renderImageChoice` writes it. */
  readonly selected: string
  readonly images: readonly CatalogEntry[]
  readonly channels: readonly ImageChannel[]
  /** Why the catalog may be out of date; null: it was read. */
  readonly catalogError: string | null
}

/** Longer lists have a search. */
const MAX_WITHOUT_SEARCH = 6

export function renderImages(shown: ImageCards): Html {
  const { machine, selected, images, channels, catalogError } = shown
  const choice = parseImageChoice(selected)
  return radioCards({
    id: 'images',
    name: 'bty_image_ref',
    legend: PAGES.machine.form.image,
    value: selected,
    stored: choiceOf(machine),
    className: 'images follows',
    before: renderTools(images.length + channels.length, catalogError),
    cards: [
      ...renderFormerChannel(shown, choice),
      ...renderChannelCards(shown),
      ...listCards(machine, choice, images),
    ],
  })
}

/** A former choice of a channel that has moved: it stays until another is selected. */
function renderFormerChannel(
  { selected, images, channels }: ImageCards,
  { channel: name, ref }: ImageChoice,
): readonly RadioCard[] {
  const isOffered = channels.some((each) => each.name === name && each.bty_image_ref === ref)
  if (name === null || isOffered) return []
  return [
    {
      value: selected,
      title: html`<bdi>${nameImage(images, ref)}</bdi>`,
      text: fillHtml(t.channelFormer, { name: html`<bdi>${name}</bdi>` }),
      keywords: `${t.channel} ${name}`,
    },
  ]
}

const nameImage = (images: readonly CatalogEntry[], ref: string): string =>
  images.find((each) => each.ref === ref)?.name ?? ref.slice(0, 12)

export const renderChannelCards = ({
  images,
  channels,
}: Pick<ImageCards, 'images' | 'channels'>): readonly RadioCard[] =>
  channels.map(({ name, note, bty_image_ref: ref }) => {
    const image = images.find((each) => each.ref === ref) ?? null
    return {
      value: renderImageChoice({ channel: name, ref }),
      title: html`<bdi>${name}</bdi> → <bdi>${nameImage(images, ref)}</bdi>`,
      text: html`${t.channel}${note === '' ? null : html`: <bdi>${note}</bdi>`}
      ${image === null ? html`<span class="warning">${t.channelGone}</span>` : null}`,
      keywords: `${t.channel} ${name} ${note} ${image === null ? '' : keywordsOf(image)}`,
      disabled: image === null || !isFlashable(image),
    }
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
  { ref: selected, channel }: ImageChoice,
  images: readonly CatalogEntry[],
): readonly RadioCard[] {
  const isGone = channel === null && selected !== '' && !images.some(({ ref }) => ref === selected)
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

/** The stored image comes first, as the list may be scrolled. */
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

export const keywordsOf = ({ name, format, arch, sha256 }: CatalogEntry): string =>
  `${name} ${format} ${arch ?? ''} ${sha256?.slice(0, 12) ?? ''}`
