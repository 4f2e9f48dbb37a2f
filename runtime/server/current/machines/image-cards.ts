/** The images of the catalog as cards, for the form of a machine. */
import { isFlashable, type CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import type { ImageChannel } from '#fleet/channel/rules/channel.ts'
import {
  parseImageChoice,
  renderImageChoice,
  type ImageChoice,
} from '#server/current/channels/rules/channel-order.ts'
import { fillCount } from '#kit/foundation/text.ts'
import { radioCards, type RadioCard, hidden, textField } from '#kit/web/ui/fields.ts'
import { fillHtml, html, type Content, type Html, STRONG } from '#kit/web/ui/html.ts'
import type { Machine } from './rules/machine.ts'
import {
  aboutImage,
  NO_IMAGES,
  nameOf,
  renderChannel,
  type MachineView,
  bytesOf,
  aboutDisk,
  modelOf,
  warnOf,
} from '#server/current/view/machine-view.ts'
import { choiceOf, lastFour } from './machine-form.ts'
import { printable } from '#kit/foundation/printable.ts'
import { banner, icon } from '#kit/web/ui/elements.ts'
import { renderQuestion } from '#server/pages/question.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import type { CurrentContext } from '#server/current/view/page-context.ts'

interface ImageCards {
  readonly machine: Machine
  /** As `renderImageChoice` writes it. */
  readonly selected: string
  readonly images: readonly CatalogEntry[]
  readonly channels: readonly ImageChannel[]
  /** Why the catalog may be out of date; null: it was read. */
  readonly catalogError: string | null
}

/** Longer lists have a search, and begin with what is stored, as they are scrolled. */
const MAX_AT_EASE = 6

export const inOrder = (cards: readonly RadioCard[], stored: string | null) =>
  cards.length > MAX_AT_EASE
    ? cards.toSorted((a, b) => Number(b.value === stored) - Number(a.value === stored))
    : cards

export const renderFilter = (count: number, list: string, label: string): Content =>
  count > MAX_AT_EASE
    ? html`<input
        type="search"
        class="scripted-only"
        data-filter="${list}"
        aria-label="${label}"
        placeholder="${label}"
      />`
    : null

export function renderImages(shown: ImageCards): Html {
  const { machine, selected, images, channels, catalogError } = shown
  const choice = parseImageChoice(selected)
  return radioCards({
    id: 'images',
    name: 'bty_image_ref',
    legend: 'Image',
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
      text: html`The channel <bdi>${name}</bdi> pointed to it when this machine got it.`,
      keywords: `Channel ${name}`,
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
      text: html`Channel${note === '' ? null : html`: <bdi>${note}</bdi>`}
      ${image === null ? html`<span class="warning">Its image is no longer in the catalog.</span>` : null}`,
      keywords: `Channel ${name} ${note} ${image === null ? '' : keywordsOf(image)}`,
      disabled: image === null || !isFlashable(image),
    }
  })

const renderTools = (count: number, error: string | null): Content => html`
  ${renderFilter(count, '.images', 'Find an image')}
  ${
    error === null
      ? count === 0
        ? NO_IMAGES
        : null
      : html`<p class="hint warning">
          The catalog is unavailable: ${error} <a href="/ui/settings#ramboot">Cache service</a>
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
    title: html`<code>${selected.slice(0, 12)}</code> (gone)`,
    text: 'No longer in the catalog. It stays assigned until you select another image.',
  }
  return [
    ...(isGone ? [gone] : []),
    ...inOrder(
      images.map((image) => renderCard(machine, image)),
      machine.bty_image_ref,
    ),
  ]
}

function renderCard(machine: Machine, image: CatalogEntry): RadioCard {
  const { ref, name, format, arch } = image
  const canFlash = isFlashable(image)
  return {
    value: ref,
    title: html`<bdi>${name}</bdi>`,
    text: html`${format || 'unknown format'},
    ${aboutImage(image)}${arch === null ? null : html`, ${arch}`}
    ${canFlash ? null : html`<span class="warning">Not a disk image: unpack it first.</span>`}
    ${isOtherArch(machine.arch, arch) ? html`<span class="warning">This machine is ${machine.arch ?? ''}.</span>` : null}`,
    keywords: keywordsOf(image),
    disabled: !canFlash && ref !== machine.bty_image_ref,
  }
}

export const keywordsOf = ({ name, format, arch, sha256 }: CatalogEntry): string =>
  `${name} ${format} ${arch ?? ''} ${sha256?.slice(0, 12) ?? ''}`

export interface FlashQuestion {
  /** Before a flash: the machine as it would be. */
  readonly view: MachineView
  readonly action: string
  readonly values: Readonly<Record<string, string>>
  readonly typed?: string
  readonly error: string | null
  readonly more?: Content
  readonly command?: Content
  /** Why the machine would not start. */
  readonly misfit?: Content
}

/** Null: nothing speaks against it. */
export async function findMisfit(
  { services }: CurrentContext,
  { image, machine }: MachineView,
): Promise<Content> {
  const why = (await services.misfits.find([image]))(image, machine)
  return why === null
    ? null
    : banner(
        'needs-you',
        html`<strong>This machine would not start from this image.</strong> ${why}`,
      )
}

export function renderFlashQuestion({
  view,
  action,
  values,
  typed = '',
  error,
  more,
  command,
  misfit,
}: FlashQuestion): Html {
  const { machine, image, disk } = view
  const serial = machine.target_disk_serial ?? ''
  const name = nameOf(machine)
  return renderQuestion({
    title: html`Erase and flash this disk on <bdi>${name}</bdi>?`,
    body: html`<div class="facing">
        <div>
          ${icon('image')}
          <strong><bdi>${image?.name ?? machine.bty_image_ref?.slice(0, 12)}</bdi></strong
          >${renderChannel(machine)}<br />
          <span class="small dim"
            >${image === null ? 'currently not in the catalog' : aboutImage(image)}</span
          >
        </div>
        <span aria-label="to">→</span>
        <div>
          ${icon('disk')}
          <strong
            ><bdi>${disk === null ? 'A disk that is not listed yet' : modelOf(disk)}</bdi></strong
          ><br />
          ${renderSerial(serial)}<br />
          <span class="small dim"
            >${disk === null ? 'size and model unknown' : aboutDisk(disk)}</span
          >
        </div>
      </div>
      ${listWarnings(view).map((text) => banner('needs-you', text))} ${misfit}
      <p>
        ${fillHtml('{strong}Everything on this disk will be lost{end} at the next network boot of this machine.', STRONG)}
      </p>`,
    command,
    form: {
      action,
      fields: html`${hidden(values)}
      ${textField({
        name: 'confirm',
        label: fillCount(
          {
            one: 'Type the last character of the serial number',
            other: 'Type the last {count} characters of the serial number',
          },
          lastFour(serial).length,
        ),
        value: typed,
        mono: true,
        required: true,
        maxLength: 8,
        pattern: patternOf(lastFour(serial)),
        error,
      })}
      ${more}`,
      cancel: machinePath(machine.mac),
      button: html`<button class="danger" formnovalidate>Arm this machine</button>`,
    },
  })
}

/** As shown, or in one case: for the look of the button alone. */
const patternOf = (text: string): string =>
  [text, text.toLowerCase(), text.toUpperCase()].map((each) => RegExp.escape(each)).join('|')

/** In full, with the characters to type marked. */
function renderSerial(serial: string): Html {
  const typed = lastFour(serial)
  const end = serial.trimEnd().length
  return html`<code
    >${printable(serial.slice(0, end - typed.length))}<mark>${printable(typed)}</mark></code
  >`
}

/** Possible mistakes that do not prevent the flash. */
function listWarnings({ machine, image, disk, boot }: MachineView): readonly Content[] {
  const warnings: Content[] = []
  if (boot.decision.kind !== 'to-live') warnings.push(boot.reason)
  if (isOtherArch(machine.arch, image?.arch ?? null)) {
    warnings.push(
      fillHtml(
        'The image is for {imageArch}, but this machine is {machineArch}: it will probably not boot.',
        {
          imageArch: html`<strong>${image?.arch}</strong>`,
          machineArch: html`<strong>${machine.arch}</strong>`,
        },
      ),
    )
  }
  if (disk !== null) {
    warnings.push(...warnOf(disk, machine.known_disks ?? [], image).map(({ text }) => text))
    if (bytesOf(disk) === null) warnings.push('The size of the disk is unknown.')
  }
  return warnings
}

/** iPXE says `x86_64`, `i386` and `arm64`; 32-bit loaders run on 64-bit PCs, too. */
export const isOtherArch = (machine: string | null, image: string | null): boolean =>
  machine !== null && image !== null && (machine === 'i386' ? 'x86_64' : machine) !== image
