/** Channels, names that point at images: who changes them, what the API shows and what is recorded; and /ui/channels. */
import { z } from 'zod'
import type { Channels } from '#fleet/channel/channels.ts'
import {
  ChannelFieldsSchema,
  ChannelNameSchema,
  ChannelRecordSchema,
  editChannel,
  MAX_CHANNELS,
  type ChannelFields,
  type ImageChannel,
  MAX_NOTE_CHARACTERS,
} from '#fleet/channel/rules/channel.ts'
import { fieldError } from '#kit/foundation/field-error.ts'
import { etagOf } from '#kit/web/answers/rules/content-coding.ts'
import { createResource } from '#server/routes/resource.ts'
import type { Site } from '#server/routes/site.ts'
import { type Machine, channelOf } from '#server/current/machines/rules/machine.ts'
import { listArmed } from './rules/channel-order.ts'
import type { Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import { isFlashable, type CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { naturalKey } from '#kit/net/rules/natural-order.ts'
import { fillCount } from '#kit/foundation/text.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { banner, card, emptyState } from '#kit/web/ui/elements.ts'
import { hidden } from '#kit/web/ui/fields.ts'
import { address, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { ACTIONS, renderTable } from '#kit/web/ui/tables.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { formAt, pageAt, removalAt } from '#server/pages/context-routes.ts'
import { blank, renderCurlBlock, type CurlCall } from '#server/pages/curl-block.ts'
import {
  describeWrong,
  readTyped,
  renderFormFields,
  type FormErrors,
  type FormField,
} from '#server/pages/form-fields.ts'
import { questionButton, showRemoval } from '#server/pages/question.ts'
import { NO_IMAGES } from '#server/current/view/machine-view.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { nameActor } from '../view/actor-name.ts'

const WireSchema = ChannelRecordSchema.extend({
  name: ChannelNameSchema,
  image: z.string().nullable().describe('The name of the image; null: no longer in the catalog'),
})

/** They keep the image, and it would not be known any more why. */
const countArmed = ({ machines }: Site<Machine>, name: string): number =>
  listArmed(machines.peekAll(), name).length

export function createChannelResource(site: Site<Machine>, channels: Channels) {
  const nameImage = (wanted: string) =>
    site.catalog.snapshot().entries.find(({ ref }) => ref === wanted)?.name ?? null
  return createResource<ImageChannel, ChannelFields>(site, {
    path: '/channels',
    word: 'channel',
    rows: channels,
    most: MAX_CHANNELS,
    schemas: { name: ChannelNameSchema, fields: ChannelFieldsSchema, wire: WireSchema },
    summaries: {
      list: 'All channels, by name: each points to an image',
      one: 'One channel',
      save: 'Adds a channel, or points it to another image; machines that are armed keep theirs',
      remove: 'Removes a channel with which no machine is armed',
    },
    scope: 'machines',
    // Channels reach machines outside of any scope.
    reach: ['shared'],
    toWire: ({ name, bty_image_ref, note, moved_at, moved_by }) => ({
      name,
      bty_image_ref,
      image: nameImage(bty_image_ref),
      note,
      moved_at,
      moved_by,
    }),
    /** An image that leaves the catalog does not change the channel. */
    tagOf: (channel) => etagOf(JSON.stringify(channel)),
    edit: (before, { name, ...fields }, by) => editChannel(before, name, fields, by),
    check: ({ bty_image_ref }) =>
      nameImage(bty_image_ref) === null
        ? fieldError(['bty_image_ref'], 'the catalog has no such image')
        : null,
    findObstacle({ name }) {
      const count = countArmed(site, name)
      return count === 0 ? null : `${count} machines are armed with ${name}`
    },
    describeStale: (name) => `the channel ${name} was changed in the meantime, or exists already`,
    describe(before, after) {
      const [from = null, to = null] = [before, after].map(
        (channel) => channel && (nameImage(channel.bty_image_ref) ?? channel.bty_image_ref),
      )
      const [done, text] = describeChange(before, after, { from, to })
      return {
        kind: `settings.channel.${done}`,
        summary: `The ${done === 'noted' ? 'note of the ' : ''}channel ${(after ?? before)?.name} ${text}`,
        details: { from, to, note: after?.note ?? null },
      }
    },
  })
}

function describeChange(
  before: ImageChannel | null,
  after: ImageChannel | null,
  { from, to }: { readonly from: string | null; readonly to: string | null },
): readonly [done: string, text: string] {
  if (after === null) return ['removed', `was removed; it pointed to ${from}`]
  if (before === null) return ['added', `was added; it points to ${to}`]
  return before.bty_image_ref === after.bty_image_ref
    ? ['noted', 'was saved']
    : ['moved', `was moved from ${from} to ${to}`]
}

const CHANNELS_PATH = '/ui/channels'
const SAVE_PATH = `${CHANNELS_PATH}/save`

export const CHANNEL_PAGES = [
  pageAt(CHANNELS_PATH, 'read', show, { reach: 'list' }),
  formAt(SAVE_PATH, 'machines', save),
  removalAt(`${CHANNELS_PATH}/:name/remove`, 'machines', askRemoval, remove),
]

const TITLE = 'Channels'
const TRAIL = html`<a href="${CHANNELS_PATH}">${TITLE}</a>`

async function show(context: CurrentContext): Promise<Answer> {
  const { site, event, services, query } = context
  const channels = services.channels.list()
  const mayChange = site.mayOpen(event, SAVE_PATH, 'POST')
  return await context.show({
    title: TITLE,
    learn: 'cache.html',
    ...(channels.length === 0 ? {} : { count: String(channels.length) }),
    messages: html`${context.message()}${renderDone(context, query)}`,
    body: html`<p class="hint">
        A channel such as <code>stable</code> points to one image. A machine that has the channel is
        armed with the image that it points to in that moment, and keeps it: moving a channel
        changes no machine and no order.
      </p>
      ${channels.length === 0 ? renderEmpty(mayChange) : renderList(context, channels, mayChange)}
      ${mayChange ? renderForm(context, services.channels.find(query.get('change') ?? '')) : null}`,
  })
}

const renderEmpty = (mayChange: boolean): Html =>
  emptyState(
    'No channels',
    mayChange
      ? 'Give an image a name such as stable, and choose that name wherever an image is chosen.'
      : 'No channels yet.',
  )

function renderDone({ services }: CurrentContext, query: URLSearchParams): Content {
  const [saved, removed] = [query.get('saved'), query.get('removed')]
  const channel = saved === null ? null : services.channels.find(saved)
  if (channel !== null) {
    const image = nameImage(services.images(), channel)
    return banner('done', `The channel ${channel.name} points to ${image}.`)
  }
  if (removed === null || !ChannelNameSchema.safeParse(removed).success) return null
  return banner('done', `The channel ${removed} was removed.`)
}

const nameImage = (images: readonly CatalogEntry[], { bty_image_ref }: ImageChannel): string =>
  images.find(({ ref }) => ref === bty_image_ref)?.name ?? bty_image_ref.slice(0, 12)

const COLUMNS = ['Channel', 'Image', 'Moved', 'Machines'] as const

const renderList = (
  context: CurrentContext,
  channels: readonly ImageChannel[],
  mayChange: boolean,
): Html =>
  renderTable({
    caption: TITLE,
    columns: [...COLUMNS, ...(mayChange ? [ACTIONS] : [])],
    rows: channels.map((channel) => renderRow(context, channel, mayChange)),
  })

function renderRow(context: CurrentContext, channel: ImageChannel, mayChange: boolean): Html {
  const { name, note, bty_image_ref: ref, moved_at, moved_by } = channel
  const images = context.services.images()
  const isGone = !images.some((each) => each.ref === ref)
  return html`<tr id="${`channel-${name}`}">
    <th scope="row">
      <bdi>${name}</bdi>${note === '' ? null : html`<p class="dim small"><bdi>${note}</bdi></p>`}
    </th>
    <td data-label="Image">
      <bdi>${nameImage(images, channel)}</bdi>
      ${isGone ? html`<span class="warning small">no longer in the catalog</span>` : null}
    </td>
    <td data-label="Moved">${renderTime(moved_at, context.clock())} by ${nameActor(moved_by)}</td>
    <td data-label="Machines">${renderMachines(context, channel)}</td>
    ${
      mayChange
        ? html`<td>
            <div class="row">
              <a class="button" href="${address(CHANNELS_PATH, { change: name })}#form">Change</a>
              ${questionButton({ action: `${CHANNELS_PATH}/${encodeURIComponent(name)}/remove`, label: 'Remove' })}
            </div>
          </td>`
        : null
    }
  </tr>`
}

/** And how many of them have another image by now. */
function renderMachines({ site }: CurrentContext, { name, bty_image_ref }: ImageChannel): Content {
  const given = site.machines.peekAll().filter((machine) => channelOf(machine) === name)
  if (given.length === 0) return html`<span class="dim">none</span>`
  const behind = given.filter((machine) => machine.bty_image_ref !== bty_image_ref).length
  const all = link(`channel:${name}`, fillCount(COUNT, given.length))
  if (behind === 0) return all
  return html`${all}, ${link(`channel:${name} -image:${bty_image_ref}`, fillCount(BEHIND, behind))}`
}

const link = (q: string, text: string) =>
  html`<a href="${address('/ui/machines', { q })}">${text}</a>`

const COUNT = { one: '{count} machine', other: '{count} machines' }
const BEHIND = { one: '{count} has another image', other: '{count} have another image' }

const NAME = {
  label: 'Name',
  hint: 'Letters, digits, dots and dashes, such as stable or lab-12.',
  wrong:
    'A name has up to 64 letters, digits, dots, dashes and underscores, and begins with a letter or a digit.',
  required: true,
  maxLength: 64,
  mono: true,
} satisfies FormField
const IMAGE = { label: 'Image', wrong: 'Choose an image.' } satisfies FormField
const NOTE: FormField = {
  label: 'Note',
  hint: 'What people should know, such as why it stays on this image.',
  wrong: `The note is too long: it may have ${MAX_NOTE_CHARACTERS} characters.`,
  maxLength: MAX_NOTE_CHARACTERS,
}
const FIELDS = { name: NAME, bty_image_ref: IMAGE, note: NOTE }

/** An existing channel keeps its name; the form carries what it was made from. */
function renderForm(context: CurrentContext, channel: ImageChannel | null): Html {
  const notice = context.notice()
  const stored = { bty_image_ref: channel?.bty_image_ref, note: channel?.note }
  const options = listOptions(
    context.services.images(),
    notice?.typed['bty_image_ref'] ?? stored.bty_image_ref ?? '',
  )
  const fields = { bty_image_ref: { ...IMAGE, options }, note: NOTE }
  const [title, first, buttons] =
    channel === null
      ? [
          'New channel',
          renderFormFields({ name: NAME }, {}, notice),
          html`<button class="primary">Create channel</button>`,
        ]
      : [
          html`Change <bdi>${channel.name}</bdi>`,
          hidden({ channel: channel.name, before: channel.bty_image_ref }),
          html`<a class="button" href="${CHANNELS_PATH}">Cancel</a>
            <button class="primary">Save</button>`,
        ]
  return card({
    title,
    id: 'form',
    body: html`<form method="post" action="${SAVE_PATH}">
        ${first} ${renderFormFields(fields, stored, notice)}
        ${context.services.images().length === 0 ? NO_IMAGES : null}
        <div class="row">${buttons}</div>
      </form>
      ${renderCurlBlock(context, [callSave(channel)])}`,
  })
}

const callSave = (channel: ImageChannel | null): CurlCall => ({
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
  const first = { value: selected, text: selected.slice(0, 12) || 'Choose an image' }
  return offered.some(({ value }) => value === selected) ? offered : [first, ...offered]
}

/** A new channel must not exist, and an existing one not have moved. */
async function save(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { services, site } = context
  const known = form.get('channel')
  const typed = readTyped(FIELDS, form)
  const fail = (errors: FormErrors) =>
    context.goBack(CHANNELS_PATH, {
      error: Object.values(errors)[0] ?? '',
      text: 'The channel was not saved.',
      typed,
      errors,
      query: { change: known },
      anchor: 'form',
    })
  const { name: given = '', ...fields } = typed
  const name = known ?? given.trim()
  const read = ChannelFieldsSchema.safeParse(fields)
  if (!ChannelNameSchema.safeParse(name).success) return fail({ name: NAME.wrong })
  if (known === null && services.channels.find(name) !== null)
    return fail({ name: `There is already a channel ${name}. Change it in the list.` })
  if (!read.success) return fail(describeWrong(read.error, FIELDS))
  const before = known === null ? null : form.get('before')
  const saved = await createChannelResource(site, services.channels).save(
    { ...read.data, name },
    context.by(),
    (channel) => (channel?.bty_image_ref ?? null) === before,
  )
  if (saved.ok) return context.goTo(address(CHANNELS_PATH, { saved: name }))
  const { refusal } = saved
  return fail({ bty_image_ref: typeof refusal === 'string' ? REFUSED[refusal] : IMAGE.wrong })
}

const REFUSED = {
  stays: 'Somebody else has changed it. Check it again.',
  'too-many': 'There are too many channels. Remove one first.',
} as const

function find({ services, event }: CurrentContext): ImageChannel {
  const channel = services.channels.find(getRouterParam(event, 'name', { decode: true }) ?? '')
  if (channel === null) throw refuse(404, 'There is no such channel.')
  return channel
}

async function askRemoval(context: CurrentContext): Promise<Answer> {
  const { name } = find(context)
  return await showRemoval(context, {
    title: 'Remove channel',
    trail: TRAIL,
    question: html`Remove the channel <bdi>${name}</bdi>?`,
    body: html`<p>
      Machines that have it keep their image, and are armed again only with another image or
      channel. The image stays.
    </p>`,
    cancel: CHANNELS_PATH,
    button: 'Remove channel',
    calls: [{ method: 'DELETE', path: `/channels/${name}`, scope: 'machines' }],
  })
}

async function remove(context: CurrentContext): Promise<Answer> {
  const { name } = find(context)
  const { site, services } = context
  const armed = countArmed(site, name)
  if (armed > 0) return context.goBack(CHANNELS_PATH, { error: fillCount(ARMED, armed) })
  await createChannelResource(site, services.channels).remove(name, context.by())
  return context.goTo(address(CHANNELS_PATH, { removed: name }))
}

const ARMED = {
  one: '{count} machine is armed with it. Disarm it first.',
  other: '{count} machines are armed with it. Disarm them first.',
}
