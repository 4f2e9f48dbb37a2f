/** The form of a channel: a new one, or another image and note for one that is there. */
import { isFlashable, type CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import {
  ChannelNameSchema,
  MAX_NOTE_CHARACTERS,
  type ChannelFields,
  type ImageChannel,
} from '#fleet/channel/rules/channel.ts'
import type { Channels } from '#fleet/channel/channels.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { card } from '#kit/web/ui/elements.ts'
import { hidden, selectField, textField } from '#kit/web/ui/fields.ts'
import { html, type Content, type Html } from '#kit/web/ui/html.ts'
import { blank, renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { CHANNEL_SAVE_PATH, CHANNELS_PATH } from './channels-path.ts'

const FIELDS = ['name', 'bty_image_ref', 'note'] as const
type TypedChannel = Readonly<Record<(typeof FIELDS)[number], string>>

export interface WrongField {
  readonly field: keyof TypedChannel
  readonly error: string
}

const MAX_TYPED = 1000

export const keepTyped = (form: URLSearchParams): Readonly<Record<string, string>> =>
  Object.fromEntries(
    FIELDS.flatMap((field) => {
      const value = form.get(field)?.slice(0, MAX_TYPED)
      return value === undefined ? [] : [[field, value]]
    }),
  )

export function renderChannelForm(context: CurrentContext, channel: ImageChannel | null): Html {
  const notice = context.notice()
  const values: TypedChannel = { ...valuesOf(channel), ...notice?.typed }
  const errorOf = (field: keyof TypedChannel) => notice?.errors[field] ?? null
  return card({
    title: channel === null ? 'New channel' : html`Change <bdi>${channel.name}</bdi>`,
    id: 'form',
    body: html`<form method="post" action="${CHANNEL_SAVE_PATH}">
        ${renderName(channel, values.name, errorOf('name'))}
        ${selectField({
          name: 'bty_image_ref',
          label: 'Image',
          value: values.bty_image_ref,
          options: listOptions(context.services.images(), values.bty_image_ref),
          error: errorOf('bty_image_ref'),
        })}
        ${textField({
          name: 'note',
          label: 'Note',
          hint: 'What people should know, such as why it stays where it is.',
          value: values.note,
          error: errorOf('note'),
          maxLength: MAX_NOTE_CHARACTERS,
        })}
        <div class="row">
          ${channel === null ? null : html`<a class="button" href="${CHANNELS_PATH}">Cancel</a>`}
          <button class="primary">${channel === null ? 'Make channel' : 'Save'}</button>
        </div>
      </form>
      ${renderCurlBlock(context, [callOf(channel)])}`,
  })
}

const valuesOf = (channel: ImageChannel | null): TypedChannel =>
  channel === null
    ? { name: '', bty_image_ref: '', note: '' }
    : { name: channel.name, bty_image_ref: channel.bty_image_ref, note: channel.note }

/** An existing channel keeps its name; the form carries what it was made from. */
const renderName = (channel: ImageChannel | null, value: string, error: string | null): Content =>
  channel === null
    ? textField({
        name: 'name',
        label: 'Name',
        hint: 'Letters, digits, dots and dashes, such as stable or lab-12.',
        value,
        error,
        required: true,
        maxLength: 64,
        mono: true,
      })
    : hidden({ channel: channel.name, before: channel.bty_image_ref })

const callOf = (channel: ImageChannel | null): CurlCall => ({
  method: 'PUT',
  path: `/channels/${channel?.name ?? blank('name')}`,
  body: {
    bty_image_ref: channel?.bty_image_ref ?? blank('bty_image_ref'),
    note: channel?.note ?? '',
  },
  scope: 'machines',
})

/** In natural order; the selected one even if it is gone. */
function listOptions(images: readonly CatalogEntry[], selected: string) {
  const offered = images
    .filter(isFlashable)
    .toSorted((a, b) => (naturalKey(a.name) < naturalKey(b.name) ? -1 : 1))
    .map(({ ref, name }) => ({ value: ref, text: name }))
  const isOffered = offered.some(({ value }) => value === selected)
  const first = { value: selected, text: selected.slice(0, 12) || 'Choose an image' }
  return isOffered ? offered : [first, ...offered]
}

interface Known {
  readonly images: readonly CatalogEntry[]
  readonly channels: Pick<Channels, 'find'>
}

interface ReadChannel extends ChannelFields {
  readonly name: string
  /** The channel's image when the form was made; null: no channel. */
  readonly before: string | null
}

/** A new channel must not exist, and an existing one not have moved. */
export function readChannelForm(
  form: URLSearchParams,
  { images, channels }: Known,
): Result<ReadChannel, WrongField> {
  const known = form.get('channel')
  const [name, bty_image_ref, note] = [known ?? form.get('name'), ...readRest(form)]
  const wrong = findWrongName((name ?? '').trim(), known === null ? channels : null)
  if (wrong !== null) return refuse({ field: 'name', error: wrong })
  if (!images.some(({ ref }) => ref === bty_image_ref)) {
    return refuse({ field: 'bty_image_ref', error: 'Choose an image.' })
  }
  if (note.length > MAX_NOTE_CHARACTERS) {
    const error = `The note is too long: it may have ${MAX_NOTE_CHARACTERS} characters.`
    return refuse({ field: 'note', error })
  }
  const before = known === null ? null : form.get('before')
  return accept({ name: (name ?? '').trim(), bty_image_ref, note, before })
}

const readRest = (form: URLSearchParams): readonly [string, string] => [
  form.get('bty_image_ref') ?? '',
  (form.get('note') ?? '').trim(),
]

/** `others`: the names in use; null: an existing channel. */
function findWrongName(name: string, others: Known['channels'] | null): string | null {
  if (!ChannelNameSchema.safeParse(name).success)
    return 'A name has up to 64 letters, digits, dots, dashes and underscores, and begins with a letter or a digit.'
  return others === null || others.find(name) === null
    ? null
    : `There is a channel ${name} already: change it in the list.`
}
