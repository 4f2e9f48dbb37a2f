/** /ui/channels: the names that point at images, where each points, and which machines were given it. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { ChannelNameSchema, type ImageChannel } from '#fleet/channel/rules/channel.ts'
import { fillCount } from '#kit/foundation/text.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { banner, emptyState } from '#kit/web/ui/elements.ts'
import { address, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { IMAGES } from '#kit/web/ui/layout.ts'
import { ACTIONS, renderTable } from '#kit/web/ui/tables.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { countArmed, createChannelResource } from '#server/current/channels/channels.ts'
import { channelOf } from '#server/current/rules/machine.ts'
import { formAt, pageAt, removalAt } from '#server/pages/context-routes.ts'
import { questionButton, showRemoval } from '#server/pages/question.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { nameActor } from '../view/actor-name.ts'
import { keepTyped, readChannelForm, renderChannelForm, type WrongField } from './channel-form.ts'
import { CHANNEL_SAVE_PATH, CHANNELS_PATH, channelRemovalPath } from './channels-path.ts'

export const CHANNEL_PAGES = [
  pageAt(CHANNELS_PATH, 'read', show, { reach: 'list' }),
  formAt(CHANNEL_SAVE_PATH, 'machines', save),
  removalAt(`${CHANNELS_PATH}/:name/remove`, 'machines', askRemoval, remove),
]

const TRAIL = html`<a href="${IMAGES}">Images</a>`

async function show(context: CurrentContext): Promise<Answer> {
  const { site, event, services, query } = context
  const channels = services.channels.list()
  const mayChange = site.mayOpen(event, CHANNEL_SAVE_PATH, 'POST')
  return await context.show({
    title: 'Channels',
    section: IMAGES,
    trail: TRAIL,
    ...(channels.length === 0 ? {} : { count: String(channels.length) }),
    messages: html`${context.message()}${renderDone(context, query)}`,
    body: html`<p class="hint">
        ${fillHtml('A channel such as {stable} points to one image. A machine that has the channel is armed with the image that it points to in that moment, and keeps it: moving a channel changes no machine and no order.', { stable: html`<code>stable</code>` })}
      </p>
      ${channels.length === 0 ? renderEmpty(mayChange) : renderList(context, channels, mayChange)}
      ${mayChange ? renderChannelForm(context, services.channels.find(query.get('change') ?? '')) : null}`,
  })
}

const renderEmpty = (mayChange: boolean): Html =>
  emptyState(
    'No channels',
    mayChange
      ? 'Give an image a name such as stable, and choose that name wherever an image is chosen.'
      : 'Nobody has made one yet.',
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

const renderList = (
  context: CurrentContext,
  channels: readonly ImageChannel[],
  mayChange: boolean,
): Html =>
  renderTable({
    caption: 'Channels',
    columns: ['Channel', 'Image', 'Moved', 'Machines', ...(mayChange ? [ACTIONS] : [])],
    rows: channels.map((channel) => renderRow(context, channel, mayChange)),
  })

function renderRow(context: CurrentContext, channel: ImageChannel, mayChange: boolean): Html {
  const { name, note, bty_image_ref: ref, moved_at, moved_by } = channel
  const image = context.services.images().find((each) => each.ref === ref) ?? null
  const moved = html`${renderTime(moved_at, context.clock())} by ${nameActor(moved_by)}`
  return html`<tr id="${`channel-${name}`}">
    <th scope="row">
      <bdi>${name}</bdi>${note === '' ? null : html`<p class="dim small"><bdi>${note}</bdi></p>`}
    </th>
    <td data-label="Image">
      <bdi>${image?.name ?? ref.slice(0, 12)}</bdi>
      ${image === null ? html`<span class="warning small">no longer in the catalog</span>` : null}
    </td>
    <td data-label="Moved">${moved}</td>
    <td data-label="Machines">${renderMachines(context, channel)}</td>
    ${mayChange ? html`<td>${renderActions(name)}</td>` : null}
  </tr>`
}

const renderActions = (name: string): Html =>
  html`<div class="row">
    <a class="button" href="${address(CHANNELS_PATH, { change: name })}#form">Change</a>
    ${questionButton({ action: channelRemovalPath(name), label: 'Remove' })}
  </div>`

const searchFor = (q: string): string => address('/ui/machines', { q })

/** And how many of them have another image by now. */
function renderMachines({ site }: CurrentContext, { name, bty_image_ref }: ImageChannel): Content {
  const given = site.machines.peekAll().filter((machine) => channelOf(machine) === name)
  if (given.length === 0) return html`<span class="dim">none</span>`
  const behind = given.filter((machine) => machine.bty_image_ref !== bty_image_ref).length
  const all = html`<a href="${searchFor(`channel:${name}`)}"
    >${fillCount({ one: '{count} machine', other: '{count} machines' }, given.length)}</a
  >`
  if (behind === 0) return all
  return html`${all},
    <a href="${searchFor(`channel:${name} -image:${bty_image_ref}`)}"
      >${fillCount({ one: '{count} has another image', other: '{count} have another image' }, behind)}</a
    >`
}

const CHANNEL_ERRORS = {
  refused: 'The channel was not saved.',
  name: 'A name has up to 64 letters, digits, dots, dashes and underscores, and begins with a letter or a digit.',
  taken: 'There is a channel {name} already: change it in the list.',
  image: 'Choose an image.',
  note: 'The note is too long: it may have {count} characters.',
  missing: 'There is no such channel.',
  stale: 'Somebody else changed it meanwhile: look at it again.',
  'too-many': 'There are too many channels: remove one first.',
  armed: {
    one: '{count} machine is armed with it: disarm it first.',
    other: '{count} machines are armed with it: disarm them first.',
  },
} as const

async function save(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { services, site } = context
  const known = form.get('channel')
  const fail = ({ field, error }: WrongField) =>
    context.goBack(CHANNELS_PATH, {
      error,
      text: CHANNEL_ERRORS.refused,
      typed: keepTyped(form),
      errors: { [field]: error },
      query: { change: known },
      anchor: 'form',
    })
  const read = readChannelForm(form, { images: services.images(), channels: services.channels })
  if (!read.ok) return fail(read.refusal)
  const { name, before, ...body } = read.value
  const isMeant = (channel: ImageChannel | null) => (channel?.bty_image_ref ?? null) === before
  const { save: store } = createChannelResource(site, services.channels)
  const saved = await store({ name, ...body }, context.by(), isMeant)
  if (!saved.ok) {
    const { refusal } = saved
    const error =
      typeof refusal === 'string'
        ? CHANNEL_ERRORS[refusal === 'stays' ? 'stale' : refusal]
        : CHANNEL_ERRORS.image
    return fail({ field: 'bty_image_ref', error })
  }
  return context.goTo(address(CHANNELS_PATH, { saved: name }))
}

function find({ services, event }: CurrentContext): ImageChannel {
  const channel = services.channels.find(getRouterParam(event, 'name', { decode: true }) ?? '')
  if (channel === null) throw refuse(404, CHANNEL_ERRORS.missing)
  return channel
}

async function askRemoval(context: CurrentContext): Promise<Answer> {
  const { name } = find(context)
  return await showRemoval(context, {
    title: 'Remove channel',
    section: IMAGES,
    trail: TRAIL,
    question: html`Remove the channel <bdi>${name}</bdi>?`,
    body: html`<p>
      ${'Machines that have it keep their image, and are armed again only with another image or channel. The image stays.'}
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
  if (armed > 0) {
    return context.goBack(CHANNELS_PATH, { error: fillCount(CHANNEL_ERRORS.armed, armed) })
  }
  await createChannelResource(site, services.channels).remove(name, context.by())
  return context.goTo(address(CHANNELS_PATH, { removed: name }))
}
