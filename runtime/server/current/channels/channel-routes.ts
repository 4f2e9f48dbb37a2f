/** `/channels`: names that point to images, listed, moved and removed. */
import { getRouterParam, type H3Event } from 'h3'
import { z } from 'zod'
import {
  ChannelFieldsSchema,
  ChannelNameSchema,
  ChannelRecordSchema,
  MAX_CHANNELS,
  type ImageChannel,
} from '#fleet/channel/rules/channel.ts'
import { json, nothing } from '#kit/web/answers/answers.ts'
import { checked, renderSchema } from '#kit/web/answers/checked.ts'
import { refuse, refuseFields } from '#kit/web/answers/faults.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { etagOf, meetsConditions } from '#kit/web/answers/rules/content-coding.ts'
import { fieldError } from '#kit/foundation/field-error.ts'
import {
  removeChannel,
  saveChannel,
  nameImage,
  type ChannelEditDependencies,
} from './channel-edits.ts'

const WireSchema = ChannelRecordSchema.extend({
  name: ChannelNameSchema,
  image: z.string().nullable().describe('The name of the image; null: the catalog has it no more'),
})
const ONE = '/channels/:name'

export function channelRoutes(parts: ChannelEditDependencies): readonly Route[] {
  const { site, channels } = parts
  const answers = { 200: renderSchema(WireSchema, 'output') }
  return [
    {
      method: 'GET',
      path: '/channels',
      access: 'read',
      reach: 'shared',
      doc: {
        summary: 'All channels, by name: each points to an image',
        answers: { 200: renderSchema(z.array(WireSchema), 'output') },
      },
      handle: () => json(channels.list().map((channel) => toWire(parts, channel))),
    },
    {
      method: 'GET',
      path: ONE,
      access: 'read',
      doc: { summary: 'One channel', answers },
      handle: (event) => show(parts, find(parts, event)),
    },
    {
      method: 'PUT',
      path: ONE,
      access: 'machines',
      takes: 'json',
      doc: {
        summary:
          'Adds a channel, or points it to another image; machines that are armed keep theirs',
        body: renderSchema(ChannelFieldsSchema, 'input'),
        answers,
        refuses: [409, 412],
        isNeverMissing: true,
      },
      async handle(event, body) {
        const name = checked(ChannelNameSchema, readName(event), 'query')
        const fields = { name, ...checked(ChannelFieldsSchema, body) }
        const saved = await saveChannel(parts, fields, site.by(event), expects(event))
        if (saved.ok) return show(parts, saved.value)
        switch (saved.refusal) {
          case 'image':
            throw refuseFields([fieldError(['bty_image_ref'], NO_IMAGE)])
          case 'stale':
            throw stale(name)
          case 'too-many':
            throw refuse(409, `there are ${MAX_CHANNELS} channels already`)
        }
      },
    },
    {
      method: 'DELETE',
      path: ONE,
      access: 'machines',
      doc: {
        summary: 'Removes a channel with which no machine is armed',
        answers: { 204: null },
        refuses: [409, 412],
      },
      async handle(event) {
        const { name } = find(parts, event)
        const removed = await removeChannel(parts, name, site.by(event), expects(event))
        if (!removed.ok) throw refuse(409, `${removed.refusal} machines are armed with ${name}`)
        if (!removed.value) throw stale(name)
        return nothing()
      },
    },
  ]
}

const NO_IMAGE = 'the catalog has no such image'
const stale = (name: string) =>
  refuse(412, `the channel ${name} was changed in the meantime, or is not to be replaced`)

const readName = (event: H3Event): string => getRouterParam(event, 'name', { decode: true }) ?? ''

function find({ channels }: ChannelEditDependencies, event: H3Event): ImageChannel {
  const found = channels.find(readName(event))
  if (found === null) throw refuse(404, 'no such channel')
  return found
}

const toWire = ({ site }: ChannelEditDependencies, { name, ...channel }: ImageChannel) => ({
  name,
  bty_image_ref: channel.bty_image_ref,
  image: nameImage(site, channel.bty_image_ref),
  note: channel.note,
  moved_at: channel.moved_at,
  moved_by: channel.moved_by,
})

/** Of what is stored: an image that leaves the catalog does not change the channel. */
const tagOf = (channel: ImageChannel): string => etagOf(JSON.stringify(channel))

const show = (parts: ChannelEditDependencies, channel: ImageChannel) =>
  json(toWire(parts, channel), 200, { etag: tagOf(channel) })

const expects = (event: H3Event) => (channel: ImageChannel | null) =>
  meetsConditions(event.req.headers, channel === null ? null : tagOf(channel))
