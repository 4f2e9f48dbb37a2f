/** Channels as a resource: who changes them, what the API shows, what is recorded. A change moves no machine. */
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
} from '#fleet/channel/rules/channel.ts'
import { fieldError } from '#kit/foundation/field-error.ts'
import { etagOf } from '#kit/web/answers/rules/content-coding.ts'
import { createResource } from '#server/routes/resource.ts'
import type { Site } from '#server/routes/site.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { listArmed } from './rules/channel-order.ts'

const WireSchema = ChannelRecordSchema.extend({
  name: ChannelNameSchema,
  image: z.string().nullable().describe('The name of the image; null: the catalog has it no more'),
})

/** They keep the image, and it would not be known any more why. */
export const countArmed = ({ machines }: Site<Machine>, name: string): number =>
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
    describeStale: (name) =>
      `the channel ${name} was changed in the meantime, or is not to be replaced`,
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
