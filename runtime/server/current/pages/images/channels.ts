/** /ui/channels: the names that point at images, where each points, and which machines were given it. */
import type { Answer } from '#kit/web/answers/answers.ts'
import { getRouterParam } from 'h3'
import type { CatalogEntry } from '#engine/catalog/rules/catalog.ts'
import { ChannelNameSchema, type ImageChannel } from '#fleet/channel/rules/channel.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { banner, emptyState } from '#kit/web/ui/elements.ts'
import { address, fillHtml, html, type Content, type Html } from '#kit/web/ui/html.ts'
import { IMAGES } from '#kit/web/ui/layout.ts'
import { ACTIONS, renderTable } from '#kit/web/ui/tables.ts'
import { renderTime } from '#kit/web/ui/times.ts'
import { PAGES } from '#server/texts/texts.ts'
import { countArmed, createChannelResource } from '#server/current/channels/channels.ts'
import { channelOf } from '#server/current/rules/machine.ts'
import { formAt, pageAt, removalAt } from '#server/pages/context-routes.ts'
import { questionButton, showRemoval } from '#server/pages/question.ts'
import type { CurrentContext } from '../view/page-context.ts'
import { nameActor } from '../view/actor-name.ts'
import { keepTyped, readChannelForm, renderChannelForm, type WrongField } from './channel-form.ts'
import { CHANNEL_SAVE_PATH, CHANNELS_PATH, channelRemovalPath } from './channels-path.ts'

const t = PAGES.channels

export const CHANNEL_PAGES = [
  pageAt(CHANNELS_PATH, 'read', show, { reach: 'list' }),
  formAt(CHANNEL_SAVE_PATH, 'machines', save),
  removalAt(`${CHANNELS_PATH}/:name/remove`, 'machines', askRemoval, remove),
]

const TRAIL = html`<a href="${IMAGES}">${PAGES.images.title}</a>`

async function show(context: CurrentContext): Promise<Answer> {
  const { site, event, services, query } = context
  const channels = services.channels.list()
  const mayChange = site.mayOpen(event, CHANNEL_SAVE_PATH, 'POST')
  return await context.show({
    title: t.title,
    section: IMAGES,
    trail: TRAIL,
    ...(channels.length === 0 ? {} : { count: String(channels.length) }),
    messages: html`${context.message()}${renderDone(context, query)}`,
    body: html`<p class="hint">${fillHtml(t.hint, { stable: html`<code>stable</code>` })}</p>
      ${channels.length === 0 ? renderEmpty(mayChange) : renderList(context, channels, mayChange)}
      ${mayChange ? renderChannelForm(context, services.channels.find(query.get('change') ?? '')) : null}`,
  })
}

const renderEmpty = (mayChange: boolean): Html =>
  emptyState(t.empty.title, mayChange ? t.empty.text : t.empty.readOnly)

function renderDone({ services }: CurrentContext, query: URLSearchParams): Content {
  const [saved, removed] = [query.get('saved'), query.get('removed')]
  const channel = saved === null ? null : services.channels.find(saved)
  if (channel !== null) {
    const image = nameImage(services.images(), channel)
    return banner('done', fill(t.saved, { name: channel.name, image }))
  }
  if (removed === null || !ChannelNameSchema.safeParse(removed).success) return null
  return banner('done', fill(t.removed, { name: removed }))
}

const nameImage = (images: readonly CatalogEntry[], { bty_image_ref }: ImageChannel): string =>
  images.find(({ ref }) => ref === bty_image_ref)?.name ?? bty_image_ref.slice(0, 12)

const renderList = (
  context: CurrentContext,
  channels: readonly ImageChannel[],
  mayChange: boolean,
): Html =>
  renderTable({
    caption: t.list.caption,
    columns: [
      t.list.name,
      t.list.image,
      t.list.moved,
      t.list.machines,
      ...(mayChange ? [ACTIONS] : []),
    ],
    rows: channels.map((channel) => renderRow(context, channel, mayChange)),
  })

function renderRow(context: CurrentContext, channel: ImageChannel, mayChange: boolean): Html {
  const { name, note, bty_image_ref: ref, moved_at, moved_by } = channel
  const image = context.services.images().find((each) => each.ref === ref) ?? null
  const moved = fillHtml(t.list.by, {
    time: renderTime(moved_at, context.clock()),
    actor: nameActor(moved_by),
  })
  return html`<tr id="${`channel-${name}`}">
    <th scope="row">
      <bdi>${name}</bdi>${note === '' ? null : html`<p class="dim small"><bdi>${note}</bdi></p>`}
    </th>
    <td data-label="${t.list.image}">
      <bdi>${image?.name ?? ref.slice(0, 12)}</bdi>
      ${image === null ? html`<span class="warning small">${t.list.gone}</span>` : null}
    </td>
    <td data-label="${t.list.moved}">${moved}</td>
    <td data-label="${t.list.machines}">${renderMachines(context, channel)}</td>
    ${mayChange ? html`<td>${renderActions(name)}</td>` : null}
  </tr>`
}

const renderActions = (name: string): Html =>
  html`<div class="row">
    <a class="button" href="${address(CHANNELS_PATH, { change: name })}#form"
      >${t.form.changeShort}</a
    >
    ${questionButton({ action: channelRemovalPath(name), label: t.removal.short })}
  </div>`

const searchFor = (q: string): string => address('/ui/machines', { q })

/** And how many of them have another image by now. */
function renderMachines({ site }: CurrentContext, { name, bty_image_ref }: ImageChannel): Content {
  const given = site.machines.peekAll().filter((machine) => channelOf(machine) === name)
  if (given.length === 0) return html`<span class="dim">${t.list.none}</span>`
  const behind = given.filter((machine) => machine.bty_image_ref !== bty_image_ref).length
  const all = html`<a href="${searchFor(`channel:${name}`)}"
    >${fillCount(t.list.count, given.length)}</a
  >`
  if (behind === 0) return all
  return html`${all},
    <a href="${searchFor(`channel:${name} -image:${bty_image_ref}`)}"
      >${fillCount(t.list.behind, behind)}</a
    >`
}

async function save(context: CurrentContext, form: URLSearchParams): Promise<Answer> {
  const { services, site } = context
  const known = form.get('channel')
  const fail = ({ field, error }: WrongField) =>
    context.goBack(CHANNELS_PATH, {
      error,
      text: t.errors.refused,
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
        ? t.errors[refusal === 'stays' ? 'stale' : refusal]
        : t.errors.image
    return fail({ field: 'bty_image_ref', error })
  }
  return context.goTo(address(CHANNELS_PATH, { saved: name }))
}

function find({ services, event }: CurrentContext): ImageChannel {
  const channel = services.channels.find(getRouterParam(event, 'name', { decode: true }) ?? '')
  if (channel === null) throw refuse(404, t.errors.missing)
  return channel
}

async function askRemoval(context: CurrentContext): Promise<Answer> {
  const { name } = find(context)
  return await showRemoval(context, {
    title: t.removal.button,
    section: IMAGES,
    trail: TRAIL,
    question: fillHtml(t.removal.question, { name: html`<bdi>${name}</bdi>` }),
    body: html`<p>${t.removal.consequence}</p>`,
    cancel: CHANNELS_PATH,
    button: t.removal.button,
    calls: [{ method: 'DELETE', path: `/channels/${name}`, scope: 'machines' }],
  })
}

async function remove(context: CurrentContext): Promise<Answer> {
  const { name } = find(context)
  const { site, services } = context
  const armed = countArmed(site, name)
  if (armed > 0) {
    return context.goBack(CHANNELS_PATH, { error: fillCount(t.errors.armed, armed) })
  }
  await createChannelResource(site, services.channels).remove(name, context.by())
  return context.goTo(address(CHANNELS_PATH, { removed: name }))
}
